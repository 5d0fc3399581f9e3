"""What somebody says of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster.answers import ExactAnswer

Rating = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """What somebody says of an answer; "", None and () for what is left as it was answered.

    `pmids` are the citations that support the corrected answer.
    """

    rating: Rating
    ideal: str = ""
    exact: ExactAnswer = None
    pmids: tuple[int, ...] = ()
    note: str = ""
