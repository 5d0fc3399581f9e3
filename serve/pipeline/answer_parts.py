"""Answer a question with several parts: search for the whole, then answer each part.

Each part is asked as a follow-up to the parts before it. Its evidence is that of its own search, or
that of the whole question if its own search finds none; the verdict's calibration holds for the
evidence of one search, so they are not mixed. The total time is that of one question.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol

from cluster.answers import NOT_ENOUGH, Answer, Evidence, RankedCitation, SearchResult, Spent, Turn
from cluster.exposure import exposure_words, join_exposures
from serve.contracts.answer_events import Event, Found, PartAnswered, Tell
from serve.contracts.request import Request
from serve.pipeline.appraise_answer import tell_caveats
from serve.pipeline.check_exposure import mark_exposed
from serve.pipeline.sort_result import arranged
from serve.question.field_tags.find_tags import tags_in
from serve.question.split_question import QuestionPart, split_question

# Characters of a part's answer that the next part may refer to.
MAX_ANSWER_CHARACTERS = 1000
LACKING = "There is not enough evidence for this part: {}"
DISAGREE = "The sources disagree about this part: {}"


class PartAnswerer(Protocol):
    """Answerer of the whole question and of each part, whose stated type keeps it whole."""

    async def search(self, request: Request, tell: Tell) -> SearchResult:
        """Return ranked citations and evidence."""
        ...

    async def answer(self, request: Request, tell: Tell, context: Sequence[Evidence]) -> Answer:
        """Return the answer to a part; `context` is used if nothing is found."""
        ...


@dataclass(frozen=True, slots=True)
class Clock:
    """Remaining time of a question in parts, since `begun` (time.monotonic)."""

    begun: float
    deadline_s: float
    budget_ms: int

    @property
    def spent_ms(self) -> float:
        """Milliseconds since the question began."""
        return (time.monotonic() - self.begun) * 1000

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least a millisecond."""
        return max(self.deadline_s - self.spent_ms / 1000, 0.001)

    def share_ms(self, steps: int) -> int:
        """Return an equal share of the remaining budget for one of `steps`; 0 if unlimited."""
        return max(int((self.budget_ms - self.spent_ms) / steps), 1) if self.budget_ms else 0


def parts_of(request: Request) -> tuple[QuestionPart, ...]:
    """Return the parts of the question to answer separately; () to answer it as a whole.

    A question with a stated type, one in PubMed's search syntax, and one for a file format that
    forces a choice have a single answer.
    """
    question = request.question
    if question.type != "unknown" or question.guess or tags_in(question.body):
        return ()
    return split_question(question.body)


async def answer_in_parts(
    request: Request,
    parts: Sequence[QuestionPart],
    within: Callable[[float], PartAnswerer],
    deadline_s: float,
    tell: Tell,
) -> Answer:
    """Return the joined answer to the parts; `tell` receives PartAnswered for each of them.

    `within` returns an answerer whose requests end after a number of seconds.
    """
    clock = Clock(time.monotonic(), deadline_s, request.question.budget_ms)
    steps = len(parts) + 1
    whole = await within(clock.left_s).search(_with_budget(request, clock.share_ms(steps)), tell)
    tell(Found(whole))

    def tell_progress(event: Event) -> None:
        # The evidence of a part is in its answer.
        if not isinstance(event, Found):
            tell(event)

    answers: list[Answer] = []
    for number, part in enumerate(parts, 1):
        asked = _part_request(request, part, answers)
        asked = _with_budget(asked, clock.share_ms(steps - number))
        answerer = within(clock.left_s)
        answers.append(await answerer.answer(asked, tell_progress, whole.evidence))
        tell(PartAnswered(number, len(parts), answers[-1]))
    return join_parts(request, whole, answers, Spent(clock.budget_ms, round(clock.spent_ms, 1)))


def _with_budget(request: Request, budget_ms: int) -> Request:
    return replace(request, question=replace(request.question, budget_ms=budget_ms))


def _part_request(request: Request, part: QuestionPart, before: Sequence[Answer]) -> Request:
    """Return the request for a part, with the parts before it as earlier turns."""
    turns = [
        Turn(answer.question.body, " ".join(s.text for s in answer.ideal)[:MAX_ANSWER_CHARACTERS])
        for answer in before
    ]
    question = replace(request.question, body=part.text, type=part.type)
    return replace(request, question=question, turns=(*request.turns, *turns))


def _distinct(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    first: dict[str, Evidence] = {}
    for item in evidence:
        first.setdefault(item.passage.id, item)
    return tuple(first.values())


def join_parts(
    request: Request, whole: SearchResult, parts: Sequence[Answer], spent: Spent
) -> Answer:
    """Return the answers to the parts as one: all sentences and evidence, and each part in `parts`.

    The verdict is "answered" if one part has it, else "mixed" if one part has that. A caveat names
    each part without an answer and each part on which the sources disagree.
    """
    stated = [part for part in parts if part.verdict != NOT_ENOUGH]
    ideal = tuple(sentence for part in stated for sentence in part.ideal)
    evidence = _distinct([item for part in parts for item in part.evidence])
    verdicts = [part.verdict for part in stated]
    exposure = join_exposures(part.exposure for part in parts)
    origins = [part.origin for part in stated]
    found = replace(
        whole,
        question=replace(whole.question, budget_ms=request.question.budget_ms),
        citations=_cited_too(whole, parts),
        evidence=_distinct([*evidence, *whole.evidence]),
        degraded=tuple(dict.fromkeys(loss for r in (whole, *parts) for loss in r.degraded)),
        timings_ms=_total([result.timings_ms for result in (whole, *parts)]),
        spent=spent,
        model_calls=whole.model_calls + sum(part.model_calls for part in parts),
    )
    answer = Answer(
        **{field.name: getattr(found, field.name) for field in fields(found)},
        verdict="answered" if "answered" in verdicts else "mixed" if stated else NOT_ENOUGH,
        confidence=min(part.confidence for part in stated or parts),
        ideal=ideal,
        exact=None,
        origin=next((o for o in ("generated", "extractive") if o in origins), "none"),
        supported=tuple(sentence for part in stated for sentence in part.supported),
        closest=() if stated else tuple(s for part in parts for s in part.closest),
        check=request.system.answer.check,
        writing_calls=sum(part.writing_calls for part in parts),
        caveats=(
            *exposure_words(exposure),
            *tell_caveats(ideal, evidence),
            *(_part_caveats(parts) if stated else ()),
        ),
        exposure=exposure,
        parts=tuple(parts),
        unrelated=all(part.unrelated for part in parts),
        written_by=next((part.written_by for part in stated if part.written_by), ""),
    )
    return arranged(mark_exposed(answer), request.sort)


def _part_caveats(parts: Iterable[Answer]) -> list[str]:
    words = {NOT_ENOUGH: LACKING, "mixed": DISAGREE}
    return [
        words[part.verdict].format(part.question.body) for part in parts if part.verdict in words
    ]


def _cited_too(whole: SearchResult, parts: Iterable[Answer]) -> tuple[RankedCitation, ...]:
    """Return the citations of the whole question, then those that only a part found and cites."""
    found = {citation.pmid: citation for citation in whole.citations}
    for part in parts:
        cited = {pmid for s in part.ideal for pmid in (*s.pmids, *s.contradicted)}
        for citation in part.citations:
            if citation.pmid in cited:
                found.setdefault(citation.pmid, citation)
    return tuple(found.values())


def _total(timings: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for timing in timings:
        for stage, ms in timing.items():
            total[stage] = round(total.get(stage, 0.0) + ms, 1)
    return total
