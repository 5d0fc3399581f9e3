"""Text that gives orders to a machine that reads it, planted where only evidence should be.

An abstract is quoted, never obeyed, but a language model may obey what it reads, and the check of
support cannot tell an order's words from a finding's. So what gives orders is no evidence. The
patterns are for the ways of the published attacks (Greshake et al. 2023, arXiv:2302.12173; OWASP's
LLM01: overrides, roles, templates' tokens, hidden and encoded text); a false statement in plain
words is no order, and is weighed as any other evidence.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cluster.records import Evidence
from serve.order_patterns import ORDERS, OVERRIDES

LEFT_OUT = "(left out: it gives orders to its reader)"

# Letters of other alphabets that look like Latin ones, which no reader can tell apart.
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u051d\u04bb"
    "\u0412\u041d\u041a\u041c\u0422\u0410\u0415\u041e\u0420\u0421\u0425\u0406"
    "\u03bf\u03b1\u03b9\u03bd\u03c1\u0391\u0392\u0395\u0397\u0399"
    "\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u0131\u0261",
    "aeopcyxijsdqwhBHKMTAEOPCXIoaivpABEHIKMNOPTXig",
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_SPELT_OUT = re.compile(r"\b(?:\w[\s.*_-]{1,3}){7,}\w\b")
_LEET = str.maketrans("013457@$", "oieastas")
_SYLLABLES = re.compile(r"(?<=[A-Za-z])[.\u00b7-](?=[A-Za-z])")
# Invisible letters of Unicode's plane of tags, which models read as ASCII.
_TAGS = {0xE0000 + code: code for code in range(0x20, 0x7F)}
_HIDDEN = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")

_ORDER = tuple(re.compile(pattern, re.IGNORECASE) for pattern in ORDERS)
_OVERRIDE = tuple(re.compile(pattern, re.IGNORECASE) for pattern in OVERRIDES)


_LINK = re.compile(
    r"(?:\bhttps?:|\bwww\.|\bmailto:)\S*|!?\[[^\]]*\]\([^)]*\)|</?\w+[^>]*>", re.IGNORECASE
)


@lru_cache(maxsize=8192)
def gives_orders(text: str) -> bool:
    """Whether `text` speaks to a machine that reads it, in plain sight, disguised or encoded."""
    plain = _HIDDEN.sub("", unicodedata.normalize("NFKC", text).translate(_TAGS))
    return any(pattern.search(form) for form in _readable(plain) for pattern in _ORDER) or any(
        pattern.search(form) for form in _disguised(plain) for pattern in _OVERRIDE
    )


def trusted(evidence: Sequence[Evidence]) -> tuple[list[Evidence], list[int]]:
    """(the evidence of citations that give no orders, the PMIDs of those that do).

    A citation is trusted as a whole: what stands beside an order was planted with it.
    """
    planted = {
        item.passage.pmid
        for item in evidence
        if gives_orders(item.passage.text) or gives_orders(item.title)
    }
    return [item for item in evidence if item.passage.pmid not in planted], sorted(planted)


def without_orders(text: str) -> str:
    """`text`, or a note in its place where it gives orders."""
    return LEFT_OUT if gives_orders(text) else text


def strange_links(sentence: str, texts: Sequence[str]) -> list[str]:
    """Links and tags of `sentence` that stand in none of `texts`."""
    return [link for link in _LINK.findall(sentence) if not any(link in text for text in texts)]


def _readable(plain: str) -> Iterator[str]:
    """The text as a reader sees it, and what of it is base64."""
    yield plain
    yield from filter(None, map(_decode, _BASE64.findall(plain)))


def _disguised(plain: str) -> Iterator[str]:
    """The text as a model might guess that it was meant."""
    looks = plain.translate(_LOOK_ALIKES)
    if looks != plain:
        yield looks
    if _SPELT_OUT.search(looks):
        yield _SPELT_OUT.sub(lambda run: re.sub(r"[\s.*_-]", "", run[0]), looks)
    yield _SYLLABLES.sub("", plain)
    yield plain.translate(_LEET)
    yield codecs.decode(plain, "rot13")


def _decode(blob: str) -> str:
    """What a run of base64 letters says, or "" where it is no text."""
    try:
        text = base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.isprintable() else ""
