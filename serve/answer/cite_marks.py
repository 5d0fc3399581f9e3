"""Citations that a model wrote itself: `[2]`, `[Snippet 2]`, `[30311221, 21306691]`.

A mark is either the number of a passage (paper 001's supported answer) or a PMID (paper 004's
task B). Numbers that match no passage in the prompt are removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from serve.answer.clean_answer import begun, clean_answer
from serve.support.attribute_sentences import split_sentences

MAX_RANGE = 20

_WORD = r"(?:PMIDs?|snippets?|passages?|refs?\.?)"
_PART = rf"(?:{_WORD}\s*(?::\s*)?)?\d+(?:\s*[-\u2013]\s*\d+)?"
_GROUP = rf"(?:\[\s*{_PART}(?:\s*(?:[,;&]|and)\s*{_PART})*\s*\]|\(\s*{_WORD}\s*(?::\s*)?\d[^()]*\))"
# White space before a mark is matched only from its first character; otherwise a long run of it
# would take quadratic time.
_MARKS = re.compile(rf"(?<!\s)\s*{_GROUP}(?:\s*(?:,\s*)?{_GROUP})*", re.IGNORECASE)
# In "It helps. [2] It is safe." the mark is moved before the stop, as the other rules expect.
_AFTER_STOP = re.compile(
    rf"(?<=[\w%)])(?P<stop>[.!?])(?P<marks>\s*{_GROUP}(?:\s*(?:,\s*)?{_GROUP})*)(?=\s+[A-Z]|\s*$)",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"(\d+)(?:\s*[-\u2013]\s*(\d+))?")
# Paper 001's form: "This conclusion is supported by [Snippet 2], which states that '...'".
_STATES = re.compile(
    rf"^.{{0,60}}?\b(?:is|are) supported by\s*(?P<marks>{_GROUP}),?\s*which\s+"
    r"(?:states?|says?|shows?|reports?)(?:\s+that)?\s*['\"\u2018\u201c]?(?P<said>.+?)"
    r"['\"\u2019\u201d]?(?P<stop>[.!?]?)$",
    re.IGNORECASE,
)


def clean_cited(
    text: str, known: Mapping[int, int], prompt: str = ""
) -> dict[str, tuple[int, ...]]:
    """Return the sentences of `text` that `clean_answer` keeps, each with the PMIDs it cites.

    `known` maps the numbers in marks to PMIDs.
    """
    cited = read_cited(text, known)
    pmids = dict(cited)
    kept = clean_answer("\n".join(sentence for sentence, _ in cited), prompt)
    return {sentence: pmids.get(sentence, ()) for sentence in kept}


def read_cited(text: str, known: Mapping[int, int]) -> list[tuple[str, tuple[int, ...]]]:
    """Return the sentences of `text` without their marks, each with the PMIDs it cites."""
    return [
        _read_sentence(sentence, known)
        for line in text.splitlines()
        for sentence in split_sentences(_AFTER_STOP.sub(_before_stop, line))
    ]


def _before_stop(match: re.Match[str]) -> str:
    return f"{match['marks']}{match['stop']}"


def _read_sentence(sentence: str, known: Mapping[int, int]) -> tuple[str, tuple[int, ...]]:
    numbers = [n for marks in _MARKS.findall(sentence) for n in _numbers(marks)]
    states = _STATES.match(sentence)
    if states:
        said = states["said"].strip().rstrip("'\"\u2019\u201d")
        sentence = f"{begun(said)}{states['stop'] or '.'}"
    plain = " ".join(_MARKS.sub("", sentence).split())
    plain = re.sub(r"\.\.(?=\s|$)", ".", plain)
    return plain, tuple(dict.fromkeys(known[n] for n in numbers if n in known))


def _numbers(marks: str) -> list[int]:
    found: list[int] = []
    for first, last in _NUMBERS.findall(marks):
        begin, end = int(first), int(last or first)
        found += range(begin, end + 1) if 0 <= end - begin <= MAX_RANGE else [begin, end]
    return found
