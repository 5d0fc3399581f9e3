"""Analyse text to BM25 terms, in the same way for citations, passages and questions."""

from __future__ import annotations

from functools import cache

import tantivy

# Recorded in the manifest, since an index can only be searched with the analyser that built it.
ANALYSER = "simple-lower-english-stop-stem-1"

# Size of the cache of words, about 20 MB. Longer words, such as sequences, are not cached.
_KNOWN_WORDS = 1 << 17
_KNOWN_BYTES = 100
# The effect of tokeniser and lower-casing on ASCII, so that "Cell," and "cell" share an entry.
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
    """Cache of each word's terms, each preceded by a space."""

    def __missing__(self, word: bytes) -> str:
        terms = "".join(f" {term}" for term in _analyser().analyze(word.decode()))
        if len(self) >= _KNOWN_WORDS:
            self.clear()
        if len(word) <= _KNOWN_BYTES:
            self[word] = terms
        return terms


_words = _Words()


def analyse_joined(text: str) -> str:
    """Return the terms of `text` in order, with repetitions, each preceded by a space.

    The filters work on single tokens, so that words can be analysed separately.
    """
    return "".join(map(_words.__getitem__, text.encode().translate(_PLAIN).split()))


def analyse(text: str) -> list[str]:
    """Return the terms of `text` in order, with repetitions."""
    return analyse_joined(text).split()
