"""What a short form stands for, where a question asks that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.text.mine_abbreviations import AbbreviationPair
from serve.answer.names.cluster_mentions import spelling, usual_first

_ASKED = re.compile(
    r"(?:what|which)\b.*?[\s\"'](?P<stands>[^\s\"']+)[\"']?\s+stands?\s+for\b.*"
    r"|what\s+(?:is|are)\s+(?:an?\s+|the\s+)?(?P<alone>[^\s?]+)\s*\?*",
    re.IGNORECASE,
)


def spelt_out(body: str, definitions: Iterable[AbbreviationPair]) -> list[str]:
    """Long forms of the one short form that `body` asks about, the most usual first.

    "What is ECMO?" and "What does ECMO stand for?" ask so; a plural s of either side is passed
    over. [] for any other question, and where `definitions` do not have the short form.
    """
    asked = _ASKED.fullmatch(body.strip())
    if asked is None:
        return []
    short = _singular(asked["stands"] or asked["alone"])
    return usual_first([pair.long for pair in definitions if _singular(pair.short) == short])


def _singular(short: str) -> str:
    return spelling(short[:-1] if short.endswith("s") and short[:-1].isupper() else short)
