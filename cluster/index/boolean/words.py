"""Words, phrases and truncated words, and the stemmed terms of texts that may have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from cluster.index.terms.term_table import place_of
from cluster.text.analysis import Analyser

# Words that the analyser drops and that a truncated word may stand for.
STOP_WORDS = ("into", "such", "that", "their", "then", "there", "these", "they", "this", "will",
              "with")  # fmt: skip
# The letter y is a vowel or a consonant, depending on the letters before it.
_VOWEL_CONSONANT = re.compile("[aeiouy][^aeiouy]"), re.compile("[aeiouy][^aeiou]")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Adjacent words; with `truncated`, any end of the last one. Case and hyphens are ignored."""

    words: tuple[str, ...]
    truncated: bool

    @classmethod
    def of(cls, value: str, analyser: Analyser) -> Self:
        """Return the phrase of a value such as `heart failure` or `diabet*`."""
        return cls(tuple(analyser.words(value).split()), value.endswith("*"))

    @property
    def needle(self) -> str:
        """The phrase as a substring to find in a text's words joined by spaces."""
        return f" {' '.join(self.words)}{'' if self.truncated else ' '}"

    def alternatives(self, analyser: Analyser, table: pa.Table) -> list[Sequence[str]]:
        """Return lists of terms: a text with the phrase has at least one term of each list.

        `table` are the sorted terms of the texts. Words that determine no term, such as stop words,
        have no list.
        """
        whole = self.words[: len(self.words) - self.truncated]
        found: list[Sequence[str]] = [terms for word in whole if (terms := analyser.terms(word))]
        if self.truncated and not any(w.startswith(self.words[-1]) for w in STOP_WORDS):
            found.append(_terms_of_truncated(self.words[-1], table))
        return found


def _terms_of_truncated(begin: str, table: pa.Table) -> list[str]:
    """Return the terms of all words that begin with `begin`: longer terms, and shorter stems."""
    first, end = place_of(table, begin), place_of(table, begin + "\U0010ffff")
    return [*table["term"].slice(first, end - first).to_pylist(), *shorter_stems(begin)]


def shorter_stems(begin: str) -> set[str]:
    """Return all strings that may be the stem of a word in `begin`* but do not begin with it.

    The English stemmer removes suffixes and may then change the last letter to e, i or l. It does
    not shorten a word beyond the first consonant after a vowel (its region R1), except for the
    endings -ed, -ing and -es where they contain that consonant.
    """
    least = min(_least_length(pattern.search(begin), begin) for pattern in _VOWEL_CONSONANT)
    stems = {"sky"} if begin.startswith("skie") else set()
    if begin[1:].startswith("yin"):
        # The stem of "dying" is "die".
        stems.add(begin[0] + "ie")
    for length in range(max(least, 1), len(begin) + 1):
        stems |= {begin[:length], *(begin[: length - 1] + last for last in "eil")}
    return {stem for stem in stems if not stem.startswith(begin)} | {begin}


def _least_length(found: re.Match[str] | None, begin: str) -> int:
    """Return the minimum length of a stem; `found` are the first vowel and consonant of `begin`."""
    if not found:
        return len(begin) - 1
    return found.end() - 2 * (found[0] in ("ed", "in", "es"))
