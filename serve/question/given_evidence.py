"""Evidence that comes with a question, as in BioASQ's phase B: nothing is searched for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cluster.answers import Evidence, Question, RankedCitation, SearchResult
from cluster.records import Citation, Passage
from cluster.settings.system_settings import SystemSettings
from serve.graph.watched_stages import WatchedStages
from serve.search.search_shards import ShardSearch

NOT_HELD = "evidence: given PMIDs not found in this index"
RETRACTED = "evidence: given passages of retracted citations left out"


def as_evidence(passages: Iterable[Passage], held: Mapping[int, Citation]) -> list[Evidence]:
    """Those not retracted; what is known of each comes from its citation in `held`."""
    found = (Evidence.of(p, held.get(p.pmid, Citation(p.pmid)), {}) for p in passages)
    return [item for item in found if item is not None]


async def take_given(
    question: Question,
    system: SystemSettings,
    limit: int,
    stages: WatchedStages,
    shards: ShardSearch,
) -> SearchResult:
    """The given passages as if a search had found them, in their order, each once.

    All are evidence but those of retracted and of excluded citations; `limit` bounds the
    citations. The index says what it knows of them. Raises StageLostError when no shard
    answers.
    """
    watch = stages.watch
    given = [p for p in dict.fromkeys(question.given) if p.pmid not in question.exclude]
    pmids = list(dict.fromkeys(passage.pmid for passage in given))
    fetched = await shards.fetch(pmids, None, count_lost=True)
    held = {f.citation.pmid: f.citation for f in fetched}
    if len(held) < len(pmids):
        watch.note(NOT_HELD)
    evidence = as_evidence(given, held)
    if len(evidence) < len(given):
        watch.note(RETRACTED)
    entities = await stages.entities(question.body) if system.expand else []
    read = await shards.version()
    return SearchResult(
        question,
        system.name,
        tuple(RankedCitation.of(held.get(pmid, Citation(pmid)), 0.0, {}) for pmid in pmids[:limit]),
        tuple(evidence),
        (),
        tuple(entities),
        tuple(watch.degraded),
        shards.coverage,
        read.version,
        read.last_source,
        dict(watch.timings_ms),
    )
