"""Interpret a request: its field tags, identifiers of citations, and previous turns.

A question without any of these is searched as typed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster.answers import Evidence, Interpretation, Question, RankedCitation, SearchResult
from cluster.index.filters.filters import NO_FILTERS
from cluster.index.layout import shard_of
from cluster.index.read_shard import Fetched
from cluster.records import Citation
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageCalls
from serve.contracts.stage_watch import StageLostError
from serve.question.complete_question import MAX_CHARACTERS, complete_question
from serve.question.field_tags.identifiers import Identifiers, read_identifiers
from serve.question.field_tags.parse_tags import heading_candidates
from serve.question.field_tags.read_tags import (
    UnknownHeadingError,
    joined_filters,
    read_tags,
)
from serve.question.find_headings import find_headings, unknown_heading
from serve.question.guess_type import begins_as_question, typed
from serve.question.understand_question import DID_YOU_MEAN
from serve.search.search_shards import ShardSearch
from serve.search.shard_stage import IDENTIFY

CORRECTED = "nothing was found for the question as typed; this one is searched instead"
_SUMMARY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """The request to search, its interpretation, and the citations that it names.

    `understood` is None if the question is searched as typed.
    """

    request: Request
    understood: Interpretation | None = None
    named: tuple[Fetched, ...] = ()

    @property
    def typed_request(self) -> Request:
        """The request, with a guessed type if the question's type is unknown."""
        return replace(self.request, question=typed(self.request.question))

    def corrected(self, body: str) -> ReadRequest:
        """Return the request with a corrected question, for one that found nothing."""
        known = self.understood or Interpretation(body)
        understood = replace(known, question=body, notes=(*known.notes, CORRECTED))
        return replace(self, request=_asking(self.request, body), understood=understood)

    def restore_question(
        self, found: SearchResult, asked: Question, did_you_mean: str | None
    ) -> SearchResult:
        """Return `found` as the result of the original question, with named citations first."""
        question = replace(asked, type=found.question.type)
        found = replace(
            found, question=question, understood=self.understood, did_you_mean=did_you_mean
        )
        wanted = [f for f in self.named if f.citation.pmid not in asked.exclude]
        return _named_first(found, wanted, self.request.limit) if wanted else found


async def read_request(request: Request, stages: StageCalls) -> ReadRequest:
    """Interpret `request`.

    Raises InputError for field tags that cannot be applied, and StageLostError if a required stage
    fails.
    """
    question = request.question
    if question.given:
        return ReadRequest(request)
    if identifiers := read_identifiers(question.body):
        return await _named(request, identifiers, stages)
    candidates = heading_candidates(question.body)
    try:
        tags = read_tags(question.body, await find_headings(candidates, stages))
    except UnknownHeadingError as error:
        raise await unknown_heading(str(error), error.value, stages) from None
    read = tags or Interpretation(question.body)
    words = read.question
    body, completed_by = await complete_question(words, request.turns, stages)
    if tags is None and not completed_by:
        return ReadRequest(request)
    filters = joined_filters(request.filters, read.filters or NO_FILTERS)
    understood = replace(
        read, question=body, filters=read.filters or None, completed_by=completed_by
    )
    asked = _asking(request, body)
    if completed_by == "rules" and begins_as_question(words):
        # The text now begins with the previous question; take the type from the new one.
        kind = typed(replace(question, body=words)).type
        asked = replace(asked, question=replace(asked.question, type=kind))
    return ReadRequest(replace(asked, filters=filters), understood)


def _asking(request: Request, body: str) -> Request:
    return replace(request, question=replace(request.question, body=body))


async def _named(request: Request, wanted: Identifiers, stages: StageCalls) -> ReadRequest:
    """Interpret a request that consists of identifiers; the titles become the question."""
    found = await _identified(wanted, stages)
    keys = wanted.keys
    fetched = await ShardSearch(stages).fetch(list(dict.fromkeys(found.values())), None)
    missing = [key for key in keys if key not in found]
    lacks = (f"not in this index: {', '.join(missing or keys)}",) if missing or not fetched else ()
    if not fetched:
        return ReadRequest(request, Interpretation(request.question.body, notes=lacks))
    pmids = tuple(f.citation.pmid for f in fetched)
    text = " ".join(_heading_of(f.citation) for f in fetched)[:MAX_CHARACTERS].strip()
    understood = Interpretation(text or request.question.body, pmids=pmids, notes=lacks)
    return ReadRequest(_asking(request, understood.question), understood, tuple(fetched))


async def _identified(wanted: Identifiers, stages: StageCalls) -> dict[str, int]:
    """Return the PMID of each identifier that is in the index; raises StageLostError."""
    shards, calls = stages.facts.shards, []
    for number in range(shards):
        pmids = [pmid for pmid in wanted.pmids if shard_of(pmid, shards) == number]
        if pmids or wanted.dois or wanted.pmcids:
            asked = (pmids, wanted.dois, wanted.pmcids)
            calls.append(stages.call(IDENTIFY.of_shard(number), *asked))
    replies = await asyncio.gather(*calls)
    if all(reply is None for reply in replies):
        raise StageLostError("no shard of the index answered; try again in a moment")
    held = {key: pmid for reply in replies if reply for key, pmid in reply.items()}
    return {key: held[key] for key in wanted.keys if key in held}


def _heading_of(citation: Citation) -> str:
    return citation.title if citation.has_title else citation.abstract[:_SUMMARY_CHARACTERS]


def _named_first(found: SearchResult, named: Sequence[Fetched], limit: int) -> SearchResult:
    """Return `found` with the named citations first, and only their passages as evidence."""
    pmids = {f.citation.pmid for f in named}
    best = max((c.score for c in found.citations), default=1.0)
    first = [RankedCitation.of(f.citation, best, {}) for f in named]
    others = [c for c in found.citations if c.pmid not in pmids]
    passages = [
        Evidence.of(f.passages[at], f.citation, {"score": best})
        for f in named
        for at in f.abstract_first()
    ]
    evidence = tuple(item for item in passages if item is not None)
    return replace(found, citations=(*first, *others)[:limit], evidence=evidence)


async def check_spelling(read: ReadRequest, stages: StageCalls) -> str | None:
    """Return the question with misspelt words corrected, or None if none are found.

    Also returns None if the expander fails; the search records that failure.
    """
    question = read.request.question
    if question.given or read.named:
        return None
    return await stages.call(DID_YOU_MEAN, question.body)
