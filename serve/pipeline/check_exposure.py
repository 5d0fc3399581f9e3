"""Check an answer's sources for retractions, and decide again without the exposed ones."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cluster.answers import NOT_ENOUGH, Answer, Evidence, ExactAnswer, Question, Verdict
from cluster.exposure import Doubt, Exposure, Knockout, find_exposure, join_doubts, source_words
from cluster.index.layout import pmids_by_shard
from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import WRITE, WrittenAnswer
from serve.contracts.stage_calls import StageCalls
from serve.search.shard_stage import DOUBTS, REFERENCES

UNCHECKED = "retractions of the cited articles not checked"
UNDECIDED = "not decided again without the exposed sources"
# Names of an exact answer in a sentence.
MAX_NAMES = 3
# Maximum number of articles to check, to bound the time.
MAX_SOURCES = 100


async def check_exposure(
    asked: tuple[Question, Sequence[Evidence], AnswerSettings],
    written: WrittenAnswer,
    evidence: Iterable[Evidence],
    stages: StageCalls,
) -> Exposure | None:
    """Return the exposure of the sources of `written`; None if a shard does not answer.

    `asked` is what the answer was written from, and `evidence` has its stances. If sources of a
    stated answer are exposed, the writer decides again from the remaining evidence.
    """
    exposure = await look_up_exposure(_sources(written, evidence), stages)
    if exposure is None or not exposure.exposed or written.verdict == NOT_ENOUGH:
        return exposure
    question, every, style = asked
    left_out = {source.pmid for source in exposure.exposed}
    remaining = [item for item in every if item.passage.pmid not in left_out]
    decide = WRITE.with_loss(UNDECIDED)
    again = await stages.call(decide, replace(question, guess=False), remaining, style)
    if again is None:
        return exposure
    now, before = (_outcome(each.verdict, each.exact) for each in (again, written))
    return replace(exposure, without=Knockout(_words(now), _words(before), now == before))


def mark_exposed(answer: Answer) -> Answer:
    """Return the answer with a notice on each exposed article in its lists."""
    exposed = answer.exposure.exposed if answer.exposure else ()
    if not exposed:
        return answer
    words = {source.pmid: source_words(source) for source in exposed}

    def mark(pmid: int, notice: str) -> str:
        said = words.get(pmid, "")
        # The parts of an answer have been marked before.
        return notice if said in notice else f"{notice} {said}".strip()

    return replace(
        answer,
        evidence=tuple(
            replace(item, notice=mark(item.passage.pmid, item.notice)) for item in answer.evidence
        ),
        citations=tuple(replace(c, notice=mark(c.pmid, c.notice)) for c in answer.citations),
    )


async def look_up_exposure(pmids: Iterable[int], stages: StageCalls) -> Exposure | None:
    """Return the exposure of articles; None if a shard does not answer."""
    sources = list(dict.fromkeys(pmids))[:MAX_SOURCES]
    if not sources:
        return None
    by_shard = pmids_by_shard(sources, stages.facts.shards)
    ask = {n: REFERENCES.of_shard(n).with_loss(UNCHECKED) for n in by_shard}
    replies = await asyncio.gather(*(stages.call(ask[n], own) for n, own in by_shard.items()))
    cited: dict[int, tuple[int, ...] | None] = {}
    for reply in replies:
        cited.update(reply or {})
    wanted = sorted({*sources, *(pmid for own in cited.values() for pmid in own or ())})
    ask_all = [DOUBTS.of_shard(n).with_loss(UNCHECKED) for n in range(stages.facts.shards)]
    marked = await asyncio.gather(*(stages.call(method, wanted) for method in ask_all))
    if None in replies:
        return None
    doubts: dict[int, Doubt] = {}
    for states in marked:
        join_doubts(doubts, states or {})
    return find_exposure(sources, cited, doubts)


def _sources(written: WrittenAnswer, evidence: Iterable[Evidence]) -> list[int]:
    """Return the PMIDs that the answer rests on: those that it cites and those with a stance."""
    if written.verdict == NOT_ENOUGH:
        return [pmid for sentence in written.closest for pmid in sentence.pmids]
    sentences = (*written.ideal, *written.supported)
    cited = [pmid for s in sentences for pmid in (*s.pmids, *s.contradicted)]
    sides = [i.passage.pmid for i in evidence if i.stance in ("support", "contradict")]
    return [*cited, *sides]


def _outcome(verdict: Verdict, exact: ExactAnswer) -> str | frozenset[str]:
    """Return what an answer states, so that two answers can be compared."""
    if verdict != "answered":
        return verdict.replace("_", " ")
    if isinstance(exact, list):
        return frozenset(names[0] for names in exact if names) or verdict
    return exact or verdict


def _words(outcome: str | frozenset[str]) -> str:
    return outcome if isinstance(outcome, str) else ", ".join(sorted(outcome)[:MAX_NAMES])
