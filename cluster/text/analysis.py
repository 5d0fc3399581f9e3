"""Split text into BM25 terms, in the same way for citations, passages and questions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import tantivy

from cluster.text.folding import fold_letters

# Size of the cache of words, about 20 MB. Longer words, such as sequences, are not cached.
_CACHED_WORDS = 1 << 17
_CACHED_WORD_BYTES = 100
# Lower-cases ASCII letters and replaces punctuation, so that "Cell," and "cell" share an entry.
_PLAIN = bytes(
    c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else 32 for c in range(256)
)
_WORD = re.compile(r"[^\W_]+")


@cache
def _stems() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(64))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


class _WordCache(dict[bytes, str]):
    """Cache of each word's terms, each preceded by a space; `fold` is applied to the word."""

    def __init__(self, fold: Callable[[str], str]) -> None:
        self._fold = fold

    def __missing__(self, word: bytes) -> str:
        terms = "".join(f" {term}" for term in _stems().analyze(self._fold(word.decode())))
        if len(self) >= _CACHED_WORDS:
            self.clear()
        if len(word) <= _CACHED_WORD_BYTES:
            self[word] = terms
        return terms


_FOLDS: dict[str, Callable[[str], str]] = {
    "simple-lower-english-stop-stem-1": str,
    "simple-fold-english-stop-stem-2": fold_letters,
}
_word_caches = {name: _WordCache(fold) for name, fold in _FOLDS.items()}


@lru_cache(_CACHED_WORDS)
def _unstemmed(analyser: str, word: bytes) -> str:
    return " ".join(_WORD.findall(_FOLDS[analyser](word.decode()).lower()))


@dataclass(frozen=True, slots=True)
class Analyser:
    """Splits texts into BM25 terms. Raises ValueError if no analyser is called `name`.

    The name is stored in the manifest of an index, whose questions and updates must be split like
    its texts. All analysers agree on ASCII texts.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in _FOLDS:
            raise ValueError(f"{self.name}: no such analyser")

    def join_terms(self, text: str) -> str:
        """Return the terms of `text` in order, with repetitions, each preceded by a space.

        Words are analysed separately, because each filter depends only on a single token.
        """
        words = text.encode().translate(_PLAIN).split()
        return "".join(map(_word_caches[self.name].__getitem__, words))

    def words(self, text: str) -> str:
        """Return the words of `text` in lower case, joined by spaces, before stop words and stems.

        Letters are folded as in the terms, so each term is the stem of one of these words.
        """
        parts = text.encode().translate(_PLAIN).split()
        if text.isascii():
            return b" ".join(parts).decode()
        return " ".join(p.decode() if p.isascii() else _unstemmed(self.name, p) for p in parts)

    def terms(self, text: str) -> list[str]:
        """Return the terms of `text` in order, with repetitions."""
        return self.join_terms(text).split()


# Analyser of new indexes. Older indexes are searched and updated with the one that built them.
ANALYSER = Analyser("simple-fold-english-stop-stem-2")


def analyse(text: str) -> list[str]:
    """Return the terms of `text` for comparisons that do not involve an index."""
    return ANALYSER.terms(text)
