"""Where in a file of records a damaged one begins and where the next one does, by bytes.

A parser that met a byte that is no XML cannot go on. What it has read whole is known, so that the
damage is looked for after that, and a new parser goes on at the next record. Only bytes are
looked at, as nothing else can be trusted there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# As many bytes of what was read before are kept as the longest tag has that is looked for.
OVERLAP = 64
# What is damaged ends within so many bytes, or the file is no set of records.
MAX_SKIPPED_BYTES = 128 * 1024**2
# A file with more damaged records is to be had again, not to be mended here.
MAX_DAMAGED = 100

_KINDS = rb"PubmedArticle|PubmedBookArticle|DeleteCitation"
_ENDED = re.compile(rb"</(?:" + _KINDS + rb")[ \t\r\n]{0,20}>")
_BEGINS = re.compile(rb"<(?:" + _KINDS + rb")(?=[ \t\r\n/>])|</PubmedArticleSet(?=[ \t\r\n>])")
_SET = re.compile(rb"<PubmedArticleSet(?:[ \t\r\n][^<>]{0,1000})?>")
_OWN_PMID = re.compile(
    rb"<(?:MedlineCitation|BookDocument)(?:[ \t\r\n][^<>]{0,1000})?>[ \t\r\n]{0,100}"
    rb"<PMID(?:[ \t\r\n][^<>]{0,100})?>[ \t\r\n]{0,20}([1-9][0-9]{0,8})[ \t\r\n]{0,20}<"
)
# Deletions are never set aside: what they delete would stay.
_DELETES = b"DeleteCitation"
_PMID_WITHIN = 1 << 16


def opening(chunk: bytes) -> bytes:
    """All before the first record of a file that begins with `chunk`; b"" if it is not found."""
    found = _SET.search(chunk)
    return chunk[: found.end()] if found else b""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A record that cannot be read, or what stands between two; `end` is where the next begins.

    Both count the bytes of the decompressed file. `pmid` is None where it is not known.
    """

    begin: int
    end: int
    pmid: int | None
    is_record: bool

    def __str__(self) -> str:
        name = f"PMID {self.pmid}" if self.pmid else "PMID unknown"
        what = name if self.is_record else f"{name}, between two records"
        return f"{what}, bytes {self.begin} to {self.end} of the decompressed file"


class Window:
    """The bytes of a file since the chunk in which its last whole record ended.

    Of many chunks without an end of a record the first and the last one are kept.
    """

    def __init__(self) -> None:
        self.read = 0
        self._head = self._last = b""
        self._head_at = self._last_at = 0
        self._ended = self._seen = 0

    def add(self, chunk: bytes, ended: int) -> None:
        """`chunk` came, and `ended` records were whole at its end that were not before it."""
        before = self._last[-OVERLAP:]
        if ended or not self._head:
            self._head, self._head_at = before + chunk, self.read - len(before)
            self._ended, self._seen = ended, len(before)
        self._last, self._last_at = before + chunk, self.read - len(before)
        self.read += len(chunk)

    def resume(self, at: int) -> None:
        """A new parser begins with the byte at `at`."""
        self.read = self._head_at = self._last_at = at
        self._head = self._last = b""
        self._ended = self._seen = 0

    def find_damage(
        self, chunks: Iterator[bytes], is_sound: Callable[[bytes], bool]
    ) -> tuple[Damaged, bytes] | None:
        """What is damaged after the last whole record, and the bytes from its end on.

        Reads on from `chunks` as far as needed; `is_sound` says whether bytes between two records
        are well-formed. None where no next record is found, or a deletion is damaged.
        """
        after = self._after_whole()
        if after is None:
            return None
        found = _BEGINS.search(self._head, after)
        gap = self._head[after : found.start()] if found else b""
        if found and gap.strip() and not is_sound(gap):
            if _DELETES in gap or self._head_at != self._last_at:
                return None
            places = (self._head_at + after, self._head_at + found.start())
            rest = self._head[found.start() :]
            return Damaged(*places, _pmid_in(gap), is_record=False), rest
        begin = found.start() if found else after
        if self._head.startswith((b"</", b"<" + _DELETES), begin):
            return None
        beyond = begin + 1 if self._head_at == self._last_at else 0
        return self._skip(begin, beyond, chunks, is_record=found is not None)

    def _after_whole(self) -> int | None:
        """Where in the head the last whole record ends; None where that is not found."""
        if not self._ended:
            return 0 if self._head_at or not (start := opening(self._head)) else len(start)
        ends = (m.end() for m in _ENDED.finditer(self._head) if m.end() > self._seen)
        return next((end for n, end in enumerate(ends, 1) if n == self._ended), None)

    def _skip(
        self, begin: int, beyond: int, chunks: Iterator[bytes], *, is_record: bool
    ) -> tuple[Damaged, bytes] | None:
        start, pmid = self._head_at + begin, None
        if self._head_at != self._last_at:
            pmid = _pmid_in(self._head[begin:])
        while True:
            found = _BEGINS.search(self._last, beyond)
            passed = self._last[max(beyond - 1, 0) : found.start() if found else None]
            # A record that began at the end of its chunk has its PMID in the next.
            if pmid is None and self._last_at - start < _PMID_WITHIN:
                pmid = _pmid_in(passed)
            if _DELETES in passed:
                return None
            if found:
                end = self._last_at + found.start()
                return Damaged(start, end, pmid, is_record=is_record), self._last[found.start() :]
            chunk = next(chunks, None)
            if chunk is None or self.read - start > MAX_SKIPPED_BYTES:
                return None
            self.add(chunk, 0)
            beyond = 0


def _pmid_in(data: bytes) -> int | None:
    found = _OWN_PMID.search(data[:_PMID_WITHIN])
    return int(found[1]) if found else None
