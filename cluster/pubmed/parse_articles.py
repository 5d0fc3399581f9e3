"""PubMed XML (plain or gzip) to records, one at a time, in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import IO, Any, TypeAlias, cast

from lxml import etree

from cluster.errors import SourceError, cut
from cluster.pubmed.parse_citation import parse_citation
from cluster.pubmed.read_elements import Element, number_fault, read_number, read_text
from cluster.records import Citation, Deletion, Rejected
from cluster.storage.object_store import File

Record: TypeAlias = Citation | Deletion | Rejected

# As the head of NLM's own files has it.
DOCTYPE = (
    '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">'
)

# NLM's largest files are some hundreds of MiB decompressed.
MAX_BYTES = 4 * 1024**3
# The largest citations (thousands of collaborators) take a few MiB.
MAX_RECORD_BYTES = 16 * 1024**2
CHUNK_BYTES = 32 * 1024

_ROOT = "PubmedArticleSet"
_ARTICLE, _BOOK, _DELETE = _RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
_GZIP_MAGIC = b"\x1f\x8b"


def read_records(
    path: File, source: str | None = None, *, max_bytes: int = MAX_BYTES
) -> Iterator[Record]:
    """Yield the records of one file in file order; gzip is told by its magic, not its name.

    `source` names the file in records and errors (default: the file's name).
    Raises SourceError where the file stops being readable, after yielding all before.
    """
    source = path.name if source is None else source
    try:
        with path.open("rb") as raw:
            packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
            yield from parse_stream(stream, source, max_bytes=max_bytes)
    except OSError as error:
        raise SourceError(f"{source}: {error.strerror or error}; check the path {path}") from error


def parse_stream(stream: IO[bytes], source: str, *, max_bytes: int = MAX_BYTES) -> Iterator[Record]:
    """Yield the records of decompressed XML in file order; `position` counts them from 0.

    A record that cannot be kept is yielded as Rejected. Raises SourceError where the
    XML or the stream breaks, after yielding every record that ended before.
    """
    position = 0
    for element in _top_elements(_chunks(stream, source, max_bytes), source):
        for record in _records(element, source, position):
            yield record
            position += 1


def _chunks(stream: IO[bytes], source: str, max_bytes: int) -> Iterator[bytes]:
    total = 0
    while True:
        try:
            chunk = stream.read(CHUNK_BYTES)
        except (EOFError, OSError, zlib.error) as error:
            raise SourceError(
                f"{source}: damaged or truncated after {total} decompressed bytes ({error}); "
                "download it again"
            ) from error
        if not chunk:
            break
        total += len(chunk)
        if total > max_bytes:
            raise SourceError(
                f"{source}: more than {max_bytes} bytes when decompressed; "
                "if it really is this large, split it or raise max_bytes"
            )
        yield chunk
    if total == 0:
        raise SourceError(f"{source}: the file is empty; download it again")


def _top_elements(chunks: Iterable[bytes], source: str) -> Iterator[Element]:
    """Yield the root's children in order, each whole; one is freed when the next is asked for."""
    probe, parser = _safe_parser(events=("start",)), _safe_parser(events=("end",), tag=_RECORDS)
    root_known = False
    records = bytes_since = 0
    for chunk in chunks:
        root_known = root_known or _root_seen(probe, chunk, source)
        failure = _feed(parser, chunk)
        bytes_since += len(chunk)
        for _, element in parser.read_events():
            for child in _finished(cast(Element, element)):
                yield child
                records += 1
                bytes_since = 0
        if failure is not None:
            raise _not_xml(source, records, failure)
        if bytes_since > MAX_RECORD_BYTES:
            raise SourceError(
                f"{source}: after {records} records no other ends within {MAX_RECORD_BYTES} "
                "bytes, as in no PubMed file; download it again"
            )
    try:
        root = parser.close()
    except etree.XMLSyntaxError as error:
        raise _not_xml(source, records, error) from error
    if root.tag == _ROOT:
        yield from (child for child in root if child.tag not in _RECORDS)


# No entity is resolved, nothing fetched; libxml2's own limits guard depth, length and growth.
# `collect_ids` stays as it is: set to False, lxml 6 has libxml2 read the file's own DTD.
SAFE_XML: Mapping[str, Any] = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}
_safe_parser = partial(etree.XMLPullParser, **SAFE_XML)


def _feed(parser: etree.XMLPullParser, chunk: bytes) -> etree.XMLSyntaxError | None:
    """Feed and hand an error back, so that records that ended before it are still read."""
    try:
        parser.feed(chunk)
    except etree.XMLSyntaxError as error:
        return error
    return None


def _not_xml(source: str, records: int, error: etree.XMLSyntaxError) -> SourceError:
    return SourceError(
        f"{source}: not well-formed XML after {records} records, at line {error.lineno} "
        f"({cut(error.msg or '')}); download it again"
    )


def _name(element: Element) -> str:
    """A reference to an entity has none, and others have up to 50,000 characters."""
    return cut(element.tag) if isinstance(element.tag, str) else "reference to an entity"


def _root_seen(probe: etree.XMLPullParser, chunk: bytes, source: str) -> bool:
    """Check the root as soon as it opens, which the parser proper does not report."""
    _feed(probe, chunk)
    for _, event in probe.read_events():
        root = cast(Element, event)
        if root.tag not in (_ROOT, _ARTICLE):
            raise SourceError(
                f"{source}: the root element is {_name(root)}, not {_ROOT}; download it again"
            )
        subset: Any = root.getroottree().docinfo.internalDTD
        if subset is not None and (any(subset.entities()) or any(subset.elements())):
            raise SourceError(
                f"{source}: it declares entities or elements of its own, as no PubMed file does; "
                "download it again"
            )
        return True
    return False


def _finished(element: Element) -> Iterator[Element]:
    """Yield what stands before a record and is none itself, then the record; free them all."""
    root = element.getparent()
    if root is None:  # a file of a single record, as saved from E-utilities
        yield element
    elif root.getparent() is None:
        while (oldest := root[0]) is not element:
            if oldest.tag not in _RECORDS:
                yield oldest
            del root[0]
        yield element
        element.clear()


def _records(element: Element, source: str, position: int) -> Iterator[Record]:
    if element.tag == _ARTICLE:
        yield parse_citation(element, source, position)
    elif element.tag == _DELETE:
        for at, pmid in enumerate(element.iterchildren("PMID"), position):
            number = read_number(pmid)
            if number is None:
                yield Rejected("bad-pmid", number_fault("DeleteCitation/PMID", pmid), source, at)
            else:
                yield Deletion(number, source, at)
    elif element.tag == _BOOK:
        book_pmid = element.find("BookDocument/PMID")
        name = "unknown" if book_pmid is None else cut(read_text(book_pmid))
        yield Rejected("book", f"PMID {name}: a book article", source, position)
    else:
        detail = f"{_ROOT} has a child {_name(element)}, which is no kind of record"
        yield Rejected("unknown-element", detail, source, position)
