"""Parse PubMed XML (plain or gzip) into records, one at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TypeAlias

from cluster.errors import cut
from cluster.pubmed.parse_blocks import ARTICLE, BOOK, DELETION, ROOT, BlockParser, name_of
from cluster.pubmed.parse_citation import parse_citation
from cluster.pubmed.read_chunks import MAX_BYTES, open_decompressed, read_chunks
from cluster.pubmed.read_elements import (
    Element,
    number_fault,
    parse_number,
    read_number,
    read_text,
)
from cluster.pubmed.skipped_records import SkippedRecord
from cluster.records import Citation, Deletion, Rejected
from cluster.storage.object_store import File

Record: TypeAlias = Citation | Deletion | Rejected

# The document type declaration of NLM's own files.
DOCTYPE = (
    '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">'
)


def read_records(path: File, source: str | None = None, *, strict: bool = True) -> Iterator[Record]:
    """Yield the records of one file in file order; gzip is detected by its magic bytes.

    `source` names the file in records and errors (default: the file's name). `strict` and the
    errors are those of `parse_stream`.
    """
    source = path.name if source is None else source
    with open_decompressed(path, source) as stream:
        yield from parse_stream(stream, source, strict=strict)


def parse_stream(
    stream: IO[bytes], source: str, *, max_bytes: int = MAX_BYTES, strict: bool = True
) -> Iterator[Record]:
    """Yield the records of decompressed XML in file order; `position` counts them from 0.

    A record that cannot be used is yielded as Rejected. If several files were concatenated,
    the records of all of them are yielded.
    Raises SourceError if the XML or the stream breaks, after yielding every record before it.
    Unless `strict`, a record that is not well-formed or too large is Rejected as well, and all
    others are yielded; the file is still refused if its end is missing, if more than MAX_DAMAGED
    records are damaged, or if one of them is a deletion.
    """
    position = 0
    parser = BlockParser(read_chunks(stream, source, max_bytes), source, strict=strict)
    for item in parser.elements():
        if isinstance(item, SkippedRecord):
            yield Rejected(item.reason, item.detail, source, position)
            position += 1
            continue
        for record in _records(item, source, position):
            yield record
            position += 1


def _records(element: Element, source: str, position: int) -> Iterator[Record]:
    if element.tag == ARTICLE:
        yield parse_citation(element, source, position)
    elif element.tag == DELETION:
        for at, pmid in enumerate(element.iterchildren("PMID"), position):
            number = read_number(pmid)
            if number is None:
                yield Rejected("bad-pmid", number_fault("DeleteCitation/PMID", pmid), source, at)
            else:
                # Without a valid version, which the DTD requires, delete any version.
                yield Deletion(number, source, at, parse_number(pmid.get("Version", "")) or 0)
    elif element.tag == BOOK:
        book_pmid = element.find("BookDocument/PMID")
        name = "unknown" if book_pmid is None else cut(read_text(book_pmid))
        yield Rejected("book", f"PMID {name}: a book article", source, position)
    else:
        detail = f"{ROOT} has a child {name_of(element)}, which is no kind of record"
        yield Rejected("unknown-element", detail, source, position)
