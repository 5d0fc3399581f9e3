"""A sentence turned round, so that the reader learns to tell what affirms from what denies."""

from __future__ import annotations

import re

# Each word with one that says the opposite of the same thing, both ways.
_OPPOSITES = """
increase decrease
increases decreases
increased decreased
improves worsens
improved worsened
effective ineffective
safe unsafe
higher lower
upregulated downregulated
activates inhibits
activated inhibited
positive negative
sensitive resistant
beneficial harmful
promotes suppresses
"""
_TURNED = {
    a: b
    for line in _OPPOSITES.strip().splitlines()
    for pair in [line.split()]
    for a, b in (pair, pair[::-1])
}
_DENIED = re.compile(r"\b(?:(?:does|do|did) not|not|no longer|never)\s+")
_COPULA = re.compile(
    r"\b(is|are|was|were|can|could|may|might|should|will|has|have|had)\b(?!\s+(?:not|no)\b)"
)
_TURNABLE = re.compile(rf"\b(?:{'|'.join(_TURNED)})\b")


def contradict(sentence: str) -> str:
    """`sentence` with its negation taken out, its first word of direction turned, or a "not"
    put in, whichever it has room for first; "" where it has room for none.
    """
    if _DENIED.search(sentence):
        return _DENIED.sub("", sentence, count=1)
    if _TURNABLE.search(sentence):
        return _TURNABLE.sub(lambda match: _TURNED[match[0]], sentence, count=1)
    if _COPULA.search(sentence):
        return _COPULA.sub(r"\1 not", sentence, count=1)
    return ""
