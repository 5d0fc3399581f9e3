"""Evidence given with a question, as in BioASQ's phase B; no search is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.answers import Evidence, RankedCitation, SearchResult
from cluster.records import Citation, Passage
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls
from serve.question.understand_question import ENTITIES
from serve.search.search_shards import ShardSearch

NOT_HELD = "evidence: given PMIDs not found in this index"
RETRACTED = "evidence: given passages of retracted citations left out"


def as_evidence(passages: Iterable[Passage], held: Mapping[int, Citation]) -> list[Evidence]:
    """Return the passages as evidence, with metadata from `held`; retracted ones are left out."""
    found = (Evidence.of(p, held.get(p.pmid, Citation(p.pmid)), {}) for p in passages)
    return [item for item in found if item is not None]


async def take_given(request: Request, stages: StageCalls) -> SearchResult:
    """Return the question's distinct given passages as a search result, in the order given.

    All are evidence, except those of retracted or excluded citations. Metadata come from the index.
    Raises StageLostError if no shard answers.
    """
    question, system = request.question, request.system
    watch, shards = stages.watch, ShardSearch(stages)
    given = [p for p in dict.fromkeys(question.given) if p.pmid not in question.exclude]
    pmids = list(dict.fromkeys(passage.pmid for passage in given))
    fetched = await shards.fetch(pmids, None, count_lost=True)
    held = {f.citation.pmid: f.citation for f in fetched}
    if len(held) < len(pmids):
        watch.note(NOT_HELD)
    evidence = as_evidence(given, held)
    if len(evidence) < len(given):
        watch.note(RETRACTED)
    entities = await stages.call(ENTITIES, question.body) if system.expand else None
    read = await shards.version()
    citations = (held.get(pmid, Citation(pmid)) for pmid in pmids[: request.limit])
    return SearchResult(
        question=question,
        system=system.name,
        citations=tuple(RankedCitation.of(citation, 0.0, {}) for citation in citations),
        evidence=tuple(evidence),
        snippets=(),
        entities=tuple(entities or ()),
        degraded=tuple(watch.degraded),
        coverage=shards.coverage,
        index_version=read.version,
        last_source=read.last_source,
        index_date=read.date,
        timings_ms=dict(watch.timings_ms),
    )
