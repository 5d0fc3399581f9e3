"""Compare two sentences by what dense similarity misses: numbers, negation, direction, names.

Negation follows NegEx (Chapman et al. 2001): a cue negates the words after it up to the end of the
clause, here at most `NEGATION_REACH` content words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import tantivy

NEGATION_REACH = 6

_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W_]+(?:[-'/][^\W_]+)*|[;:.,()%]")
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
_CUES = """
no not never without neither nor cannot fail fails failed failing lack lacks lacked lacking
absence absent unable none excluded
"""
_NEGATIONS = frozenset(_CUES.split())
_CLAUSE_ENDS = frozenset({*".;:()", "but", "however", "although", "whereas", "while", "though"})
# Words that include a negation, and the words that they negate.
_OPPOSITES = {
    "dispensable": "essential",
    "ineffective": "effective",
    "unlikely": "likely",
    "inactive": "active",
    "insufficient": "sufficient",
    "insignificant": "significant",
    "unrelated": "related",
    "unchanged": "changed",
    "unaffected": "affected",
    "nonsignificant": "significant",
    "non-significant": "significant",
}
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
_RISES = ("increase", "elevate", "raise", "higher", "upregulate")
_FALLS = ("decrease", "reduce", "lower", "downregulate", "decline")
_VERDICT = re.compile(r"^\W*(?:yes|no)\s*[,.:;]\s+", re.IGNORECASE)


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
    """Lexical features of a sentence: weighted stems and the scope of each negation.

    `numbers` maps each number to its units ("" for none). `initials` maps the initials of each run
    of three to five words to the stems of those words.
    """

    words: dict[str, float]
    negations: tuple[frozenset[str], ...]
    numbers: dict[str, frozenset[str]]
    directions: frozenset[str]
    initials: dict[str, frozenset[str]]


@lru_cache(maxsize=8192)
def read_wording(text: str) -> Wording:
    """Return the wording of a sentence. Names (digits or inner capitals) weigh 2, words 1."""
    # Remove a leading verdict ("No, it does not"): it does not negate the words after it.
    text = _VERDICT.sub("", _plain(text))
    tokens = _TOKEN.findall(text)
    words: dict[str, float] = {}
    scopes: list[set[str]] = []
    reach = 0
    for token, following in pairwise([*tokens, ""]):
        lower = token.casefold()
        if lower in _CLAUSE_ENDS:
            reach = 0
        elif (lower in _NEGATIONS or lower.endswith("n't")) and following.casefold() != "only":
            scopes.append(set())
            reach = NEGATION_REACH
        elif lower in _OPPOSITES:
            root = stem(_OPPOSITES[lower])
            words[root] = 1.0
            scopes.append({root})
        elif (
            lower not in FUNCTION_WORDS
            and token[0].isalnum()
            and not token.isdigit()
            and len(token) > 1
        ):
            root = stem(token)
            words[root] = 2.0 if _is_name(token) else 1.0
            if reach:
                scopes[-1].add(root)
                reach -= 1
    negations = tuple(frozenset(scope) for scope in scopes if scope)
    return Wording(words, negations, _numbers(text), _directions(words), _initials(tokens))


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


def polarity_agrees(said: Wording, source: Wording) -> bool:
    """Return True if `source` negates what `said` negates, and nothing that `said` affirms.

    Two wordings of a fact have different negation scopes, so half of the shared words of a scope
    is enough. Opposite directions (increases, reduces) also disagree.
    """
    shared = said.words.keys() & source.words.keys()
    if not all(_is_negated(scope & shared, source) for scope in said.negations):
        return False
    if not all(_is_negated(scope & shared, said) for scope in source.negations if scope & shared):
        return False
    both = said.directions and source.directions
    return not both or bool(said.directions & source.directions)


def contradicts(said: Wording, source: Wording) -> bool:
    """Return True if `source` contradicts `said`, judged by negations and directions.

    Two negative sentences whose scopes share few words do not contradict each other: "did not
    improve outcome" and "failed to bring any benefit".
    """
    if polarity_agrees(said, source):
        return False
    if not said.negations or not source.negations:
        return True
    if said.directions and source.directions and not said.directions & source.directions:
        return True
    shared = said.words.keys() & source.words.keys()
    return any(2 * len(scope & shared) >= len(scope) for scope in said.negations + source.negations)


def _is_negated(words: frozenset[str], wording: Wording) -> bool:
    return any(len(words & scope) * 2 >= len(words) > 0 for scope in wording.negations)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).replace("\u03bc", "u")
    return re.sub(r"[\u2010-\u2015\u2212]", "-", text).replace("\u2019", "'")


def _is_name(token: str) -> bool:
    return any(c.isdigit() for c in token) or any(c.isupper() for c in token[1:])


def holds(source: Wording, word: str) -> bool:
    """Return True if `source` has the stem `word` as a word, as initials or as its parts."""
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


def _directions(words: dict[str, float]) -> frozenset[str]:
    rises = any(stem(w) in words for w in _RISES)
    falls = any(stem(w) in words for w in _FALLS)
    return frozenset(name for name, there in (("up", rises), ("down", falls)) if there)


def _initials(tokens: list[str]) -> dict[str, frozenset[str]]:
    words = [t for t in tokens if t[0].isalpha() and t.casefold() not in FUNCTION_WORDS]
    runs = (words[i : i + n] for n in (3, 4, 5) for i in range(len(words) - n + 1))
    # Words are compared by their stems, so initials are stemmed too: "ALS" becomes "al".
    return {stem("".join(word[0] for word in run)): frozenset(map(stem, run)) for run in runs}
