"""Compare the numbers, units and names of two sentences, which embeddings barely distinguish."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import tantivy

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:[-'/][^\W_]+)*")
_UNIT = (
    r"(?:%|percent\b|per cent\b|(?:ug|mg|kg|g|ml|l|mm|cm|[nu]?m|kda|years?|months?|weeks?|days?"
    r"|hours?|h|min|fold)\b)"
)
# In a range, the unit may follow only the second number: "10-12%".
_NUMBER = re.compile(
    rf"(?<![\w.])(?<![A-Za-z]-)(\d+(?:[.,]\d+)*)(?![\d-]*[A-Za-z]\d)"
    rf"(?:\s*-?({_UNIT})|(?=\s*(?:-|to|and)\s*\d+(?:\.\d+)?\s*({_UNIT})))?",
    re.IGNORECASE,
)
_SPELT = "two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_SPELT.split(), start=2)}
_SMALL_WORDS = """
a an the of in on at to for from by with and or as is are was were be been being it its this that
these those which who whom what when where how why do does did can could may might must should
would will shall has have had having than then there their they them we our us i you he she his
her also both such other more most into through during between among about after before over under
up down out if so only very any all each some many much one not no nor without neither cannot never
yes however although whereas while but including include includes included using used use based
associated known found shown show shows study studies result results suggest suggests role answer
question evidence indicate indicates
"""
FUNCTION_WORDS = frozenset(_SMALL_WORDS.split())
# A yes or no that opens a sentence: "No, it does not."
VERDICT = re.compile(r"^\W*(yes|no)\s*[,.:;]\s*", re.IGNORECASE)


@lru_cache(maxsize=1)
def _stemmer() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.raw())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the word's English stem in lower case; words with a digit are not stemmed."""
    if any(c.isdigit() for c in word):
        return word.casefold()
    stems: list[str] = _stemmer().analyze(word)
    return stems[0] if stems else word.casefold()


@dataclass(frozen=True, slots=True)
class Wording:
    """Lexical features of a sentence: weighted stems, numbers and initials.

    `numbers` maps each number to its units ("" for none). `initials` maps the initials of each run
    of three to five words to the stems of those words.
    """

    words: dict[str, float]
    numbers: dict[str, frozenset[str]]
    initials: dict[str, frozenset[str]]


@lru_cache(maxsize=8192)
def read_wording(text: str) -> Wording:
    """Return the wording of a sentence. Names (digits or inner capitals) weigh 2, words 1."""
    text = VERDICT.sub("", _plain(text))
    tokens = _TOKEN.findall(text)
    words = {
        stem(token): 2.0 if _is_name(token) else 1.0
        for token in tokens
        if not token.isdigit() and len(token) > 1 and token.casefold() not in FUNCTION_WORDS
    }
    return Wording(words, _numbers(text), _initials(tokens))


def coverage(said: Wording, source: Wording) -> float:
    """Return the weighted share, 0 to 1, of the content words of `said` that `source` has.

    A hyphenated word also counts if all its parts do, and an abbreviation if the other side has
    words with its initials. Returns 0 if there are no content words.
    """
    total = sum(said.words.values())
    if not total:
        return 0.0
    spelt: set[str] = set()
    for initials, stems in said.initials.items():
        if initials in source.words:
            spelt |= stems
    held = sum(w for word, w in said.words.items() if word in spelt or holds(source, word))
    return held / total


def numbers_agree(said: Wording, source: Wording) -> bool:
    """Return True if `source` has each number of `said`, with the same unit if it has one."""
    return all(
        number in source.numbers and (units <= source.numbers[number] or units == {""})
        for number, units in said.numbers.items()
    )


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).replace("\u03bc", "u")
    return re.sub(r"[\u2010-\u2015\u2212]", "-", text).replace("\u2019", "'")


def _is_name(token: str) -> bool:
    return any(c.isdigit() for c in token) or any(c.isupper() for c in token[1:])


def holds(source: Wording, word: str) -> bool:
    """Return True if `source` has the stem `word`, words with these initials, or its parts."""
    if word in source.words or word in source.initials:
        return True
    parts = [p for p in re.split(r"[-/]", word) if p]
    return len(parts) > 1 and all(stem(p) in source.words or p in source.numbers for p in parts)


def _numbers(text: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    spelt = re.sub(r"\w+", lambda m: _NUMBER_WORDS.get(m[0].casefold(), m[0]), text)
    for match in _NUMBER.finditer(spelt):
        value = re.sub(r",(?=\d{3}(?!\d))", "", match[1]).rstrip(".,")
        found.setdefault(value, set()).add(_unit(match[2] or match[3] or ""))
    return {value: frozenset(units) for value, units in found.items()}


def _unit(text: str) -> str:
    unit = text.casefold()
    if unit in ("percent", "per cent"):
        return "%"
    return unit.removesuffix("s") if len(unit) > 3 else unit


def _initials(tokens: list[str]) -> dict[str, frozenset[str]]:
    words = [t for t in tokens if t[0].isalpha() and t.casefold() not in FUNCTION_WORDS]
    runs = (words[i : i + n] for n in (3, 4, 5) for i in range(len(words) - n + 1))
    # Words are compared by their stems, so initials are stemmed too: "ALS" becomes "al".
    return {stem("".join(word[0] for word in run)): frozenset(map(stem, run)) for run in runs}
