"""Split text into BM25 terms, in the same way for citations, passages and questions."""

from __future__ import annotations

from functools import cache

import tantivy

# Recorded in the manifest, since an index can only be searched with the analyser that built it.
ANALYSER = "simple-lower-english-stop-stem-1"

# Size of the cache of words, about 20 MB. Longer words, such as sequences, are not cached.
_CACHED_WORDS = 1 << 17
_CACHED_WORD_BYTES = 100
# Lower-cases ASCII letters and replaces punctuation, so that "Cell," and "cell" share an entry.
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


class _WordCache(dict[bytes, str]):
    """Cache of each word's terms, each preceded by a space."""

    def __missing__(self, word: bytes) -> str:
        terms = "".join(f" {term}" for term in _analyser().analyze(word.decode()))
        if len(self) >= _CACHED_WORDS:
            self.clear()
        if len(word) <= _CACHED_WORD_BYTES:
            self[word] = terms
        return terms


_word_cache = _WordCache()


def analyse_joined(text: str) -> str:
    """Return the terms of `text` in order, with repetitions, each preceded by a space.

    Words are analysed separately, because each filter depends only on a single token.
    """
    return "".join(map(_word_cache.__getitem__, text.encode().translate(_PLAIN).split()))


def analyse(text: str) -> list[str]:
    """Return the terms of `text` in order, with repetitions."""
    return analyse_joined(text).split()
