"""Boolean searches of the service: a page of the matching citations, or all of them in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from cluster.appraisal import WeighedCitation
from cluster.records import Citation
from serve.contracts.stage_watch import StageLostError
from serve.pipeline.answer_question import QuestionAnswerer
from serve.pipeline.check_filters import check_journals
from serve.question.field_tags.parse_boolean import BooleanQuery, read_boolean, write_pubmed
from serve.search.boolean_search import Matched, fetch_citations, match_all

# Number of citations that are in memory at once while all are exported.
PART = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanResult:
    """A page of the citations that match a Boolean query.

    `total` is the number of all matching citations. `citations` are those from `offset` on, newest
    first, ties by descending PMID. `query` is the query as it was read, in PubMed's syntax, and
    `notes` say how this differs from PubMed's reading, and which headings entry terms stand for. If
    a shard did not answer, `coverage` is below all of the shards ("1/2"), `degraded` says so, and
    `total` lacks its citations.
    """

    query: str
    notes: tuple[str, ...]
    total: int
    offset: int
    citations: tuple[WeighedCitation, ...]
    index_version: str
    last_source: str
    index_date: str
    coverage: str
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BooleanHits:
    """All citations that match a query, as PMIDs with the newest first."""

    answerer: QuestionAnswerer
    read: BooleanQuery
    matched: Matched
    pmids: tuple[int, ...]

    async def page(self, limit: int, offset: int) -> BooleanResult:
        """Return the citations from `offset` on; raises StageLostError."""
        wanted = self.pmids[offset : offset + limit]
        found = await fetch_citations(self.answerer.calls(), wanted) if wanted else []
        version = self.matched.read
        return BooleanResult(
            query=write_pubmed(self.read.expression),
            notes=(*self.read.notes, *self.matched.notes),
            total=len(self.pmids),
            offset=offset,
            citations=tuple(map(WeighedCitation.of, found)),
            index_version=version.version,
            last_source=version.last_source,
            index_date=version.date,
            coverage=self.matched.coverage,
            degraded=self.matched.degraded,
        )

    def check_complete(self) -> None:
        """Raise StageLostError if a shard did not answer."""
        if self.matched.degraded:
            raise StageLostError("a shard does not answer, so the export would lack citations")

    async def parts(self) -> AsyncIterator[list[Citation]]:
        """Yield the records of all citations in parts of up to PART; raises StageLostError."""
        for begin in range(0, len(self.pmids), PART):
            wanted = self.pmids[begin : begin + PART]
            found = await fetch_citations(self.answerer.calls(), wanted)
            if len(found) < len(wanted):
                raise StageLostError("the index was updated during the export; export again")
            yield found


async def match_query(answerer: QuestionAnswerer, query: str) -> BooleanHits:
    """Return the citations that match `query`, which has PubMed's syntax.

    Raises InputError for a query that cannot be applied, and StageLostError if no shard answers.
    """
    read = read_boolean(query)
    await check_journals(read.expression, answerer.calls())
    matched = await match_all(answerer.calls(), read.expression)
    return BooleanHits(answerer, read, matched, tuple(matched.newest_first().tolist()))
