"""Write citations as a file of PubMed XML: the inverse of parse_articles."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from lxml import etree

from cluster.errors import InputError
from cluster.pubmed.parse_articles import DOCTYPE
from cluster.records import Citation, Deletion
from cluster.storage.whole_files import published_atomically
from pipelines.sample.render_citation import (
    BookChapter,
    book_element,
    citation_element,
    deletion_element,
)


def render_articles(
    records: Iterable[Citation | Deletion | BookChapter],
    path: Path,
    *,
    inline: Mapping[str, str] | None = None,
    note: str = "",
) -> int:
    """Write `records` as one PubmedArticleSet to `path` and return their number.

    The file is gzipped if its name ends in .gz; equal records give equal bytes. Only one record is
    in memory at a time. The file gets its name once it is complete. Deletions are written as one
    DeleteCitation at the end. The `source` and `position` of a record are not written.

    `inline` maps a plain title or section text to the same text with inline tags, which is written
    instead. `note` becomes a GeneralNote of every citation.

    Raises InputError for a text that XML cannot hold, and for a month without a year or not from 1
    to 12.
    """
    deleted: list[Deletion] = []
    count = 0
    with _whole_file(path) as stream, etree.xmlfile(stream, encoding="utf-8") as xml:
        xml.write_declaration()
        xml.write_doctype(DOCTYPE)
        with xml.element("PubmedArticleSet"):
            xml.write("\n")
            for record in records:
                count += 1
                if isinstance(record, Deletion):
                    deleted.append(record)
                else:
                    xml.write(_element(record, inline or {}, note), pretty_print=True)
            if deleted:
                xml.write(deletion_element(deleted), pretty_print=True)
    return count


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    with published_atomically(path) as aside, aside.open("wb") as raw:
        if path.name.endswith(".gz"):
            with gzip.GzipFile("", "wb", compresslevel=4, fileobj=raw, mtime=0) as packed:
                yield cast(IO[bytes], packed)
        else:
            yield raw


def _element(
    record: Citation | BookChapter, inline: Mapping[str, str], note: str
) -> etree._Element:
    try:
        if isinstance(record, BookChapter):
            return book_element(record)
        return citation_element(record, inline, note)
    except ValueError as error:
        raise InputError(
            f"PMID {record.pmid}: cannot be written as XML ({error}); "
            "remove the control characters from its texts"
        ) from error
