"""Make a Boolean search strategy from a question.

question ─► semantic search ─► reference citations ─┐
   └─► concept blocks ─► candidate terms ───────────┴─► terms and blocks ─► strategy
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.answers import RankedCitation, SearchResult
from cluster.errors import InputError
from cluster.index.boolean.expressions import Expression, Term
from cluster.index.filters.filters import NO_FILTERS
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls, require
from serve.pipeline.answer_question import QuestionAnswerer
from serve.question.field_tags.parse_boolean import write_pubmed
from serve.question.find_headings import find_headings
from serve.question.understand_question import CONCEPTS
from serve.search.boolean_search import fetch_citations, match_all
from serve.strategy.choose_terms import (
    ChosenBlock,
    ChosenBlocks,
    Count,
    choose_blocks,
    choose_terms,
    without_common_words,
)
from serve.strategy.concept_blocks import Concepts, ReferenceSet, concept_blocks, years_in
from serve.strategy.count_hits import VOCABULARY_LOST, HitCounter, sizes_of
from serve.strategy.strategy_limits import design_headings, limit_terms
from serve.strategy.strategy_records import (
    Strategy,
    StrategyBlock,
    StrategyTerm,
    both,
)

# The reference citations: at most this many, which score at least this share of the best score. The
# choice of terms weights them by this power of their share. Chosen on training questions
# (docs/benchmarks-quality.md).
MOST_REFERENCE, LEAST_SHARE, POWER = 40, 0.5, 4
DEFAULT_MAX_HITS = 500
_TOO_MANY = "no block could be added that lowers the number of hits to {:,} or less"
_YEARS = (
    "{} in the question is not searched, because it is rarely in titles and abstracts; give it as "
    "a filter to limit the dates of publication"
)
_NOT_FOUND = "words that none of the best citations of the semantic search has are left out: {}"
_MISSPELT = 'did you mean "{}"'
_ESTIMATED = "hits of very frequent terms are estimates"


async def make_strategy(
    answerer: QuestionAnswerer, request: Request, max_hits: int = DEFAULT_MAX_HITS
) -> Strategy:
    """Return a strategy for the question of `request`, with its filters as limits.

    Raises InputError if nothing is found for the question or if no term finds a citation, and
    StageLostError if a required stage fails.
    """
    found = await answerer.search(replace(request, limit=MOST_REFERENCE, sort="relevance"))
    ranked = _reference(found)
    if not ranked:
        raise InputError("question: nothing was found for it; a strategy cannot be measured")
    stages = answerer.calls()
    records = await fetch_citations(stages, [citation.pmid for citation in ranked])
    best = {c.pmid: (c.score / ranked[0].score) ** POWER for c in ranked}
    weights = [best[record.pmid] for record in records]
    reference = ReferenceSet(records, weights, stages.facts.analyser)
    question = found.understood.question if found.understood else found.question.body
    named = await require(stages.backend, stages.settings, VOCABULARY_LOST, CONCEPTS, question)
    candidates = concept_blocks(question, named, stages.facts.analyser)
    names = {h.ui.casefold(): h.name for record in records for h in record.mesh}
    filters = found.filters or NO_FILTERS
    designs = await find_headings(design_headings(filters.design), stages)
    limits, notes = limit_terms(filters, names, designs)
    counter = await _counter(candidates, stages)
    blocks = await asyncio.gather(
        *(choose_terms(one, reference, counter.count, counter.citations) for one in candidates)
    )
    lost = [one.name for one, block in zip(candidates, blocks, strict=True) if block is None]
    notes = (*_notes(found, question, lost), *notes)
    usable = without_common_words([block for block in blocks if block is not None])
    chosen = await choose_blocks(usable, limits, reference, counter.count, max_hits)
    if not chosen.kept:
        raise InputError(
            "question: none of its words and headings finds the citations of the semantic search; "
            "name the subject of the question"
        )
    made = _Made(found, question, chosen, limits, notes, reference, counter, max_hits)
    return await made.strategy(stages)


def _notes(found: SearchResult, question: str, lost: Sequence[str]) -> list[str]:
    """Return notes on the spelling, on years, and on the words `lost` that nothing has."""
    filters = found.filters or NO_FILTERS
    years = [] if filters.first_day or filters.last_day else years_in(question)
    spelling = [found.did_you_mean] if found.did_you_mean not in (None, question) else []
    names = [_NOT_FOUND.format(", ".join(lost))] if lost else []
    return [*map(_MISSPELT.format, spelling), *map(_YEARS.format, years), *names]


def _reference(found: SearchResult) -> list[RankedCitation]:
    best = max((c.score for c in found.citations), default=0.0)
    return [c for c in found.citations if c.score >= LEAST_SHARE * best > 0]


async def _counter(candidates: Sequence[Concepts], stages: StageCalls) -> HitCounter:
    terms = [term for concepts in candidates for term in concepts.terms]
    sizes, citations = await sizes_of(terms, stages.facts.analyser, stages)
    headings = {t: c.heading_hits for c in candidates for t in c.terms if t.field == "mh"}
    return HitCounter(stages, sizes | headings, citations)


@dataclass(frozen=True, slots=True)
class _Made:
    """The chosen blocks of a question, and everything that its report is made from."""

    found: SearchResult
    question: str
    chosen: ChosenBlocks
    limits: Sequence[Expression]
    notes: tuple[str, ...]
    reference: ReferenceSet
    counter: HitCounter
    max_hits: int

    async def strategy(self, stages: StageCalls) -> Strategy:
        kept = self.chosen.kept
        whole = self._joined(kept)
        matched = await match_all(stages, whole)
        covered = self._covered(kept)
        hits = len(matched.pmids)
        held = set(matched.pmids.tolist()) & set(self.reference.pmids)
        blocks = await asyncio.gather(*(self._block(block, covered) for block in kept))
        left_out = await asyncio.gather(*(self._left_out(b, covered) for b in self.chosen.left_out))
        notes = list(self.notes)
        notes += [_TOO_MANY.format(self.max_hits)] if hits > self.max_hits else []
        every = [b.exact and all(t.exact for t in b.terms) for b in (*blocks, *left_out)]
        notes += [] if all(every) else [_ESTIMATED]
        return Strategy(
            question=self.question,
            pubmed=write_pubmed(whole),
            hits=hits,
            reference=self.reference.pmids,
            found=len(held),
            recall=len(held) / max(len(self.reference.pmids), 1),
            precision=len(held) / max(hits, 1),
            blocks=tuple(blocks),
            left_out=tuple(left_out),
            limits=tuple(map(write_pubmed, self.limits)),
            notes=tuple(notes),
            max_hits=self.max_hits,
            citations=self.counter.citations,
            index_version=matched.read.version,
            last_source=matched.read.last_source,
            index_date=matched.read.date,
            coverage=matched.coverage,
            degraded=tuple(dict.fromkeys((*self.found.degraded, *matched.degraded))),
        )

    def _joined(self, blocks: Sequence[ChosenBlock]) -> Expression:
        return both([*(block.expression for block in blocks), *self.limits])

    def _covered(self, blocks: Sequence[ChosenBlock]) -> frozenset[int]:
        covered = frozenset(range(len(self.reference.pmids)))
        for block in blocks:
            covered &= block.found
        return covered

    async def _block(self, block: ChosenBlock, covered: frozenset[int]) -> StrategyBlock:
        """Return a block of the strategy, which finds the reference citations `covered`."""
        others = [other for other in self.chosen.kept if other is not block]
        alone, without = await self.counter.count([block.expression, self._joined(others)])
        without_found = len(self._covered(others))
        fields = {term.field for term in block.terms}

        def loses(dropped: Sequence[Term]) -> int:
            rest = [self.reference.found_by(t) for t in block.terms if t not in dropped]
            return len(covered - frozenset().union(*rest))

        groups = {
            field: loses([term for term in block.terms if term.field == field])
            for field in fields
            if len(fields) == 2
        }
        lost = [loses([term]) for term in block.terms]
        return replace(
            self._described(block, alone, lost),
            excludes=without_found - len(covered),
            without_hits=without.hits,
            without_mh=groups.get("mh"),
            without_tiab=groups.get("tiab"),
        )

    async def _left_out(self, block: ChosenBlock, covered: frozenset[int]) -> StrategyBlock:
        [alone] = await self.counter.count([block.expression])
        described = self._described(block, alone, [0] * len(block.terms))
        return replace(described, excludes=len(covered - block.found))

    def _described(self, block: ChosenBlock, alone: Count, loses: Sequence[int]) -> StrategyBlock:
        terms = tuple(
            StrategyTerm(
                term.field,  # type: ignore[arg-type]
                term.value,
                count.hits,
                count.exact,
                len(self.reference.found_by(term)),
                lost,
            )
            for term, count, lost in zip(block.terms, block.counts, loses, strict=True)
        )
        found = len(block.found)
        return StrategyBlock(block.name, terms, alone.hits, alone.exact, found, excludes=0)
