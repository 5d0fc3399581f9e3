"""Download all records that a PubMed query finds, as files that an index can be built from.

    FOLDER/query.json               the query, its day, and the PMIDs that it found
    FOLDER/query26n0001.xml.gz      the first PART of them, and so on

The query runs only once. A rerun after an interruption writes the missing files.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from cluster.entrez.search_pubmed import PubMed
from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.pubmed.parse_articles import DOCTYPE
from cluster.read_given import read_given
from cluster.storage.whole_files import published_atomically, require_writable, write_atomically

FOUND = "query.json"
# Records per file; NLM's own files hold 30,000.
PART = 10_000
# Records per request, so that each request ends within its deadline.
CHUNK = 800
HEAD = f'<?xml version="1.0" encoding="UTF-8"?>\n{DOCTYPE}\n<PubmedArticleSet>\n'.encode()
TAIL = b"</PubmedArticleSet>\n"
_INSIDE = re.compile(rb"<PubmedArticleSet[^>]*>(.*)</PubmedArticleSet>", re.DOTALL)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FoundByQuery:
    """Result of a query on a day; `limit` is the maximum number of PMIDs, 0 for all."""

    query: str
    day: str
    limit: int
    pmids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Downloaded:
    """Counts of a download: `records` were written to `files`, of which `present` existed before.

    PubMed returned no citation for `missing` of the PMIDs.
    """

    query: str
    found: int
    records: int
    missing: int
    files: tuple[str, ...]
    present: int


async def download_query(
    pubmed: PubMed, query: str, folder: Path, tell: Tell, *, limit: int = 0, part: int = PART
) -> Downloaded:
    """Write the records that `query` finds to `folder`, in the order of their PMIDs.

    Raises InputError if the query finds nothing or the folder holds the result of another query,
    PubMedError if PubMed fails, and StorageError if the folder cannot be written.
    """
    require_writable(folder)
    found = await _found(pubmed, query, folder, limit, tell)
    tell(f"{len(found.pmids):,} records found on {found.day}")
    total = f"{len(found.pmids):,} records"
    names, present, records, missing = [], 0, 0, 0
    for number, begin in enumerate(range(0, len(found.pmids), part), start=1):
        pmids = found.pmids[begin : begin + part]
        path = folder / f"query{found.day[2:4]}n{number:04d}.xml.gz"
        names.append(path.name)
        if path.exists():
            present += 1
            continue
        written = await _write_part(pubmed, pmids, path)
        records += written
        missing += len(pmids) - written
        tell(f"{path.name}: {begin + len(pmids):,} of {total}")
    return Downloaded(query, len(found.pmids), records, missing, tuple(names), present)


async def _found(pubmed: PubMed, query: str, folder: Path, limit: int, tell: Tell) -> FoundByQuery:
    path = folder / FOUND
    if path.exists():
        found = _read_found(path)
        if (found.query, found.limit) != (query, limit):
            raise InputError(
                f"{path}: this folder holds what {found.query!r:.200} found with --limit "
                f"{found.limit}; name another folder, or remove this one"
            )
        return found
    count = await pubmed.count(query)
    if not count:
        raise InputError(f"--query {query!r:.200}: PubMed finds nothing; change the query")
    pmids = await pubmed.search(query, limit=min(count, limit or count), sort="pub_date", tell=tell)
    # Sorted, because PubMed's order changes with new records, and an index does not need it.
    found = FoundByQuery(query, f"{date.today()}", limit, tuple(sorted(pmids)))
    write_atomically(path, json.dumps(asdict(found)).encode())
    return found


def _read_found(path: Path) -> FoundByQuery:
    held = parse_json(read_given(path), str(path))
    try:
        pmids = tuple(map(int, held["pmids"]))
        return FoundByQuery(held["query"], held["day"], held["limit"], pmids)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path}: not written by this command; remove the folder") from None


async def _write_part(pubmed: PubMed, pmids: Sequence[int], path: Path) -> int:
    """Write one file and return the number of its citations."""
    written = 0
    with published_atomically(path) as aside, gzip.open(aside, "wb", compresslevel=6) as stream:
        stream.write(HEAD)
        for begin in range(0, len(pmids), CHUNK):
            for xml, read in await pubmed.fetch_xml(pmids[begin : begin + CHUNK]):
                if inside := _INSIDE.search(xml):
                    stream.write(inside[1].strip() + b"\n")
                written += len(read.citations)
        stream.write(TAIL)
    return written
