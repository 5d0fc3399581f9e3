"""The answer where no model writes one: the evidence sentences that answer best, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from typing import Literal

from cluster.answers import ExactAnswer, Question, Sentence
from cluster.records import NO_TITLE
from cluster.text.sentences import asks
from serve.answer.decide_yesno import CLEAR, weigh
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import PassageReader, ReadPassage, Side, spoken_by
from serve.answer.section_labels import strip_brackets, strip_label
from serve.question.asked_aspect import OFF_ASPECT, asked_aspect
from serve.question.asked_concepts import NOTHING_ASKED, AskedConcepts
from serve.question.comparisons import (
    compared_with,
    compares,
    is_nearer_another,
    is_of_all,
    names_another,
    speaks_of,
)
from serve.question.contrary_forms import points_alike, turn_round
from serve.support.compare_wording import coverage, numbers_agree, polarity_agrees, read_wording
from serve.support.find_references import holds_reference
from serve.support.read_harm import allays
from serve.support.read_method import asks_of_method, only_prepares
from serve.support.read_mood import pairs_up

# On 127 train questions kept from the reader one sentence more cost 0.02 of ROUGE-2 F1 for each
# type, and one less as much but for yes/no.
SENTENCES_BY_TYPE: Mapping[str, int] = {
    "yesno": 1,
    "factoid": 2,
    "list": 2,
    "summary": 2,
    "unknown": 2,
}
# Of 100 train questions for a summary, putting sentences on all that is asked first gains 0.008 of
# ROUGE-2 F1; of 260 with names it costs 0.003. Of 60 questions of our own ten are withheld as
# their evidence is nowhere on all of it, or on its aspect: none was answered before. Of 464 of
# train 21 are, of which ten had sentences that answer.
TOLD = frozenset({"summary", "unknown"})
MAX_WORDS = 200
MIN_WORDS = 5
# Longer "sentences" are lists of results or lost their full stops.
LONG_WORDS = 80
MAX_PMIDS = 3
# Two sentences that share so much of their wording, numbers and polarity alike, say one thing.
SAME_COVERAGE = 0.7
# How many sentences are tried for one that takes the answer's side by itself.
MAX_TRIED = 6
# What a passage counts that has no word of the question. On 122 yes/no train questions the first
# sentence is of a gold document in 100, without this weight in 97.
WORDLESS = 0.1
# What a sentence of a summary counts that only tells an aim or what was done. Of 80 train questions
# ROUGE-2 F1 is 0.329 with it and 0.323 without; of 60 for a list it would cost 0.011.
PREPARES = 0.1
IN_CONTRAST = "In contrast: "

_BEGINS = re.compile(r"^[\"'(\[]?[A-Z0-9\u0391-\u03a9]|^[a-z]{0,3}[A-Z0-9]")
# "1)" and "b)" before an item of a list.
_ITEM = re.compile(r"(?<![^\s(])\w{1,3}\)")
# The infinitive of a purpose, up to the end without a comma after which a statement may follow.
_AIM = re.compile(r"^To [a-z]+ [^,]*$")
_ENDS = re.compile(r"[.!][\"')\]]*$")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of the evidence without its label; `score` is how much it answers."""

    text: str
    passage: ReadPassage
    score: float
    whole: bool

    @property
    def pmid(self) -> int:
        """The PMID of its citation."""
        return self.passage.item.passage.pmid


@dataclass(frozen=True, slots=True)
class Extract:
    """Sentences of the evidence, or of a model whose own decision they follow (`side` None).

    `side` is the answer to a yes/no question that the first of them states; "" where they decide
    nothing: none of those that were tried takes the side of the evidence as a whole, or none is on
    what another question asks.
    """

    sentences: tuple[Sentence, ...]
    side: Side | Literal[""] | None = None
    origin: Literal["generated", "extractive"] = "extractive"

    def agrees_with(self, exact: ExactAnswer) -> bool:
        """Whether the sentences may stand under the exact answer."""
        return self.side is None or self.side == exact


