"""Run the whole pipeline for a question: search, then write, under one deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Any

from cluster.answers import Answer, Evidence, Question, SearchResult, Spent
from cluster.exposure import Exposure
from cluster.index.layout import pmids_by_shard, shard_of
from cluster.records import Citation, Passage
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.search_settings import LadderSettings, RungSettings
from cluster.settings.stages.serving import ServeSettings
from cluster.settings.system_settings import SystemSettings
from serve.answer.ask_model import NO_TIME, extractive_loss
from serve.answer.write_answer import STREAM_ANSWER, WRITE, WrittenAnswer
from serve.contracts.answer_events import (
    Drafted,
    Event,
    Finished,
    Found,
    Tell,
    ignore_event,
    stream_events,
)
from serve.contracts.backend import Backend, shard_stage
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls, require
from serve.contracts.stage_watch import StageWatch
from serve.pipeline.answer_parts import answer_in_parts, parts_of
from serve.pipeline.appraise_answer import weigh_answer
from serve.pipeline.cascade import COMPARED, Budget, Costs, run_cascade
from serve.pipeline.check_exposure import check_exposure, look_up_exposure
from serve.pipeline.check_filters import check_filters, explain_no_match
from serve.pipeline.given_evidence import take_given
from serve.pipeline.present_answer import (
    positions_of,
    stated_fields,
    used_whole_index,
    with_articles_read,
    with_stances,
)
from serve.pipeline.read_request import ReadRequest, check_spelling, read_request
from serve.pipeline.reply_cache import CachingBackend
from serve.pipeline.sort_result import arranged
from serve.pipeline.trace_sources import trace_sources
from serve.question.example_questions import ExampleQuestion, example_questions, held_examples
from serve.question.understand_question import SUGGEST, Suggestion
from serve.search.choose_snippets import whole_passages
from serve.search.encoder_stage import SNIPPETS
from serve.search.search_citations import QUOTED, exclude_citations, search_citations
from serve.search.shard_stage import CITATION, IDENTIFY
from serve.search.whole_citations import decisive_passages, first_passages

# Expected time to write an extractive answer until a duration has been measured.
WRITING_MS = 200.0
# Answer of a question whose writer failed.
NOTHING_WRITTEN = WrittenAnswer((), None, "none")


def reads_whole(request: Request) -> bool:
    """Return True if the evidence found may contain several passages of one citation."""
    return bool(request.system.whole) and not request.question.given


class QuestionAnswerer:
    """Answers questions; the only state kept between questions is the measured `costs`.

    `quoted` is the maximum number of characters of passages in a prompt of the search.
    """

    def __init__(self, backend: Backend, settings: ServeSettings, quoted: int = QUOTED) -> None:
        self.backend = backend
        self._settings = settings
        self._quoted = quoted
        self.costs = Costs()

    def _calls(self, budget: Budget, tell: Tell = ignore_event) -> StageCalls:
        """Return the stage calls of one question, with its deadline."""
        watch = StageWatch(self._settings.request_deadline_s, tell, budget.search_ms / 1000)
        return StageCalls(self.backend, self._settings, watch, self._quoted)

    def calls(self) -> StageCalls:
        """Return stage calls with the deadline of one request, for Boolean searches."""
        return self._calls(Budget(0))

    async def search(self, request: Request, tell: Tell = ignore_event) -> SearchResult:
        """Return ranked citations and evidence; raises StageLostError if no shard answers."""
        budget = Budget(request.question.budget_ms)
        stages = self._calls(budget, tell)
        read = await self._read(request, stages)
        found, better = await asyncio.gather(
            self._search(read.typed_request, stages, budget), check_spelling(read, stages)
        )
        read, found = await self._search_corrected(read, found, better, stages, budget)
        found = read.restore_question(found, request.question, better)
        return arranged(await self._ended(found, read.typed_request, stages, budget), request.sort)

    async def _read(self, request: Request, stages: StageCalls) -> ReadRequest:
        """Interpret the request; raises InputError for filter values that no article has."""
        read = await read_request(request, stages)
        asked, filters = read.request, read.request.filters
        if not asked.question.given:
            online = asked.system.online.when != "never"
            filters = await check_filters(filters, stages, online=online)
        filters = filters.no_later_than(self._settings.until)
        return replace(read, request=replace(asked, filters=filters))

    def _search(
        self, request: Request, stages: StageCalls, budget: Budget
    ) -> Coroutine[Any, Any, SearchResult]:
        """Return the given evidence, or the result of a search."""
        if request.question.given:
            return take_given(request, stages)
        if request.system.ladder is not None:
            return self._search_by_cascade(request, request.system.ladder, stages, budget)
        return search_citations(request, stages)

    async def _search_corrected(
        self,
        read: ReadRequest,
        found: SearchResult,
        better: str | None,
        stages: StageCalls,
        budget: Budget,
    ) -> tuple[ReadRequest, SearchResult]:
        """Search for the corrected question `better` if nothing was found.

        If that also finds nothing, the result names the filters that exclude every article.
        """
        if better is not None and not found.citations:
            read = read.corrected(better)
            found = await self._search(read.typed_request, stages, budget)
        asked = read.request
        if not (found.citations or asked.question.given or asked.system.online.when == "always"):
            found = replace(found, filtered_out=await explain_no_match(asked.filters, stages))
        return read, found

    async def _ended(
        self, found: SearchResult, request: Request, stages: StageCalls, budget: Budget
    ) -> SearchResult:
        """Return `found` with its snippets, and the failed stages, timings and costs so far."""
        watch = stages.watch
        return replace(
            found,
            snippets=await self._snippets(request, found, stages),
            degraded=tuple(watch.degraded),
            timings_ms=dict(watch.timings_ms),
            spent=budget.spent(found),
            filters=request.filters or None,
            model_calls=watch.model_calls,
        )

    async def _search_by_cascade(
        self, request: Request, ladder: LadderSettings, stages: StageCalls, budget: Budget
    ) -> SearchResult:
        cached = CachingBackend(stages.backend)
        wider = replace(request, limit=max(request.limit, COMPARED))

        async def search(rung: RungSettings) -> SearchResult:
            asked = replace(wider, system=request.system.at(rung))
            return await search_citations(asked, stages.over(cached))

        found, rungs = await run_cascade(ladder, budget, self.costs, search)
        found = exclude_citations(found, (), request.limit, request.system.evidence)
        return replace(found, spent=Spent(request.question.budget_ms, budget.spent_ms, rungs))

    async def _snippets(
        self, request: Request, found: SearchResult, stages: StageCalls
    ) -> tuple[Passage, ...]:
        if not request.snippets:
            return ()
        length = request.system.snippet_sentences
        evidence = first_passages(found.evidence) if reads_whole(request) else found.evidence
        if not length:
            return tuple(whole_passages(evidence))
        asked = (request.question.body, tuple(evidence), length)
        return tuple(await stages.call(SNIPPETS, *asked) or ())

    async def suggest(self, prefix: str, limit: int, headings: bool) -> list[Suggestion]:
        """Return completions of `prefix`, as `Expander.suggest` does.

        Raises StageLostError if the expander fails.
        """
        lost = "the vocabulary does not answer; try again in a moment"
        return await require(self.backend, self._settings, lost, SUGGEST, prefix, limit, headings)

    async def examples(self) -> list[ExampleQuestion]:
        """Return example questions whose evidence is in the index; raises StageLostError."""
        every = example_questions()
        shards = self.backend.facts.shards
        wanted = pmids_by_shard({pmid for example in every for pmid in example.pmids}, shards)
        lost = "a shard does not answer; try again in a moment"
        replies = await asyncio.gather(
            *(
                require(self.backend, self._settings, lost, IDENTIFY.at(shard_stage(n)), pmids, ())
                for n, pmids in wanted.items()
            )
        )
        return held_examples(every, {pmid for reply in replies for pmid in reply.values()})

    async def citation(self, pmid: int) -> Citation | None:
        """Return the record of `pmid`, or None if it is not in the index.

        Raises StageLostError if its shard does not answer.
        """
        number = shard_of(pmid, self.backend.facts.shards)
        lost = f"shard {number} does not answer; try again in a moment"
        method = CITATION.at(shard_stage(number))
        return await require(self.backend, self._settings, lost, method, pmid)

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        """Return the exposure of articles to retractions; None if a shard does not answer."""
        stages = self._calls(Budget(0))
        found = await look_up_exposure(pmids, stages)
        # The replies of the other shards are enough for an answer, but not to compare two versions.
        return None if stages.watch.degraded else found

    async def answer(
        self, request: Request, tell: Tell = ignore_event, context: Sequence[Evidence] = ()
    ) -> Answer:
        """Return a cited answer; a question with several parts is answered part by part.

        The verdict is not_enough_evidence if the writer fails. `tell` receives an event for each
        finished stage, the search result, draft text and each answered part. `context` is the
        evidence if the search finds none.
        """
        if parts := parts_of(request):
            deadline_s = self._settings.request_deadline_s
            return await answer_in_parts(request, parts, self._within, deadline_s, tell)
        system, budget_ms = request.system, request.question.budget_ms
        budget = Budget(budget_ms, min(self._writing_ms(system), budget_ms / 2))
        stages = self._calls(budget, tell)
        read = await self._read(request, stages)
        found, better = await asyncio.gather(
            self._search(read.typed_request, stages, budget), check_spelling(read, stages)
        )
        read, found = await self._search_corrected(read, found, better, stages, budget)
        found = read.restore_question(found, request.question, better)
        found = found if found.evidence else replace(found, evidence=tuple(context))
        request = read.typed_request
        question = request.question
        tell(Found(arranged(found, request.sort)))
        searched_all = used_whole_index(found, request, stages.watch.degraded)
        style, begun = self._style(system, budget, stages.watch), budget.spent_ms
        asked = (question, found.evidence, style)
        written = await self._write(asked, stages, tell)
        if style is system.answer:
            self.costs.learn(f"write {system.name}", budget.spent_ms - begun)
        evidence = with_stances(found.evidence, written)
        if written is not NOTHING_WRITTEN:
            found = with_articles_read(found)
        if reads_whole(request):
            evidence = decisive_passages(evidence, [sentence.text for sentence in written.ideal])
        written, studies = await trace_sources(written, evidence, request, stages, budget.left_ms)
        exposure = await check_exposure(asked, written, evidence, stages)
        found = await self._ended(replace(found, evidence=evidence), request, stages, budget)
        found = replace(found, evidence=(*found.evidence, *studies))
        answer = Answer(
            **{name.name: getattr(found, name.name) for name in fields(found)},
            **self._stated(question, written, searched_all=searched_all),
            check=system.answer.check,
            writing_calls=written.model_calls,
            exposure=exposure,
        )
        listed = arranged(weigh_answer(answer), request.sort)
        return replace(listed, shown=positions_of(written.shown, listed.evidence))

    async def _write(
        self,
        asked: tuple[Question, Sequence[Evidence], AnswerSettings],
        stages: StageCalls,
        tell: Tell,
    ) -> WrittenAnswer:
        """Return what the writer returns for `asked`, after recording its failures."""
        if tell is ignore_event:
            written = await stages.call(WRITE, *asked)
        else:
            written = await stages.stream(lambda text: tell(Drafted(text)), STREAM_ANSWER, *asked)
        for loss in written.degraded if written else ():
            stages.watch.note(loss)
        return written or NOTHING_WRITTEN

    def _stated(
        self, question: Question, written: WrittenAnswer, *, searched_all: bool
    ) -> dict[str, Any]:
        """Return `stated_fields`, the model that wrote them, and whether nothing is related."""
        stated = stated_fields(question, written)
        by_model = stated["origin"] == "generated"
        stated["written_by"] = self.backend.facts.language_model if by_model else ""
        return {**stated, "unrelated": written.unrelated and searched_all}

    def _within(self, deadline_s: float) -> QuestionAnswerer:
        """Return an answerer with another deadline, which shares the measured costs."""
        settings = self._settings.model_copy(update={"request_deadline_s": deadline_s})
        answerer = QuestionAnswerer(self.backend, settings, self._quoted)
        answerer.costs = self.costs
        return answerer

    def _writing_ms(self, system: SystemSettings) -> float:
        return self.costs.expected(f"write {system.name}", WRITING_MS)

    def _style(self, system: SystemSettings, budget: Budget, watch: StageWatch) -> AnswerSettings:
        """Return the preset's answer settings, or extractive ones if time is short."""
        style = system.answer
        if style.ideal_from == "evidence" or self._writing_ms(system) <= budget.left_ms:
            return style
        watch.note(extractive_loss(NO_TIME))
        return style.model_copy(update={"ideal_from": "evidence", "exact_from": "evidence"})

    async def answer_events(self, request: Request) -> AsyncGenerator[Event, None]:
        """Yield the events of `answer`, and finally Finished with the answer."""

        async def work(tell: Tell) -> Event:
            return Finished(await self.answer(request, tell))

        async with aclosing(stream_events(work)) as events:
            async for event in events:
                yield event
