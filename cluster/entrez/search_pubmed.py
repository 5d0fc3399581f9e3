"""PubMed itself as a search engine: a query to PMIDs, and PMIDs to Citations.

Meant for presets that search online:

    pubmed = PubMed(load_settings().entrez)
    pmids = await pubmed.search("egfr AND lung neoplasms[mh]", limit=200)
    citations = await pubmed.fetch(pmids)
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date
from typing import Any, Literal, TypeVar

from cluster.entrez.ask_entrez import Entrez, Patience, entrez_session
from cluster.entrez.keep_pace import RateLimiter
from cluster.entrez.list_all import REACH, list_all
from cluster.entrez.read_replies import Fetched, Found, read_citations, read_search
from cluster.errors import InputError
from cluster.records import Citation
from cluster.settings.settings import EntrezSettings

T = TypeVar("T")
Tell = Callable[[str], None]
Sort = Literal["relevance", "pub_date", "Author", "JournalName"]

# NLM asks for POST and batches from about this many on; a batch answers in a second or two.
BATCH_PMIDS = 200
BATCHES_AT_ONCE = 4
# How many of a longer list a message names.
NAMED = 5
LOG = logging.getLogger(__name__)


class PubMed:
    """Searches and fetches over E-utilities; safe from several tasks and threads at once.

    Each call has `settings.deadline_s` in all. Every method raises PubMedError when PubMed
    cannot be reached, stays at fault or is too slow, and InputError when the query is at
    fault. What went less well than asked goes, one sentence at a time, to `tell`.
    """

    def __init__(
        self,
        settings: EntrezSettings,
        *,
        limiter: RateLimiter | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._settings = settings
        self._limiter = limiter
        self._patience = patience or Patience()

    def _session(self) -> AbstractAsyncContextManager[Entrez]:
        return entrez_session(self._settings, self._limiter, self._patience)

    async def count(
        self, query: str, *, date_from: date | None = None, date_to: date | None = None
    ) -> int:
        """How many records match, published between the dates given, both included."""
        params = {**_search_params(query, date_from, date_to), "retmax": "0"}
        async with self._session() as entrez:
            found = await entrez.ask("esearch.fcgi", params, read_search)
        _check_query(found, query, LOG.warning)
        return found.count

    async def search(
        self,
        query: str,
        *,
        limit: int,
        sort: Sort = "relevance",
        date_from: date | None = None,
        date_to: date | None = None,
        tell: Tell = LOG.warning,
    ) -> list[int]:
        """The first `limit` PMIDs in the order of `sort`, published between the dates given.

        PubMed lists the first 9,999 records of a query; those beyond follow by date of
        entry, the newest first. Such a long list is not cached.
        """
        if limit < 1:
            raise InputError(f"limit: {limit} is no number of records; ask for 1 or more")
        params = {**_search_params(query, date_from, date_to), "sort": sort}
        async with self._session() as entrez:
            if limit > REACH:
                found = await list_all(entrez, params, limit)
            else:
                params["retmax"] = str(limit)
                found = await entrez.ask("esearch.fcgi", params, read_search)
        _check_query(found, query, tell)
        promised = min(limit, found.count)
        if len(found.pmids) < promised:
            tell(f"PubMed lists only {len(found.pmids)} of the {promised} records it counts")
        return list(found.pmids)

    async def fetch_xml(self, pmids: Sequence[int]) -> list[tuple[bytes, Fetched]]:
        """PubmedArticleSets that hold the records of `pmids`, each with what was read of it.

        In no order, and without those that PubMed lacks. None is cached.
        """
        turns = asyncio.Semaphore(BATCHES_AT_ONCE)
        async with self._session() as entrez:
            return await _all(
                _fetch_batch(entrez, pmids[at : at + BATCH_PMIDS], turns, _with_xml, cached=False)
                for at in range(0, len(pmids), BATCH_PMIDS)
            )

    async def fetch(self, pmids: Sequence[int], *, tell: Tell = LOG.warning) -> list[Citation]:
        """The records of `pmids` in that order, each once; those that PubMed lacks are told."""
        wanted = list(dict.fromkeys(pmids))
        turns = asyncio.Semaphore(BATCHES_AT_ONCE)
        async with self._session() as entrez:
            replies = await _all(
                _fetch_batch(entrez, wanted[at : at + BATCH_PMIDS], turns, read_citations)
                for at in range(0, len(wanted), BATCH_PMIDS)
            )
        found = {each.pmid: each for reply in replies for each in reply.citations}
        missing = [str(pmid) for pmid in wanted if pmid not in found]
        if missing:
            rejected = [why for reply in replies for why in reply.rejected]
            tell(
                f"PubMed gave no citation for {len(missing)} of {len(wanted)} PMIDs: "
                f"{_some(missing)}" + (f" ({_some(rejected)})" if rejected else "")
            )
        return [found[pmid] for pmid in wanted if pmid in found]


async def _fetch_batch(
    entrez: Entrez,
    pmids: Sequence[int],
    turns: asyncio.Semaphore,
    read: Callable[[bytes], T],
    *,
    cached: bool = True,
) -> T:
    params = {"id": ",".join(map(str, pmids)), "retmode": "xml"}
    async with turns:
        return await entrez.ask("efetch.fcgi", params, read, cached=cached)


def _with_xml(reply: bytes) -> tuple[bytes, Fetched]:
    return reply, read_citations(reply)


async def _all(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order; the first failure ends the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in works]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def _search_params(query: str, date_from: date | None, date_to: date | None) -> dict[str, str]:
    if not query.strip():
        raise InputError("query: it is empty; PubMed needs at least one word")
    params = {"term": query, "retmode": "json"}
    if date_from is None and date_to is None:
        return params
    first, last = date_from or date(1000, 1, 1), date_to or date(3000, 12, 31)
    if first > last:
        raise InputError(f"date_from: {first} is after date_to, {last}; swap them")
    # E-utilities take both or neither.
    return {
        **params,
        "datetype": "pdat",
        "mindate": f"{first:%Y/%m/%d}",
        "maxdate": f"{last:%Y/%m/%d}",
    }


def _check_query(found: Found, query: str, tell: Tell) -> None:
    """PubMed leaves out what it does not know: an error where that left nothing."""
    if not found.unknown:
        return
    unknown = _some([repr(each) for each in found.unknown])
    if found.count == 0:
        raise InputError(
            f"query {query[:200]!r}: PubMed finds nothing, and does not know {unknown}; "
            "mend the spelling, or leave out the quotation marks or the field"
        )
    tell(f"PubMed searched without {unknown}, which it does not know")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
