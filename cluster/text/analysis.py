"""How text becomes BM25 terms; the same for citations, passages and questions."""

from __future__ import annotations

from functools import cache

import tantivy

# Goes into the manifest: a reader with another analyser would look up terms that
# are not there.
ANALYSER = "simple-lower-english-stop-stem-1"

# About 20 MB. A longer word, such as a sequence, is not worth the memory.
_KNOWN_WORDS = 1 << 17
_KNOWN_BYTES = 100
# What the tokeniser and the lower-caser do to ASCII, so that "Cell," and "cell" are one word.
_PLAIN = bytes(
    c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else 32 for c in range(256)
)


@cache
def _analyser() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(64))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


class _Words(dict[bytes, str]):
    """A word's terms, each after a blank. Words repeat, so most are analysed once."""

    def __missing__(self, word: bytes) -> str:
        terms = "".join(f" {term}" for term in _analyser().analyze(word.decode()))
        if len(self) >= _KNOWN_WORDS:
            self.clear()
        if len(word) <= _KNOWN_BYTES:
            self[word] = terms
        return terms


_words = _Words()


def analyse_joined(text: str) -> str:
    """The terms of `text` in order, as often as they occur, each after a blank.

    The filters see one token at a time, so the terms of a text are those of its words.
    """
    return "".join(map(_words.__getitem__, text.encode().translate(_PLAIN).split()))


def analyse(text: str) -> list[str]:
    """The terms of `text` in order, repeated as often as they occur."""
    return analyse_joined(text).split()
