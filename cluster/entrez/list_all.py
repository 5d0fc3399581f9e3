"""List all records of a query, beyond the first 9,999 of PubMed's esearch.

"For PubMed, ESearch can only retrieve the first 9,999 records matching the query", even with the
history server (https://www.ncbi.nlm.nih.gov/books/NBK25499/). Therefore the result is stored on
that server and listed by ranges of the entry date, of which each record has exactly one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta

from cluster.entrez.entrez_client import Entrez
from cluster.entrez.read_replies import Found, HistoryLostError, read_search
from cluster.errors import PubMedError

REACH = 9_999
# Maximum number of times that a lost search is stored on the history server again.
RENEWALS = 3
# Entry dates to search: from before the oldest record to a year ahead, in case a clock is wrong.
EARLIEST = date(1700, 1, 1)
AHEAD = timedelta(days=366)
DAY = timedelta(days=1)


async def list_all(entrez: Entrez, params: Mapping[str, str], limit: int) -> Found:
    """Return up to `limit` PMIDs: the first 9,999 in the requested order, then newest first.

    `params` are those of esearch. Raises PubMedError if more than 9,999 matching records were
    entered on one day.
    """
    whole = await _store(entrez, params)
    pmids = dict.fromkeys(whole.pmids)
    spans = [(EARLIEST, date.today() + AHEAD)] if whole.count > len(pmids) else []
    renewals = 0
    while spans and len(pmids) < limit:
        first, last = span = spans.pop()
        try:
            part = await _search_span(entrez, params, whole, first, last)
        except HistoryLostError:
            renewals += 1
            if renewals > RENEWALS:
                raise
            whole = replace(await _store(entrez, params), pmids=whole.pmids)
            spans.append(span)
            continue
        if part.count <= REACH:
            pmids.update(dict.fromkeys(part.pmids))
        else:
            spans += _halves(first, last, part.count)
    return replace(whole, pmids=tuple(pmids)[:limit])


def _halves(first: date, last: date, count: int) -> list[tuple[date, date]]:
    """Split a span into halves, the newer one last. Raises PubMedError for a single day."""
    if first == last:
        raise PubMedError(
            f"esearch.fcgi: {count} records were entered on {first}, of which PubMed lists "
            f"only {REACH}; narrow the query"
        )
    middle = first + (last - first) // 2
    return [(first, middle), (middle + DAY, last)]


async def _store(entrez: Entrez, params: Mapping[str, str]) -> Found:
    stored = {**params, "usehistory": "y", "retmax": str(REACH)}
    return await entrez.ask("esearch.fcgi", stored, read_search, cached=False)


async def _search_span(
    entrez: Entrez, params: Mapping[str, str], whole: Found, first: date, last: date
) -> Found:
    """Return the records of the stored search that were entered from `first` to `last`."""
    span = {
        "term": f"#{whole.query_key} AND {first:%Y/%m/%d}:{last:%Y/%m/%d}[edat]",
        "WebEnv": whole.web_env,
        "usehistory": "y",
        "retmax": str(REACH),
        "retmode": params["retmode"],
        "sort": params["sort"],
    }
    part = await entrez.ask("esearch.fcgi", span, read_search, cached=False)
    if any(each.startswith("#") for each in part.unknown):
        raise HistoryLostError(f"esearch.fcgi: the stored search {span['WebEnv']} is gone")
    return part
