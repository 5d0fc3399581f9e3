"""PubMed XML (plain or gzip) to records, one at a time, in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Any, TypeAlias, cast

from lxml import etree

from cluster.errors import SourceError, cut
from cluster.pubmed.parse_citation import parse_citation
from cluster.pubmed.read_elements import (
    Element,
    number_fault,
    parse_number,
    read_number,
    read_text,
)
from cluster.pubmed.set_aside import MAX_DAMAGED, Damaged, Window, opening
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
# Why a record is Rejected that could not be read at all.
SET_ASIDE = ("damaged", "too-large")
CHUNK_BYTES = 32 * 1024

_ROOT = "PubmedArticleSet"
_ARTICLE, _BOOK, _DELETE = _RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
NESTED = "a record has no end before the next one begins"
_GZIP_MAGIC = b"\x1f\x8b"


def read_records(
    path: File, source: str | None = None, *, max_bytes: int = MAX_BYTES, strict: bool = True
) -> Iterator[Record]:
    """Yield the records of one file in file order; gzip is told by its magic, not its name.

    `source` names the file in records and errors (default: the file's name).
    Raises SourceError where the file stops being readable, after yielding all before; unless
    `strict`, a single record that cannot be read is Rejected, and what follows it is read.
    """
    source = path.name if source is None else source
    try:
        with path.open("rb") as raw:
            packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            stream = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
            yield from parse_stream(stream, source, max_bytes=max_bytes, strict=strict)
    except OSError as error:
        raise SourceError(f"{source}: {error.strerror or error}; check the path {path}") from error


def parse_stream(
    stream: IO[bytes], source: str, *, max_bytes: int = MAX_BYTES, strict: bool = True
) -> Iterator[Record]:
    """Yield the records of decompressed XML in file order; `position` counts them from 0.

    A record that cannot be kept is yielded as Rejected. Raises SourceError where the
    XML or the stream breaks, after yielding every record that ended before. Unless `strict`, a
    record that is not well-formed or too large is Rejected too, as long as the stream goes on to
    its end, MAX_DAMAGED are enough and none of them is a deletion.
    """
    position = 0
    for element in _top_elements(_chunks(stream, source, max_bytes), source, strict=strict):
        if isinstance(element, tuple):
            yield Rejected(*element, source, position)
            position += 1
            continue
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


def _top_elements(
    chunks: Iterator[bytes], source: str, *, strict: bool
) -> Iterator[Element | tuple[str, str]]:
    """Yield the root's children in order, each whole; one is freed when the next is asked for.

    A record that cannot be read comes as its reason and detail, unless `strict`.
    """
    probe, parser = _safe_parser(events=("start",)), _record_parser()
    root_known = False
    records = bytes_since = damaged = 0
    window, start = Window(), b""
    chunk = next(chunks, None)
    while chunk is not None:
        root_known = root_known or _root_seen(probe, chunk, source)
        start = start or opening(chunk)
        failure = _feed(parser, chunk)
        bytes_since += len(chunk)
        ended, nested = 0, False
        for event, element in parser.read_events():
            # Records do not nest: one whose end is damaged would take all others along.
            nested = not strict and event == "start" and _is_nested(cast(Element, element))
            if nested:
                break
            for child in _finished(cast(Element, element)) if event == "end" else ():
                ended += child.tag in _RECORDS
                yield child
                records += 1
                bytes_since = 0
        window.add(chunk, ended)
        read = window.read if damaged else 0
        fault = _fault(source, records, failure, bytes_since, read, nested=nested)
        if fault is not None:
            damaged += 1
            parser = _record_parser()
            # Where the head of the file is damaged itself no parser can begin with it.
            may_go_on = not strict and start and damaged <= MAX_DAMAGED and not _feed(parser, start)
            found = window.find_damage(chunks, _is_sound) if may_go_on else None
            if found is None:
                raise fault
            place, rest = found
            yield _why(place, failure, nested=nested)
            records, bytes_since = records + 1, 0
            window.resume(place.end)
            chunk = rest
            continue
        chunk = next(chunks, None)
    try:
        root = parser.close()
    except etree.XMLSyntaxError as error:
        raise _not_xml(source, records, error, window.read if damaged else 0) from error
    if root.tag == _ROOT:
        yield from (child for child in root if child.tag not in _RECORDS)


def _record_parser() -> etree.XMLPullParser:
    return _safe_parser(events=("start", "end"), tag=_RECORDS)


def _is_sound(between: bytes) -> bool:
    """Whether what stands between two records is well-formed."""
    parser = _safe_parser()
    return not any(_feed(parser, data) for data in (b"<x>", between, b"</x>"))


def _fault(
    source: str,
    records: int,
    failure: etree.XMLSyntaxError | None,
    size: int,
    read: int,
    *,
    nested: bool,
) -> SourceError | None:
    if nested:
        return SourceError(f"{source}: after {records} records, {NESTED}; download it again")
    if failure is not None:
        return _not_xml(source, records, failure, read)
    if size > MAX_RECORD_BYTES:
        return SourceError(
            f"{source}: after {records} records no other ends within {MAX_RECORD_BYTES} "
            "bytes, as in no PubMed file; download it again"
        )
    return None


def _is_nested(record: Element) -> bool:
    return next(record.iterancestors(*_RECORDS), None) is not None


def _why(place: Damaged, failure: etree.XMLSyntaxError | None, *, nested: bool) -> tuple[str, str]:
    """Reason and detail of a record that is set aside."""
    damaged, too_large = SET_ASIDE
    if nested:
        return damaged, f"{place}: {NESTED}"
    if failure is None:
        return too_large, f"{place}: more than {MAX_RECORD_BYTES} bytes"
    # Its line and column are those of the parser, which may have begun anywhere.
    said = cut((failure.msg or "").partition(", line ")[0])
    return damaged, f"{place}: not well-formed XML ({said})"


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


def _not_xml(source: str, records: int, error: etree.XMLSyntaxError, read: int) -> SourceError:
    """`read` is how many bytes were, where lines are not counted from the file's first."""
    place = f"within its first {read} bytes" if read else f"at line {error.lineno}"
    return SourceError(
        f"{source}: not well-formed XML after {records} records, {place} "
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
                # The DTD requires the attribute; without it, or with nonsense, any version goes.
                yield Deletion(number, source, at, parse_number(pmid.get("Version", "")) or 0)
    elif element.tag == _BOOK:
        book_pmid = element.find("BookDocument/PMID")
        name = "unknown" if book_pmid is None else cut(read_text(book_pmid))
        yield Rejected("book", f"PMID {name}: a book article", source, position)
    else:
        detail = f"{_ROOT} has a child {_name(element)}, which is no kind of record"
        yield Rejected("unknown-element", detail, source, position)