def extract_ideal(
    question: Question,
    passages: Sequence[ReadPassage],
    reader: PassageReader,
    answers: Sequence[RankedName] = (),
    *,
    asked: AskedConcepts = NOTHING_ASKED,
    max_sentences: int | None = None,
    max_words: int = MAX_WORDS,
) -> Extract:
    """The sentences of `passages` that answer best, best first, each with its PMIDs.

    Sentences are verbatim but for a leading section label. Near-equal ones are said once
    and cite together, at most three PMIDs. A fragment (cut by a passage's bounds, or over
    80 words) is used only if there is no whole sentence at all. The first sentence of an answer
    to a yes/no question takes, read by itself, the side that the evidence takes, for a yes as
    `AskedConcepts` demands; where sources disagree the second is one of the other side. Of a
    summary those of citations that name what is `asked` go first, of these those that speak of the
    aspect, and where the exact answer is names, `answers` (best first), those that say the best
    one. `max_sentences` defaults by question type.
    """
    limit = max_sentences or SENTENCES_BY_TYPE[question.type]
    candidates = _candidates(passages)
    if question.type in TOLD:
        return _told(question.body, candidates, asked, limit, max_words)
    if answers:
        candidates.sort(key=lambda c: not states(c.text, answers[0].names))
    if question.type != "yesno":
        chosen = _chosen(candidates, limit, max_words)
        return Extract(tuple(chosen), _nothing_on(asked_aspect(question.body), candidates))
    balance = weigh(passages)
    other = _other(balance.side)
    first = _of_side(question.body, candidates, balance.side, reader, asked)
    if first is None:
        return Extract(tuple(_chosen(candidates, limit, max_words)), "")
    against = None
    if balance.divided:
        against = _of_side(question.body, candidates, other, reader, asked)
    rest = [c for c in candidates if not _within(c, first) and c.passage.weight(other) < CLEAR]
    chosen = _chosen([first, *rest], limit if against is None else 1, max_words)
    return Extract((*chosen, *_contrast(against)), balance.side)


def _told(
    body: str, candidates: list[Candidate], asked: AskedConcepts, limit: int, max_words: int
) -> Extract:
    """The sentences of a summary."""
    named, aspect = _naming(candidates, asked), asked_aspect(body)
    of_method = asks_of_method(body)

    def place(candidate: Candidate) -> tuple[bool, float]:
        on = aspect is not None and aspect.search(candidate.text)
        weight = OFF_ASPECT if aspect and not on else 1
        # "Patients with X were treated with Y" says how X is treated.
        if not (on or of_method) and only_prepares(candidate.text):
            weight *= PREPARES
        return candidate.pmid not in named, -candidate.score * weight

    chosen = _chosen(sorted(candidates, key=place), limit, max_words)
    return Extract(tuple(chosen), _nothing_on(aspect, [c for c in candidates if c.pmid in named]))


def _nothing_on(
    aspect: re.Pattern[str] | None, candidates: Sequence[Candidate]
) -> Literal[""] | None:
    """The `side` of an Extract: "" where no candidate is on the aspect, or there is none."""
    return None if any(aspect is None or aspect.search(c.text) for c in candidates) else ""


def states(text: str, names: Sequence[str]) -> bool:
    """Whether the text has one of the names, whatever its case."""
    said = text.casefold()
    return any(name.casefold() in said for name in names)


def is_stated(
    question: Question, passages: Sequence[ReadPassage], side: Side, reader: PassageReader
) -> bool:
    """Whether a sentence of the evidence takes `side` on the yes/no question by itself."""
    return _of_side(question.body, _candidates(passages), side, reader) is not None


def quote_against(
    question: Question, passages: Sequence[ReadPassage], side: Side, reader: PassageReader
) -> Sentence | None:
    """A sentence of the evidence that takes the side other than `side`, marked as in contrast."""
    against = _of_side(question.body, _candidates(passages), _other(side), reader)
    return next(_contrast(against), None)


def _contrast(against: Candidate | None) -> Iterator[Sentence]:
    if against is not None:
        yield Sentence(IN_CONTRAST + against.text, (against.pmid,), 1.0)


def _of_side(
    body: str,
    candidates: Sequence[Candidate],
    side: Side,
    reader: PassageReader,
    asked: AskedConcepts = NOTHING_ASKED,
) -> Candidate | None:
    """The best sentence of passages on `side` that takes it by itself.

    It is of the subject of what is `asked`, or for a no near it, and for a yes of a citation that
    names all of it.

    Where none does, of a passage that is clearly on that side one that takes it together with the
    sentence before, to which "It did not reduce mortality" points back.
    """
    compared = compared_with(body)
    fitting = [c for c in candidates if speaks_of(c.text, compared)]
    if side == "yes":
        named = _naming(fitting, asked)
        fitting = [candidate for candidate in fitting if candidate.pmid in named]

    def place(candidate: Candidate) -> tuple[bool, float]:
        # A passage that holds more of the question's words is likelier to be about what it asks.
        share = WORDLESS + candidate.passage.share_of(body)
        weight = candidate.score * candidate.passage.weight(side) * share
        return not compares(candidate.text, compared), -weight

    def is_meant(candidate: Candidate) -> bool:
        meant = asked.is_of_subject if side == "yes" else asked.is_near_subject
        return meant(candidate.text)

    ranked = sorted(fitting, key=place)
    clear = (c for c in ranked[:MAX_TRIED] if c.passage.weight(side) >= CLEAR)
    longer = filter(None, map(_with_the_one_before, clear))
    tried = chain(list(filter(is_meant, ranked))[:MAX_TRIED], filter(is_meant, longer))
    return next((c for c in tried if _takes(c.text, side, body, reader)), None)


