"""Numbers with their units where a question asks for one: doses, ages, rates, dates, counts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from serve.answer.read_evidence import ReadPassage

Quantity = Literal["date", "rate", "dose", "time", "count"]

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
)
_NUMBER = r"\d+(?:[.,]\d+)*"
# "15% to 45%", "0.5-1 mg": a range is one quantity, its unit may stand once.
_TO = r" ?(?:-|\u2013|to|and) ?"
_MASS = (
    r"(?:[mkun\u00b5\u03bc]?g|micrograms?|milligrams?|grams?|m?l|millilit(?:er|re)s?|IU|units?|mmol)"
    r"(?:/(?:kg|day|d|m2|h|min|ml|mL))*"
)
_TIME = r"(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|h|min)"
_PERCENT = r"(?:%| ?per ?cent)"
_SPELT = r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred)"

_ASKS: Mapping[Quantity, re.Pattern[str]] = {
    "date": re.compile(r"^when\b|\b(?:what|which) (?:year|date|month)\b", re.IGNORECASE),
    "dose": re.compile(
        r"^(?:\w+ )?(?:what|which|how much)\b.*\b(?:dose|dosage)\b(?! (?:adjust|reduc|escal))",
        re.IGNORECASE,
    ),
    "rate": re.compile(
        r"\b(?:percent(?:age)?|proportion|fraction|prevalence|incidence|frequency|sensitivity"
        r"|specificity|(?:fatality|mortality|survival|response|cure|transmission) rate"
        r"|what is the (?:risk|probability|chance) of)\b",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\b(?:(?:what|which) (?:mean |median |usual )?age|how old|how long|half-life"
        r"|median survival|mean age|incubation period)\b",
        re.IGNORECASE,
    ),
    "count": re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE),
}
_SAYS: Mapping[Quantity, re.Pattern[str]] = {
    "date": re.compile(rf"\b(?:(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?)?(?:1[6-9]|20)\d\d\b"),
    "dose": re.compile(rf"\b(?:{_NUMBER}{_TO})?{_NUMBER} ?{_MASS}\b"),
    "rate": re.compile(
        rf"\b(?:{_NUMBER}{_PERCENT}?{_TO})?{_NUMBER}{_PERCENT}"
        rf"|\b{_NUMBER} (?:in|per|of|out of) (?:every )?{_NUMBER}\b"
    ),
    "time": re.compile(rf"\b(?:{_NUMBER}{_TO})?{_NUMBER}[ -]{_TIME}\b"),
    "count": re.compile(rf"\b(?:{_NUMBER}|{_SPELT})\b"),
}
# How much a passage says less with each rank, as for names.
RANK_LOSS = 0.2


def asked_quantity(body: str) -> Quantity | None:
    """What kind of quantity the question asks for, None where it asks for something else."""
    return next((kind for kind, asks in _ASKS.items() if asks.search(body)), None)


def rank_quantities(kind: Quantity, passages: Sequence[ReadPassage]) -> list[tuple[str, float]]:
    """Quantities of `kind` in the passages with their scores, best first.

    Half of a quantity's score in a passage is the reader's probability that it names the answer,
    half its sentence's; that times the passage's relevance, less by rank. Scores add up over
    passages.
    """
    scores: dict[str, float] = defaultdict(float)
    for passage in passages:
        weight = passage.reading.relevance / (1 + RANK_LOSS * passage.rank)
        best: dict[str, float] = {}
        for match in _SAYS[kind].finditer(passage.text):
            text = " ".join(match[0].split())
            score = (_named(passage, *match.span()) + passage.sentence_score(match.start())) / 2
            best[text] = max(best.get(text, 0.0), score * weight)
        for text, score in best.items():
            scores[text] += score
    return sorted(scores.items(), key=lambda entry: -entry[1])


def _named(passage: ReadPassage, begin: int, end: int) -> float:
    names = (n.score for n in passage.reading.names if n.begin < end and begin < n.end)
    return max(names, default=0.0)
