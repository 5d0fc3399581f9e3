"""Query for evidence that contradicts a claim."""

from __future__ import annotations


def contrary_forms(claim: str) -> list[str]:
    """Return word queries that find evidence against `claim`.

    Dense search finds text that resembles a claim, but rarely text that denies it (paper 004). The
    query has words that are typical of negative findings. "Not" is a stop word of the index.
    """
    return [f"{claim.strip(' .')} no effect, no significant difference, not associated"]