def _naming(candidates: Sequence[Candidate], asked: AskedConcepts) -> frozenset[int]:
    """The PMIDs of those citations whose evidence names all that is asked about."""
    texts: dict[int, str] = {}
    for candidate in candidates:
        item = candidate.passage.item
        known = texts.setdefault(candidate.pmid, item.title)
        if item.passage.text not in known:
            texts[candidate.pmid] = f"{known} {item.passage.text}"
    return frozenset(pmid for pmid, text in texts.items() if asked.are_named(text))


def _takes(sentence: str, side: Side, body: str, reader: PassageReader) -> bool:
    """Whether the sentence by itself takes `side`, and no yes to the opposite question as well.

    A reader that says yes to both has not understood which way the sentence points; only a
    sentence whose words point where the question's do is believed then.
    """
    if pairs_up(sentence) or (side == "no" and allays(sentence, body)):
        return False
    if side == "yes" and (
        names_another(sentence, body)
        or is_nearer_another(sentence, body)
        or not is_of_all(sentence, body)
    ):
        return False
    if spoken_by(sentence, body, reader) != side:
        return False
    turned = turn_round(body)
    if side == "no" or not turned or spoken_by(sentence, turned, reader) != "yes":
        return True
    return points_alike(body, sentence)


def _within(candidate: Candidate, other: Candidate) -> bool:
    return candidate.passage is other.passage and candidate.text in other.text


def _with_the_one_before(candidate: Candidate) -> Candidate | None:
    spans = candidate.passage.reading.sentences
    text = candidate.passage.text
    for before, span in pairwise(spans):
        if text[span.begin : span.end].strip().endswith(candidate.text):
            return replace(candidate, text=strip_label(text[before.begin : span.end].strip()))
    return None


def _other(side: Side) -> Side:
    return "no" if side == "yes" else "yes"


def _chosen(candidates: Sequence[Candidate], limit: int, max_words: int) -> list[Sentence]:
    chosen: list[Sentence] = []
    words = 0
    for candidate in candidates:
        twin = next((n for n, s in enumerate(chosen) if _same(s.text, candidate.text)), None)
        if twin is not None:
            chosen[twin] = _cited_too(chosen[twin], candidate.pmid)
            continue
        length = len(candidate.text.split())
        if len(chosen) < limit and words + length <= max_words:
            chosen.append(Sentence(candidate.text, (candidate.pmid,), 1.0))
            words += length
    return chosen


def _candidates(passages: Sequence[ReadPassage]) -> list[Candidate]:
    """The sentences that may stand in an answer, best first."""
    found = [candidate for passage in passages for candidate in _sentences(passage)]
    whole_ones = [c for c in found if c.whole]
    return sorted(whole_ones or found, key=lambda c: -c.score)


def _sentences(passage: ReadPassage) -> Iterator[Candidate]:
    title = passage.item.passage.section == "title"
    for span in passage.reading.sentences:
        text = strip_label(passage.text[span.begin : span.end].strip())
        text = strip_brackets(text) if title else text
        if text == NO_TITLE or len(text.split()) < MIN_WORDS or asks(text):
            continue
        # An answer cites by its PMIDs alone: a link in an abstract may have been planted.
        if holds_reference(text):
            continue
        score = span.score * passage.reading.relevance
        yield Candidate(text, passage, score, _is_whole(text, title))


def _is_whole(text: str, title: bool) -> bool:
    """Whether `text` begins and ends like a sentence; a title needs no full stop.

    What closes a bracket that it does not open begins in the middle, and "To assess X in Y." is an
    aim without a statement.
    """
    if not _opens_what_it_closes(text) or _AIM.match(text):
        return False
    ends = title or bool(_ENDS.search(text))
    return ends and bool(_BEGINS.match(text)) and len(text.split()) <= LONG_WORDS


def _opens_what_it_closes(text: str) -> bool:
    depths = accumulate((c == "(") - (c == ")") for c in _ITEM.sub("", text))
    return min(depths, default=0) >= 0


def _same(one: str, other: str) -> bool:
    here, there = read_wording(one), read_wording(other)
    return one == other or (
        numbers_agree(there, here)
        and polarity_agrees(here, there)
        and coverage(here, there) >= SAME_COVERAGE
        and coverage(there, here) >= SAME_COVERAGE
    )


def _cited_too(sentence: Sentence, pmid: int) -> Sentence:
    if pmid in sentence.pmids or len(sentence.pmids) == MAX_PMIDS:
        return sentence
    return replace(sentence, pmids=(*sentence.pmids, pmid))
