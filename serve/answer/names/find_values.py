"""What a question asks for that is written in one of few ways: doses, ages, rates, dates, counts,
molecules' weights, ways to take a drug, modes of inheritance, and what a number or letter tells
apart (vitamin E).
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from serve.answer.read_evidence import ReadPassage
from serve.support.compare_wording import read_wording, stem

Value = Literal["date", "rate", "dose", "time", "count", "mass", "route", "inheritance", "numbered"]

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

_ASKS: Mapping[Value, re.Pattern[str]] = {
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
    "mass": re.compile(r"\bmolecular (?:weight|mass)\b", re.IGNORECASE),
    "route": re.compile(
        r"\broutes? of (?:administration|delivery)\b"
        r"|\bhow (?:is|are|was|were|should|can|must)\b.*\b(?:administered|given|taken)\b",
        re.IGNORECASE | re.DOTALL,
    ),
    "inheritance": re.compile(
        r"\b(?:mode|pattern|type|manner|form) of (?:genetic )?inheritance\b"
        r"|\binheritance (?:pattern|mode)\b|^what is the inheritance\b"
        r"|\bhow (?:is|are)\b.*\binherited\b",
        re.IGNORECASE | re.DOTALL,
    ),
    "numbered": re.compile(
        r"\b(?:which|what)(?: [\w-]+){0,2} (?:vitamin|chromosome|phase|stage|mi(?:cro)?RNA)s?\b"
        r"|\b(?:which|what) (?:clotting|coagulation|blood) factors?\b"
        r"|\b(?:which|what) factors? (?:is|are|was|were|does|do)\b",
        re.IGNORECASE,
    ),
}
_SAYS: Mapping[Value, re.Pattern[str]] = {
    "date": re.compile(rf"\b(?:(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?)?(?:1[6-9]|20)\d\d\b"),
    "dose": re.compile(rf"\b(?:{_NUMBER}{_TO})?{_NUMBER} ?{_MASS}\b"),
    "rate": re.compile(
        rf"\b(?:{_NUMBER}{_PERCENT}?{_TO})?{_NUMBER}{_PERCENT}"
        rf"|\b{_NUMBER} (?:in|per|of|out of) (?:every )?{_NUMBER}\b"
    ),
    "time": re.compile(rf"\b(?:{_NUMBER}{_TO})?{_NUMBER}[ -]{_TIME}\b"),
    "count": re.compile(rf"\b(?:{_NUMBER}|{_SPELT})\b"),
    "mass": re.compile(
        rf"\b(?:{_NUMBER}{_TO})?{_NUMBER}[ -]?(?:k?Da|kd|kilodaltons?|daltons?)\b", re.IGNORECASE
    ),
    "route": re.compile(
        r"\b(?:(?:or|intraven|subcutane|intramuscul|intrathec|intravitre|intranas|topic|transderm"
        r"|sublingu|intraderm|rect|vagin|intraperitone|bucc|intra-?articul)(?:ous|al|ar)(?:ly)?"
        r"|inhaled|inhalation|inhalable|nasal spray)\b",
        re.IGNORECASE,
    ),
    "inheritance": re.compile(
        r"\b(?:autosomal[ -](?:(?:co)?dominant|recessive)|(?:dominant|recessive) [XY]-linked"
        r"|[XY]-linked(?: (?:dominant|recessive))?|maternally inherited"
        r"|mitochondrial inheritance)\b",
        re.IGNORECASE,
    ),
    "numbered": re.compile(
        r"\b(?:[Vv]itamin [A-Z]\d{0,2}|[Cc]hromosome (?:X|Y|\d{1,2}(?:[pq](?:\d+(?:\.\d+)?)?)?)"
        r"|[Pp]hase (?:[IV]+|\d)[ab]?|[Ss]tage (?:[IV]+|\d)[A-Ca-c]?|[Ff]actor [IVX]+a?)"
        r"(?![\w%]|-\w)|\b[XY] chromosome\b|\b(?:\d{1,2}|X)[pq]\d{1,2}(?:\.\d+)?\b"
        r"|\b(?:(?:hsa-)?miR-?|let-|micro-?RNA-|miRNA-?)\d+[a-z]{0,2}(?:-\d)?(?:-[35]p)?\b"
    ),
}
# Told of many things in one abstract: what stands near the question's words counts, and how often.
_NEAR = frozenset({"route", "inheritance", "numbered"})
# What a question counts: "doses" of "How many doses of X are needed?".
_COUNTED = re.compile(
    r"\b(?:how many|number of)\s+"
    r"((?:(?!(?:of|in|on|for|by|with|from|that|which|is|are|was|were|be|do|does"
    r"|did|has|have|had|can|could|should|will|would|there)\b)[\w-]+\s*){1,4})",
    re.IGNORECASE,
)
_ALWAYS_NUMBERED = re.compile(r"\b(?:chromosome|mi(?:cro)?RNA)s?\b", re.IGNORECASE)
# What the question has for a value that does not begin with its noun.
_NOUNS = (
    (re.compile(r"[XY] chromosome|(?:\d{1,2}|X)[pq]\d"), "chromosome"),
    (re.compile(r"hsa-|miR|let-|micro-?RNA|miRNA"), "rna"),
)
_WORD = re.compile(r"[^\W\d_][\w-]*")
# So many words after a number may what it counts stand: "two licensed oral vaccines".
NEAR_WORDS = 4
# So many words from the next of the question a value counts half.
HALF_WORDS = 2
# A text without a word of the question.
FAR_WORDS = 100
# What a passage counts that has no word of the question.
WORDLESS = 0.1
# How much a passage says less with each rank, as for names.
RANK_LOSS = 0.2


def asked_value(body: str) -> Value | None:
    """What kind of value the question asks for, None where it asks for something else."""
    return next((kind for kind, asks in _ASKS.items() if asks.search(body)), None)


def needs_a_value(body: str) -> bool:
    """Whether no other name answers: "cobalamin" is a vitamin too."""
    kind = asked_value(body)
    return kind is not None and (kind != "numbered" or bool(_ALWAYS_NUMBERED.search(body)))


def is_value(text: str, body: str) -> bool:
    """Whether `text` is written like a value of the kind that the question asks for."""
    kind = asked_value(body)
    return kind is not None and bool(_SAYS[kind].fullmatch(text))


def rank_values(
    kind: Value, passages: Sequence[ReadPassage], body: str = ""
) -> list[tuple[str, float]]:
    """Values of `kind` in the passages with their scores, best first.

    A count is a number of what the question `body` counts, where that is told: a year is no number
    of doses. Left out is what is said of those without what the question asks about ("patients not
    treated with it").

    Half of a value's score in a passage is the reader's probability that it names the answer,
    half its sentence's; that times the passage's relevance, less by rank. Scores add up over
    passages, and for a route, a mode of inheritance or a numbered thing over the mentions in one,
    each less the farther it stands from the question's words.
    """
    scores: dict[str, float] = defaultdict(float)
    counted = _counted(body) if kind == "count" else frozenset()
    for passage in passages:
        weight = passage.reading.relevance / (1 + RANK_LOSS * passage.rank)
        # A passage with more of the question's words is likelier to be about what it asks.
        weight *= WORDLESS + passage.share_of(body)
        best: dict[str, float] = {}
        for match in _SAYS[kind].finditer(passage.text):
            if kind == "numbered" and not _is_of_noun(match[0], body):
                continue
            if counted and not counted & _following(passage.text, match.end()):
                continue
            if speaks_of_others(passage.sentence_at(match.start()), body):
                continue
            text = " ".join(match[0].split())
            if kind == "route":
                # "Orally" is as "oral".
                text = text.casefold().removesuffix("ly")
            score = (_named(passage, *match.span()) + passage.sentence_score(match.start())) / 2
            known = best.get(text, 0.0)
            if kind in _NEAR:
                score *= _nearness(passage.text, match.span(), body)
                best[text] = known + score * weight
            else:
                best[text] = max(known, score * weight)
        for text, score in best.items():
            scores[text] += score
    return sorted(scores.items(), key=lambda entry: -entry[1])


def _nearness(text: str, span: tuple[int, int], body: str) -> float:
    """How near, 0 to 1, a value stands to a word of the question: "oral curevit" and
    "subcutaneous heparin" stand in one sentence.
    """
    asked = read_wording(body).words.keys() - {stem(word) for word in text[slice(*span)].split()}
    places = [match.span() for match in _WORD.finditer(text) if stem(match[0]) in asked]
    gaps = (text[end : span[0]] or text[span[1] : begin] for begin, end in places)
    words = min((len(gap.split()) for gap in gaps), default=FAR_WORDS)
    return 1 / (1 + words / HALF_WORDS)


def _is_of_noun(value: str, body: str) -> bool:
    """Whether "vitamin E" is of the noun that the question has, and not named by it."""
    first = value.split()[0].casefold()
    noun = next((noun for form, noun in _NOUNS if form.match(value)), first)
    return noun in body.casefold() and value.casefold() not in body.casefold()


def speaks_of_others(sentence: str, body: str) -> bool:
    """Whether the sentence speaks of those without what the question asks about.

    "Patients not treated with X lived 7 months" tells nothing of patients with X.
    """
    asked = read_wording(body)
    if asked.negations:
        return False
    return any(len(scope & asked.words.keys()) > 1 for scope in read_wording(sentence).negations)


def _counted(body: str) -> frozenset[str]:
    """The stems of what the question counts; the last word of it is the noun."""
    found = _COUNTED.search(body)
    words = found[1].split() if found else []
    return frozenset({stem(words[-1])} if words else ())


def _following(text: str, at: int) -> frozenset[str]:
    words = itertools.islice(_WORD.finditer(text, at), NEAR_WORDS)
    return frozenset(stem(part) for word in words for part in word[0].split("-"))


def _named(passage: ReadPassage, begin: int, end: int) -> float:
    names = (n.score for n in passage.reading.names if n.begin < end and begin < n.end)
    return max(names, default=0.0)
