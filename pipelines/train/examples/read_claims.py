"""Read claims with evidence and labels, and split them by claim."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import InputError
from pipelines.train.examples.read_lines import read_lines

# The labels of a trained model, in order; the service identifies them by name.
LABELS = ("CONTRADICT", "NEUTRAL", "SUPPORT")


@dataclass(frozen=True, slots=True)
class ClaimPair:
    """A claim and evidence; `label` is an index into LABELS."""

    claim: str
    evidence: str
    label: int


def read_claims(paths: Sequence[Path]) -> list[ClaimPair]:
    """Read JSON lines with `claim`, `evidence` and `label`.

    Raises InputError, with file and line, for a row without them or with another label.
    """
    pairs = []
    for path in paths:
        for number, row in read_lines(path):
            try:
                label = LABELS.index(row["label"])
                pairs.append(ClaimPair(str(row["claim"]), str(row["evidence"]), label))
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"{path}, line {number}: not a labelled claim ({error!r}); it needs `claim`, "
                    f"`evidence` and a `label` of {', '.join(LABELS)}"
                ) from error
    return pairs


def split_by_claim(
    pairs: Sequence[ClaimPair], share: float
) -> tuple[list[ClaimPair], list[ClaimPair]]:
    """Return the pairs to train on, and those of about `share` of the claims to measure on.

    All pairs of a claim are in the same part, which does not depend on other pairs.
    """
    sides: tuple[list[ClaimPair], list[ClaimPair]] = ([], [])
    for pair in pairs:
        digest = hashlib.blake2b(pair.claim.encode(), digest_size=8).digest()
        sides[int.from_bytes(digest) < share * 2**64].append(pair)
    return sides
