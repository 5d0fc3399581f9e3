"""Reduce a model's reply to the sentences to check, each with the PMIDs that its marks cite.

A mark such as `[2]`, `[Snippet 2]` or `[30311221, 21306691]` is either the number of a passage
(paper 001's supported answer) or a PMID (paper 004's task B). Marks are removed, because only
attribution may cite. The words, numbers and units of the returned sentences are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from serve.support.attribute_sentences import split_sentences

MIN_WORDS = 4
MAX_RANGE = 20

_WORD = r"(?:PMIDs?|snippets?|passages?|references?|refs?\.?)"
_PART = rf"(?:{_WORD}\s*(?::\s*)?)?\d+(?:\s*[-\u2013]\s*\d+)?"
_GROUP = rf"(?:\[\s*{_PART}(?:\s*(?:[,;&]|and)\s*{_PART})*\s*\]|\(\s*{_WORD}\s*(?::\s*)?\d[^()]*\))"
# White space before a mark is matched only from its first character; otherwise a long run of it
# would take quadratic time.
_MARKS = re.compile(rf"(?<!\s)\s*{_GROUP}(?:\s*(?:,\s*)?{_GROUP})*", re.IGNORECASE)
# In "It helps. [2] It is safe." the mark is moved before the stop, so that it stays with the
# sentence that it belongs to.
_AFTER_STOP = re.compile(
    rf"(?<=[\w%)])(?P<stop>[.!?])(?P<marks>\s*{_GROUP}(?:\s*(?:,\s*)?{_GROUP})*)(?=\s+[A-Z]|\s*$)",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
_TAG = re.compile(r"</?\s*evidence\s*>|<\|[^|>]*\|>", re.IGNORECASE)
# A weak model sometimes recites its evidence instead of answering from it.
_ECHO = re.compile(r"\s*<evidence>\s*\[1\]", re.IGNORECASE)
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+(?=\S)")
_LEAD_IN = re.compile(
    r"^(?:(?:the )?(?:final |short |brief )?answer(?: to the question)?(?: is)?\s*:\s*"
    r"|(?:conclusions?|results?|background|findings|summary)\s*:\s*"
    r"|(?:according to|based on|from) (?:the )?(?:given |provided |above )?"
    r"(?:passages?|evidence|context|abstracts?)(?: provided)?,\s*)",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?][\"')\]]*$")
_LETTERS = re.compile(r"[^\W\d_]{2,}")


def clean_answer(
    text: str, known: Mapping[int, int] = MappingProxyType({})
) -> dict[str, tuple[int, ...]]:
    """Return the complete and distinct sentences of `text` that state something, in order.

    Each has the PMIDs of its marks; `known` maps the numbers in marks to PMIDs, and other numbers
    are ignored. Drops a last sentence that is cut off, questions, copies of the evidence block,
    lists of numbers, and repetitive sentences.
    """
    if _ECHO.match(text):
        return {}
    found = [
        _read_sentence(sentence, known)
        for line in _TAG.sub(" ", text).splitlines()
        for sentence in split_sentences(_AFTER_STOP.sub(r"\g<marks>\g<stop>", _plain(line)))
    ]
    if found and not _ENDS.search(found[-1][0]):
        found.pop()
    said: dict[str, tuple[int, ...]] = {}
    for sentence, pmids in found:
        if _says_something(sentence):
            said[sentence] = tuple(dict.fromkeys((*said.get(sentence, ()), *pmids)))
    return said


def _plain(line: str) -> str:
    return _LEAD_IN.sub("", _LIST_MARK.sub("", line).strip())


def _read_sentence(sentence: str, known: Mapping[int, int]) -> tuple[str, tuple[int, ...]]:
    """Return the sentence without its marks, and the PMIDs that they cite."""
    numbers = [n for marks in _MARKS.findall(sentence) for n in _numbers(marks)]
    plain = " ".join(_MARKS.sub("", sentence).split())
    return plain, tuple(dict.fromkeys(known[n] for n in numbers if n in known))


def _numbers(marks: str) -> list[int]:
    found: list[int] = []
    for first, last in _NUMBERS.findall(marks):
        begin, end = int(first), int(last or first)
        found += range(begin, end + 1) if 0 <= end - begin <= MAX_RANGE else [begin, end]
    return found


def _says_something(sentence: str) -> bool:
    words = [word.casefold() for word in _LETTERS.findall(sentence)]
    if len(words) < MIN_WORDS or not _ENDS.search(sentence) or sentence.endswith("?"):
        return False
    digits = sum(c.isdigit() for c in sentence)
    return sum(c.isalpha() for c in sentence) > 2 * digits and not _loops(words)


def _loops(words: Sequence[str]) -> bool:
    """Return whether three successive words occur three times, or most words are repeated."""
    runs = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    if any(runs.count(run) >= 3 for run in set(runs)):
        return True
    return len(words) >= 12 and len(set(words)) < len(words) / 3
