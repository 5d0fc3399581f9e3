"""Search PubMed online for PMIDs, and fetch Citations by PMID.

Presets that search online use it as follows:

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

from cluster.entrez.entrez_client import Entrez, Patience, entrez_session
from cluster.entrez.list_all import REACH, list_all
from cluster.entrez.rate_limiter import RateLimiter
from cluster.entrez.read_replies import Fetched, Found, read_citations, read_search
from cluster.errors import InputError
from cluster.records import Citation
from cluster.settings.stages.entrez import EntrezSettings

T = TypeVar("T")
Tell = Callable[[str], None]
Sort = Literal["relevance", "pub_date", "Author", "JournalName"]

# NLM asks clients to use POST and batches above about this many PMIDs.
BATCH_PMIDS = 200
BATCHES_AT_ONCE = 4
# Maximum number of items that a message lists.
NAMED = 5
LOG = logging.getLogger(__name__)


class PubMed:
    """E-utilities client for searching and fetching; safe for concurrent tasks and threads.

    `settings.deadline_s` limits each call. Every method raises PubMedError if PubMed cannot be
    reached, keeps failing or is too slow, and InputError for an invalid query. `tell` is called
    with a sentence for each problem that leaves the result incomplete.
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

    async def count(self, query: str) -> int:
        """Return the number of matching records."""
        params = {**_search_params(query, None, None), "retmax": "0"}
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
        """Return the first `limit` PMIDs in the order of `sort`, published between the dates.

        PubMed sorts only the first 9,999 records of a query; further ones follow by date of entry,
        newest first. Lists longer than that are not cached.
        """
        if limit < 1:
            raise InputError(f"limit: {limit} is not a number of records; request 1 or more")
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
            tell(f"PubMed lists only {len(found.pmids)} of the {promised} records that it counts")
        return list(found.pmids)

    async def fetch_xml(self, pmids: Sequence[int]) -> list[tuple[bytes, Fetched]]:
        """Return PubmedArticleSets with the records of `pmids`, each with its parsed content.

        Records are in no particular order. PMIDs that PubMed does not have are missing. Replies
        are not cached.
        """
        turns = asyncio.Semaphore(BATCHES_AT_ONCE)
        async with self._session() as entrez:
            return await _all(
                _fetch_batch(entrez, pmids[at : at + BATCH_PMIDS], turns, _with_xml, cached=False)
                for at in range(0, len(pmids), BATCH_PMIDS)
            )

    async def fetch(self, pmids: Sequence[int], *, tell: Tell = LOG.warning) -> list[Citation]:
        """Return the records of `pmids` in order, each once; `tell` reports missing ones."""
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
                f"PubMed returned no citation for {len(missing)} of {len(wanted)} PMIDs: "
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
    """Return all results in order; the first failure cancels the others and is raised."""
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
    # E-utilities require both dates or neither.
    return {
        **params,
        "datetype": "pdat",
        "mindate": f"{first:%Y/%m/%d}",
        "maxdate": f"{last:%Y/%m/%d}",
    }


def _check_query(found: Found, query: str, tell: Tell) -> None:
    """Report phrases that PubMed ignored; raise InputError if it then found nothing."""
    if not found.unknown:
        return
    unknown = _some([repr(each) for each in found.unknown])
    if found.count == 0:
        raise InputError(
            f"query {query[:200]!r}: PubMed finds nothing, and does not know {unknown}; "
            "correct the spelling, or remove the quotation marks or the field"
        )
    tell(f"PubMed ignored {unknown}, which it does not know")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
