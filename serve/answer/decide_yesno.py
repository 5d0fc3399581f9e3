"""Yes or no, decided on the proposition: what the evidence affirms and denies, weighed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serve.answer.read_evidence import ReadPassage, Side

# Sources disagree where each side has a passage that says so this clearly, and neither side has
# more than this share of what is said.
CLEAR = 0.5
DISAGREE_SHARE = 0.7


@dataclass(frozen=True, slots=True)
class Balance:
    """What the evidence says to a yes/no question.

    `yes` and `no` are the sums over the passages of how far each says so, `best_yes` and
    `best_no` the clearest passage's.
    """

    yes: float
    no: float
    best_yes: float
    best_no: float

    @property
    def side(self) -> Side:
        """The side that more of the evidence takes."""
        return "yes" if self.yes > self.no else "no"

    @property
    def share(self) -> float:
        """The share, 0.5 to 1, that the stronger side has of what is said."""
        return max(self.yes, self.no) / (self.yes + self.no or 1.0)

    @property
    def said(self) -> float:
        """How clearly any passage takes a side, 0 to 1."""
        return max(self.best_yes, self.best_no)

    @property
    def divided(self) -> bool:
        """Whether sources disagree: each side has a clear passage and neither side prevails."""
        return min(self.best_yes, self.best_no) >= CLEAR and self.share < DISAGREE_SHARE


def weigh(passages: Sequence[ReadPassage]) -> Balance:
    """The balance over `passages`; of none, zeros."""
    yes = [passage.weight("yes") for passage in passages]
    no = [passage.weight("no") for passage in passages]
    return Balance(sum(yes), sum(no), max(yes, default=0.0), max(no, default=0.0))
