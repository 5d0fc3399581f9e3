"""Correct misspelt words of a question with the words in an index.

Precision matters more than recall: a word is only corrected if neither the index nor the vocabulary
has it, and a similar word is common.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cluster.text.analysis import analyse

SHORTEST = 5
# Words of at least this length may have two wrong letters.
LONG = 9
MOST_CORRECTIONS = 5
# A word in at most this share of the units may be a misspelling itself, if a similar word is at
# least this many times as frequent.
RARE_SHARE, MORE_COMMON = 1e-6, 1000
# Minimum number of units that contain a word that is not in the vocabulary.
COMMON_FORM = 20
_WORD = re.compile(r"(?<![\w-])[A-Za-z]+(?![\w-])")


def correctable(body: str) -> list[str]:
    """Return the stems of the words that are candidates for correction."""
    stems = (analyse(word.lower()) for word in _WORD.findall(body) if _is_plain(word))
    return [stem[0] for stem in stems if len(stem) == 1]


def _is_plain(word: str) -> bool:
    return len(word) >= SHORTEST and (word.islower() or word.istitle())


class Speller:
    """Corrects words with the index's BM25 terms and the vocabulary's words.

    `counts` has the number of units that contain each of `terms`. `words` are unstemmed, in lower
    case. `frequency` returns the number of units for any term, `units` is their total.
    """

    def __init__(
        self,
        terms: Sequence[str],
        counts: NDArray[np.int64],
        words: Sequence[str],
        frequency: Callable[[str], int],
        units: int,
    ) -> None:
        self._terms, self._counts = _Letters(terms), counts
        self._words, self._known = _Letters(words), frozenset(words)
        self._least = int(counts.min(initial=COMMON_FORM))
        self._frequency, self._units = frequency, units

    def correct(self, body: str) -> str | None:
        """Return the question with misspelt words corrected, or None if none are found."""
        words = list(_WORD.finditer(body))
        better = {
            word.span(): found
            for word in words
            if (found := self._better(word[0], first=word.start() == 0))
        }
        # If most words are unknown, the text is in another language or is not prose.
        if not better or len(better) > min(MOST_CORRECTIONS, (2 * len(words) + 2) // 3):
            return None
        return _WORD.sub(lambda word: better.get(word.span(), word[0]), body)

    def _better(self, word: str, *, first: bool) -> str | None:
        """Return the correction of `word`; None if it is correct or no word is similar."""
        if not _is_plain(word):
            return None
        lower = word.lower()
        stems = analyse(lower)
        # The vocabulary has no plurals.
        if len(stems) != 1 or {lower, lower.removesuffix("s")} & self._known:
            return None
        held = self._frequency(stems[0])
        if held > self._units * RARE_SHARE:
            return None
        # A capitalised word may be a name, unless it begins the sentence.
        strict = word.istitle() and not first
        found = self._nearest(lower, stems[0], strict, held * MORE_COMMON)
        if found is None:
            return None
        return found.capitalize() if word.istitle() else found

    def _nearest(self, word: str, stem: str, strict: bool, least: int) -> str | None:
        most = 1 if strict or len(word) < LONG else 2
        ranked = [
            (distance, -count, form)
            for form, count in self._near_forms(word, stem, most).items()
            if count >= least
            and (distance := edit_distance(form, word, most)) <= most
            and (distance < 2 or form[0] == word[0])
        ]
        return min(ranked)[2] if ranked else None

    def _near_forms(self, word: str, stem: str, most: int) -> dict[str, int]:
        """Return similar words and the number of units that contain their stems."""
        forms: dict[str, int] = {}
        # The vocabulary has no plurals, so look up the singular too.
        for singular, end in ((word, ""), (word.removesuffix("s"), "s"))[: 1 + word.endswith("s")]:
            for at in self._words.near(singular, most).tolist():
                form = f"{self._words.of[at]}{end}"
                if edit_distance(form, word, most) <= most and (stems := analyse(form)):
                    forms[form] = self._frequency(stems[0])
        common = {form: count for form, count in forms.items() if count >= self._least}
        for at in self._terms.near(stem, 1).tolist():
            # For a word that is not in the vocabulary, append the typed ending to the stem.
            term, count = self._terms.of[at], int(self._counts[at])
            if count >= COMMON_FORM and edit_distance(term, stem, 1) <= 1:
                form = f"{term}{word[len(stem) :]}"
                if edit_distance(form, word, 1) <= 1 and analyse(form) == [term]:
                    common[form] = count
        return common


class _Letters:
    """Words with their lengths and letter sets, to exclude dissimilar words quickly."""

    def __init__(self, words: Sequence[str]) -> None:
        self.of = words
        self._lengths = np.fromiter(map(len, words), np.int16, len(words))
        self._sets = np.fromiter(map(_letters, words), np.uint32, len(words))

    def near(self, word: str, most: int) -> NDArray[np.int64]:
        """Return the indices of words that may be within `most` edits of `word`."""
        # An edit adds a letter, removes one, or does both.
        differ = np.bitwise_count(self._sets ^ np.uint32(_letters(word))) <= 2 * most
        return np.flatnonzero(differ & (np.abs(self._lengths - len(word)) <= most))


def _letters(word: str) -> int:
    """Return the word's letters as a bit set; other characters share the last six bits."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) - 97 if "a" <= letter <= "z" else 26 + ord(letter) % 6)
    return bits


def edit_distance(one: str, other: str, most: int) -> int:
    """Return the restricted Damerau-Levenshtein distance, or `most` + 1 if it is greater.

    Edits are insertions, deletions, substitutions and transpositions of adjacent letters; no letter
    is edited twice. F. J. Damerau, "A technique for computer detection and correction of spelling
    errors", CACM 7(3), 1964.
    """
    while one and one[:1] == other[:1]:
        one, other = one[1:], other[1:]
    if not (one and other and most):
        return min(len(one or other), most + 1)
    ways = [(one[1:], other), (one, other[1:]), (one[1:], other[1:])]
    if one[:2] == other[1::-1]:
        ways.append((one[2:], other[2:]))
    return 1 + min(edit_distance(*way, most - 1) for way in ways)
