"""Check that a segment holds exactly the codes of its passages' tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cluster.index.layout import PASSAGES, TOKENS
from cluster.index.manifest import TokensEntry
from pipelines.verify.note_findings import Ints, Notes
from pipelines.verify.read_columns import read_integers


def check_tokens(
    directory: Path, tokens: TokensEntry | None, pmids: Ints, passages: Ints, notes: Notes
) -> None:
    """Note the faults of a segment's token codes.

    `pmids` and `passages` are the PMIDs and numbers of passages of its citations. Raises one of
    UNREADABLE if a file is damaged.
    """
    ends = read_integers(directory / PASSAGES, "token_end")
    counts = np.diff(ends, prepend=0)
    if (counts < 0).any():
        notes.note("order", "token_end decreases", file=PASSAGES)
        return
    a_token = tokens.components * tokens.bits // 8 if tokens else 0
    size, expected = (directory / TOKENS).stat().st_size, int(counts.sum()) * a_token
    if size != expected or (not tokens and counts.any()):
        message = f"{size:,} bytes where {counts.sum():,} tokens take {expected:,}"
        notes.note("tokens", message, file=TOKENS)
    elif tokens and not counts.all():
        owners = np.searchsorted(np.cumsum(passages), np.flatnonzero(counts == 0), side="right")
        message = f"{np.count_nonzero(counts == 0):,} passages without a token"
        notes.note("tokens", message, pmids[owners], file=TOKENS)
