"""Split the bytes of a set of records into blocks of whole records, without parsing them.

A parser cannot continue after a syntax error. Blocks are therefore cut at the start tags of
records and parsed separately, so that damage never affects other records.
The bytes must be in an encoding that writes tags as ASCII. A tag inside a comment or a CDATA
section counts as a tag: PubMed's files have no such text, whereas an unclosed comment or CDATA
section would otherwise hide all records that follow it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain, pairwise

from cluster.errors import SourceError

# Size from which a block is complete; smaller and larger blocks take more time per record.
BLOCK_BYTES = 128 * 1024
# The largest citations (thousands of collaborators) take a few MiB.
MAX_RECORD_BYTES = 16 * 1024**2
# If a record that is too large does not end within this many bytes, the file is refused.
MAX_SKIPPED_BYTES = 128 * 1024**2
# Number of bytes at the start of a record in which its own PMID is searched for.
PMID_WITHIN = 1 << 16
# Maximum white space that is read to find out what follows the end of a set.
_MAX_SPACE = 1024**2

# Longer than any tag that is searched for, so that a tag across two chunks is found.
_OVERLAP = 128
_ARTICLE = re.compile(rb"<Pubmed(?:Book)?Article(?=[ \t\r\n/>])")
_DELETION = re.compile(rb"<DeleteCitation(?=[ \t\r\n/>])")
_SET_END = re.compile(rb"</PubmedArticleSet[ \t\r\n]{0,100}>")
_NOT_SPACE = re.compile(rb"[^ \t\r\n\xef\xbb\xbf]")
_SET = b"<PubmedArticleSet"
_RECORD_END = re.compile(rb"</(?:Pubmed(?:Book)?Article|DeleteCitation)[ \t\r\n]{0,20}>")
# A damaged deletion is never skipped, because the record to delete would stay in the index.
DELETES = b"DeleteCitation"


class Extent(Enum):
    """Whether a block holds whole records, and if not, what it holds instead."""

    WHOLE = "whole records"
    CUT = "the bytes after the last start tag in a file without an end of the set"
    TOO_LARGE = "the first bytes of a record that is too large"
    ENDLESS = "the first bytes of a record after which no other record was found"


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive records. `starts` are the positions of their start tags in `data`, ascending.

    `offset` and `end` count the bytes of the decompressed file (of a UTF-16 file, the bytes of
    its text in UTF-8); `line` is the line of the first byte, from 1.
    """

    data: bytes
    offset: int
    end: int
    line: int
    starts: tuple[int, ...]
    extent: Extent = Extent.WHOLE

    def halves(self) -> list[Block]:
        """Split the block at its middle start tag; return it whole if it cannot be split."""
        cuts = [start for start in self.starts if start > 0]
        return list(self._split([cuts[len(cuts) // 2]] if cuts else []))

    def parts(self) -> Iterator[Block]:
        """Split the block after each end tag of a record, with the white space that follows."""
        size = len(self.data.rstrip())
        ends = (found.end() for found in _RECORD_END.finditer(self.data))
        return self._split(end for end in ends if end < size)

    @property
    def has_record(self) -> bool:
        """Whether there is a start tag or an end tag of a record."""
        return bool(self.starts) or _RECORD_END.search(self.data) is not None

    def _split(self, cuts: Iterable[int]) -> Iterator[Block]:
        for begin, end in pairwise(chain((0,), cuts, (len(self.data),))):
            yield self._between(begin, end)

    def _between(self, begin: int, end: int) -> Block:
        low, high = bisect_left(self.starts, begin), bisect_left(self.starts, end)
        return Block(
            self.data[begin:end],
            self.offset + begin,
            self.offset + end,
            self.line + self.data.count(b"\n", 0, begin),
            tuple([start - begin for start in self.starts[low:high]]),
            self.extent,
        )


class ByteBuffer:
    """Buffer of the bytes of a stream that were read but not yet taken.

    `offset` and `line` are the position of the first byte. `error` is the error that ended the
    stream, if any; the bytes before it can still be taken.
    """

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.data = bytearray()
        self.offset = 0
        self.line = 1
        self.error: SourceError | None = None
        self._chunks = chunks

    def grow(self) -> bool:
        """Read one more chunk; return False if there is none."""
        try:
            chunk = next(self._chunks, None)
        except SourceError as error:
            self.error, chunk = error, None
        self.data += chunk or b""
        return chunk is not None

    def take(self, size: int) -> bytes:
        """Remove the first `size` bytes and return them."""
        taken = bytes(self.data[:size])
        del self.data[:size]
        self.offset += len(taken)
        self.line += taken.count(b"\n")
        return taken

    def drop_space(self) -> None:
        """Remove leading white space and byte order marks."""
        while (found := _NOT_SPACE.search(self.data)) is None:
            self.take(len(self.data))
            if not self.grow():
                return
        self.take(found.start())

    def take_block(
        self, size: int, starts: tuple[int, ...], extent: Extent = Extent.WHOLE
    ) -> Block:
        """Remove the first `size` bytes and return them as a block."""
        offset, line = self.offset, self.line
        return Block(self.take(size), offset, offset + size, line, starts, extent)


def read_blocks(buffer: ByteBuffer, *, is_set: bool, max_skipped: int) -> Iterator[Block]:
    """Yield the content of one set, and take its end tag; the buffer begins after the start tag.

    If the stream ends before the set, the last block is CUT, even if it is empty. If not
    `is_set`, the content is a single record, which ends with the stream.
    At most MAX_RECORD_BYTES and a block are in memory. After a record that is too large, up to
    `max_skipped` bytes are skipped to find the next one; if there is none, the last block is
    ENDLESS.
    """
    starts: list[int] = []
    scanned, more = 0, True
    while more:
        more = buffer.grow()
        limit = max(len(buffer.data) - _OVERLAP, scanned) if more else len(buffer.data)
        end = _find_set_end(buffer, scanned, limit) if is_set else None
        starts += _find_starts(buffer.data, scanned, limit if end is None else end[0])
        scanned = limit
        if end is not None:
            yield buffer.take_block(end[0], tuple(starts))
            buffer.take(end[1] - end[0])
            return
        last = starts[-1] if starts else 0
        is_too_large = len(buffer.data) - last > MAX_RECORD_BYTES
        if last >= BLOCK_BYTES or (last and (is_too_large or not more)):
            yield buffer.take_block(last, tuple(starts[:-1]))
            starts, scanned = [0], scanned - last
        if is_too_large:
            yield (skipped := _skip_record(buffer, scanned, tuple(starts), max_skipped))
            if skipped.extent is Extent.ENDLESS:
                return
            starts, scanned = [], 0
    extent = Extent.CUT if is_set else Extent.WHOLE
    yield buffer.take_block(len(buffer.data), tuple(starts), extent)


def _find_starts(data: bytearray, begin: int, limit: int) -> list[int]:
    """Find the start tags of records that begin from `begin` to before `limit`."""
    found = [match.start() for match in _ARTICLE.finditer(data, begin)]
    deletions = [match.start() for match in _DELETION.finditer(data, begin)]
    return sorted(start for start in found + deletions if start < limit)


def _find_set_end(buffer: ByteBuffer, begin: int, limit: int) -> tuple[int, int] | None:
    """Find the end tag of the set; ignore an end tag that is followed by more records."""
    while (found := _SET_END.search(buffer.data, begin)) and found.start() < limit:
        begin = found.end()
        if _ends_document(buffer, begin):
            return found.span()
    return None


def _ends_document(buffer: ByteBuffer, at: int) -> bool:
    """Return whether the stream ends at `at`, or comments or another document follow."""
    begin = at
    while (found := _NOT_SPACE.search(buffer.data, begin)) is None:
        begin = len(buffer.data)
        if begin - at > _MAX_SPACE:
            return False
        if not buffer.grow():
            return True
    found_at = found.start()
    while len(buffer.data) - found_at < len(_SET) and buffer.grow():
        pass
    return buffer.data.startswith((b"<?", b"<!", _SET), found_at)


def _skip_record(
    buffer: ByteBuffer, scanned: int, starts: tuple[int, ...], max_skipped: int
) -> Block:
    """Drop the bytes up to the next record or the end of the set; return the first of them."""
    data, offset, line = bytes(buffer.data[:PMID_WITHIN]), buffer.offset, buffer.line
    has_deletion = DELETES in buffer.take(scanned)
    extent = Extent.ENDLESS
    while not has_deletion and buffer.offset - offset <= max_skipped:
        searches = (pattern.search(buffer.data) for pattern in (_ARTICLE, _DELETION, _SET_END))
        places = [found.start() for found in searches if found]
        if places:
            has_deletion = DELETES in buffer.take(min(places))
            extent = Extent.ENDLESS if has_deletion else Extent.TOO_LARGE
            break
        has_deletion = DELETES in buffer.take(max(len(buffer.data) - _OVERLAP, 0))
        if not buffer.grow():
            break
    return Block(data, offset, buffer.offset, line, starts, extent)
