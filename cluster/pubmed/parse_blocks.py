"""Parse a PubMed file block by block, and skip damaged records one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from lxml import etree

from cluster.errors import SourceError, cut
from cluster.pubmed.read_chunks import to_ascii_compatible
from cluster.pubmed.read_elements import Element
from cluster.pubmed.skipped_records import MAX_DAMAGED, SkippedRecord, skip_block
from cluster.pubmed.split_records import (
    DELETES,
    MAX_RECORD_BYTES,
    MAX_SKIPPED_BYTES,
    Block,
    ByteBuffer,
    Extent,
    read_blocks,
)

ROOT = "PubmedArticleSet"
ARTICLE, BOOK, DELETION = RECORDS = ("PubmedArticle", "PubmedBookArticle", "DeleteCitation")
# Limit of the declarations before the first record, which are parsed again with each block.
MAX_HEAD_BYTES = 64 * 1024

# Resolve no entities and fetch nothing; libxml2's own limits apply to depth, length and expansion.
# `collect_ids` keeps its default: with False, lxml 6 makes libxml2 read the file's own DTD.
SAFE_XML: Mapping[str, Any] = {
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
}

_SET_END = f"</{ROOT}>".encode()
# A set that begins within another one: files were concatenated, and the first is truncated.
_SET_WITHIN = re.compile(
    rb"<(?:\?xml[ \t\r\n]|!DOCTYPE)[^<]{0,1000}(?:<!DOCTYPE[^<]{0,1000})?<PubmedArticleSet"
)
_PLACE = re.compile(r",? line \d+(?:, column \d+)?")
Item: TypeAlias = Element | SkippedRecord


@dataclass(frozen=True, slots=True)
class _Fault:
    """A syntax error: the message of the parser, and the line within the block, from 1."""

    message: str
    line: int


@dataclass(frozen=True, slots=True)
class _Head:
    """The bytes before the records of a set: declarations and the start tag of the set."""

    data: bytes
    is_set: bool
    is_empty: bool


class BlockParser:
    """Parses the sets of records in one file.

    A file has one set; concatenated files have several. `elements` yields the content of all.
    """

    def __init__(self, chunks: Iterator[bytes], source: str, *, strict: bool) -> None:
        chunks, encoding = to_ascii_compatible(chunks)
        self._buffer = ByteBuffer(chunks)
        self._source = source
        self._strict = strict
        self._options = {**SAFE_XML, "encoding": encoding}
        self._head = _Head(b"", is_set=True, is_empty=True)
        self._records = self._damaged = 0

    def elements(self) -> Iterator[Item]:
        """Yield each child of each set in file order, or a SkippedRecord for a damaged record.

        Raises SourceError if the file cannot be read further, after yielding everything before.
        If strict, no record is skipped: the first damaged record raises SourceError.
        """
        is_first = True
        while head := self._read_head(is_first=is_first):
            self._head, is_first = head, False
            if head.is_empty:
                continue
            skipped = 0 if self._strict else MAX_SKIPPED_BYTES
            for block in read_blocks(self._buffer, is_set=head.is_set, max_skipped=skipped):
                for item in self._parse_block(block):
                    yield item
                    self._records += 1
                if block.extent is Extent.CUT:
                    message = f"the end tag </{ROOT}> is missing"
                    raise self._buffer.error or self._not_xml(message, self._buffer.line)

    def _read_head(self, *, is_first: bool) -> _Head | None:
        """Read up to the start tag of a set, which is checked; return None at the file's end."""
        buffer = self._buffer
        if not is_first:
            buffer.drop_space()
        probe = etree.XMLPullParser(events=("start",), **self._options)
        fed = searched = 0
        while True:
            found = buffer.data.find(b">", searched)
            if found < 0 and len(buffer.data) <= MAX_HEAD_BYTES:
                searched = len(buffer.data)
                if buffer.grow():
                    continue
                self._end_file(probe, bytes(buffer.data[fed:]), is_first=is_first)
                return None
            if not 0 <= found < MAX_HEAD_BYTES:
                message = f"no root element within {MAX_HEAD_BYTES} bytes"
                raise self._not_xml(message, buffer.line)
            error = _feed(probe, bytes(buffer.data[fed : found + 1]))
            fed = searched = found + 1
            for _, root in probe.read_events():
                return self._head_of(cast(Element, root), fed)
            if error is not None:
                raise self._not_xml(error.msg or "", buffer.line + (error.lineno or 1) - 1)

    def _end_file(self, probe: etree.XMLPullParser, rest: bytes, *, is_first: bool) -> None:
        """Check that nothing but comments and white space follow the last set."""
        if self._buffer.error is not None:
            raise self._buffer.error
        error = _feed(probe, rest)
        # Add a root element, because a document that has only comments is a syntax error.
        error = error or (None if is_first else _feed(probe, b"<x/>"))
        try:
            probe.close()
        except etree.XMLSyntaxError as unfinished:
            error = error or unfinished
        if error is not None:
            line = self._buffer.line + (error.lineno or 1) - 1
            raise self._not_xml(error.msg or "no root element", line)

    def _head_of(self, root: Element, size: int) -> _Head:
        """Take the head from the buffer. A file of a single record has no set around it."""
        if root.tag not in (ROOT, ARTICLE):
            raise SourceError(
                f"{self._source}: the root element is {name_of(root)}, not {ROOT}; "
                "download it again"
            )
        subset: Any = root.getroottree().docinfo.internalDTD
        if subset is not None and (any(subset.entities()) or any(subset.elements())):
            raise SourceError(
                f"{self._source}: it declares entities or elements of its own, which PubMed files "
                "never do; download it again"
            )
        if root.tag == ARTICLE:
            declarations = self._buffer.take(self._buffer.data.rfind(b"<", 0, size))
            return _Head(declarations + f"<{ROOT}>".encode(), is_set=False, is_empty=False)
        data = self._buffer.take(size)
        return _Head(data, is_set=True, is_empty=data.endswith(b"/>"))

    def _parse_block(self, block: Block) -> Iterator[Item]:
        """Yield the elements of a block. If it is damaged, split it and parse smaller parts."""
        if block.extent in (Extent.TOO_LARGE, Extent.ENDLESS):
            yield self._skip_large(block)
            return
        root, fault = self._parse(block)
        # With fewer records than start tags, a record without an end tag contains the next ones.
        if fault is None and sum(child.tag in RECORDS for child in root) >= len(block.starts):
            yield from root
            return
        parts = block.halves()
        if len(parts) > 1:
            for half in parts:
                yield from self._parse_block(half)
            return
        for part in block.parts():
            root, fault = self._parse(part)
            if fault is None:
                yield from root
            else:
                yield self._skip(part, fault)

    def _parse(self, block: Block) -> tuple[Element, _Fault | None]:
        """Parse the bytes of a block as a set of their own."""
        parser = etree.XMLParser(**self._options)
        root: Element | None = None
        error: etree.XMLSyntaxError | None = None
        try:
            root = etree.fromstring(self._head.data + block.data + _SET_END, parser)
        except etree.XMLSyntaxError as problem:
            error = problem
        # lxml returns a tree in spite of some errors; content after the error may be missing.
        logged = next(iter(parser.error_log.filter_from_errors()), None)
        if root is not None and logged is None:
            return root, None
        message, line = (logged.message, logged.line) if logged else (str(error), 1)
        line += block.line - 1 - self._head.data.count(b"\n")
        return etree.Element(ROOT), _Fault(_PLACE.sub("", message), line)

    def _skip(self, block: Block, fault: _Fault) -> SkippedRecord:
        """Describe a damaged record. Raises SourceError if the whole file must be refused."""
        self._damaged += 1
        if block.extent is Extent.CUT and self._buffer.error is not None:
            raise self._buffer.error
        if _SET_WITHIN.search(block.data):
            raise SourceError(
                f"{self._source}: several files in one, of which one is truncated: another XML "
                f"document begins after {self._records} records, before </{ROOT}>; download each "
                "file again"
            )
        may_skip = (
            not self._strict
            and self._head.is_set
            and block.extent is Extent.WHOLE
            and self._damaged <= MAX_DAMAGED
            and DELETES not in block.data
        )
        if not may_skip:
            raise self._not_xml(fault.message, fault.line)
        return skip_block(block, f"not well-formed XML ({cut(fault.message)})")

    def _skip_large(self, block: Block) -> SkippedRecord:
        self._damaged += 1
        if self._buffer.error is not None:
            raise self._buffer.error
        is_refused = block.extent is Extent.ENDLESS or self._damaged > MAX_DAMAGED
        if is_refused or self._strict:
            raise SourceError(
                f"{self._source}: the record after the first {self._records} is larger than "
                f"{MAX_RECORD_BYTES} bytes, the limit; download the file again"
            )
        return skip_block(block, f"more than {MAX_RECORD_BYTES} bytes", is_too_large=True)

    def _not_xml(self, message: str, line: int) -> SourceError:
        return SourceError(
            f"{self._source}: not well-formed XML after {self._records} records, at line {line} "
            f"({cut(message)}); download it again"
        )


def _feed(parser: etree.XMLPullParser, data: bytes) -> etree.XMLSyntaxError | None:
    """Feed the parser and return its error, so that events before the error can be read."""
    try:
        parser.feed(data)
    except etree.XMLSyntaxError as error:
        return error
    return None


def name_of(element: Element) -> str:
    """Return the name of an element for a message; hostile names have up to 50,000 characters."""
    return cut(element.tag) if isinstance(element.tag, str) else "reference to an entity"
