"""Read rows of an Arrow IPC file in an object store by byte range, instead of the whole file.

The file is mapped to reserved memory of its size, of which only the blocks that are read take up
space. Arrow builds its arrays over that memory without touching their values, so that the address
of a value gives its position in the file. The values of a row are read level by level: first
offsets and numbers, then what the offsets point to.

pyarrow can read whole record batches by range. Reading as little with whole batches would require
batches of 8 citations: their metadata makes a file of citations 30% larger and takes seconds to
parse for a large shard, and existing indexes with larger batches would be read as a whole.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster.errors import IndexFormatError
from cluster.storage.locations import StoredLocation
from cluster.storage.object_store import asking

Rows = npt.NDArray[np.int64]
# Values are read in blocks of this size. A larger block costs fewer requests and more bytes.
BLOCK = 512
# Blocks that are at most this many blocks apart are read by one request.
JOINED_BLOCKS = 4
READS_AT_ONCE = 16
# A file ends with its footer, whose length precedes the last 6 bytes.
_MAGIC = b"ARROW1"
_TAIL_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of elements, `begins` to `ends` (exclusive), of an array or of a buffer of bytes."""

    of: Any
    begins: Rows
    ends: Rows


class RangedArrowFile:
    """The Arrow file `place` of `size` bytes; `table` has all columns, but no values at first.

    Read the values of rows with `fetch` before using them. Raises IndexFormatError if the object is
    missing, is shorter than `size` or is not an Arrow file, and InputError if the store cannot be
    read.
    """

    def __init__(self, location: StoredLocation, size: int) -> None:
        self._place, self._size = location, size
        self._memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        # With huge pages, each block would take up two megabytes.
        self._memory.madvise(mmap.MADV_NOHUGEPAGE)
        whole = pa.py_buffer(self._memory)
        self._base = whole.address
        self._present = np.zeros(-(-size // BLOCK), np.bool_)
        try:
            self._source = location.open_at_random()
            self._read_bytes(*_frame(self._footer()))
            self.table: pa.Table = pa.ipc.open_file(whole).read_all()
        except FileNotFoundError as error:
            raise IndexFormatError(
                f"{location}: missing from the index; build it again or restore it"
            ) from error
        except (pa.ArrowInvalid, struct.error) as error:
            raise IndexFormatError(f"{location}: not an Arrow file; build it again") from error

    def fetch(self, wanted: Iterable[tuple[pa.Array, Rows]]) -> None:
        """Read the values at the given rows of arrays, which are columns of batches of `table`."""
        level = [_Runs(column, rows, rows + 1) for column, rows in wanted if len(rows)]
        while level:
            # A level of structs, or of texts that are all empty, has no values of its own.
            if parts := [bounds for runs in level for bounds in self._bounds(runs)]:
                self._read_bytes(
                    np.concatenate([begins for begins, _ in parts]),
                    np.concatenate([ends for _, ends in parts]),
                )
            level = [child for runs in level for child in _children(runs)]

    def _footer(self) -> bytes:
        """Read the footer and the end of the file, and return the footer."""
        tail = np.array([max(self._size - _TAIL_BYTES, 0)]), np.array([self._size])
        self._read_bytes(*tail)
        if self._memory[-len(_MAGIC) :] != _MAGIC:
            raise pa.ArrowInvalid("no footer")
        end = self._size - len(_MAGIC) - 4
        begin = end - struct.unpack_from("<i", self._memory, end)[0]
        self._read_bytes(np.array([max(begin, 0)]), np.array([end]))
        return self._memory[begin:end]

    def _bounds(self, runs: _Runs) -> Iterator[tuple[Rows, Rows]]:
        """Yield the positions in the file of the runs' own values, without child arrays."""
        if isinstance(runs.of, pa.Buffer):
            first = runs.of.address - self._base
            if runs.ends.max() > runs.begins.min():
                yield first + runs.begins, first + runs.ends
            return
        own = runs.of.buffers()
        widths = [1, *_widths(runs.of.type)]
        for buffer, bits in zip(own[: len(widths)], widths, strict=True):
            if buffer is not None:
                first, more = buffer.address - self._base, int(_has_offsets(runs.of.type))
                last = runs.ends + (more if bits > 1 else 0)
                yield first + runs.begins * bits // 8, first - (-last * bits // 8)

    def _read_bytes(self, begins: Rows, ends: Rows) -> None:
        """Read the blocks that cover these ranges of the file and were not read before."""
        if len(begins) and not 0 <= begins.min() <= ends.max() <= self._size:
            raise IndexFormatError(f"{self._place}: not an uncompressed Arrow file; build it again")
        wanted = np.zeros(len(self._present) + 1, np.int64)
        filled = ends > begins
        np.add.at(wanted, begins[filled] // BLOCK, 1)
        np.add.at(wanted, (ends[filled] - 1) // BLOCK + 1, -1)
        blocks = np.flatnonzero((np.cumsum(wanted)[:-1] > 0) & ~self._present)
        if not len(blocks):
            return
        jumps = np.flatnonzero(np.diff(blocks) > JOINED_BLOCKS)
        firsts = blocks[np.append(0, jumps + 1)].tolist()
        lasts = blocks[np.append(jumps, len(blocks) - 1)].tolist()
        with ThreadPoolExecutor(READS_AT_ONCE) as pool:
            list(pool.map(self._read, firsts, lasts))

    def _read(self, first: int, last: int) -> None:
        """Read the blocks `first` to `last`, inclusive."""
        begin, end = first * BLOCK, min((last + 1) * BLOCK, self._size)
        with asking(self._place.url):
            data = self._source.read_at(end - begin, begin)
        if len(data) != end - begin:
            raise IndexFormatError(
                f"{self._place}: shorter than the {self._size} bytes of the manifest; build it "
                "again or restore it"
            )
        self._memory[begin:end] = data
        self._present[first : last + 1] = True


def _frame(footer: bytes) -> tuple[Rows, Rows]:
    """Return the positions of the metadata of all batches, from a footer (a FlatBuffer).

    Its table has the batches in its fourth field, a vector of (offset, metadata length, padding,
    body length), as the format of Arrow's files says (File.fbs).
    """
    (root,) = struct.unpack_from("<i", footer, 0)
    (back,) = struct.unpack_from("<i", footer, root)
    (field,) = struct.unpack_from("<H", footer, root - back + 4 + 2 * 3)
    (vector,) = struct.unpack_from("<i", footer, root + field)
    (count,) = struct.unpack_from("<i", footer, root + field + vector) if field else (0,)
    blocks = list(struct.iter_unpack("<qiiq", footer[root + field + vector + 4 :][: 24 * count]))
    begins = np.array([0, *(offset for offset, *_ in blocks)], np.int64)
    # The file begins with its magic bytes.
    return begins, begins + np.array([8, *(length for _, length, *_ in blocks)], np.int64)


def _has_offsets(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind))


def _widths(kind: pa.DataType) -> Iterable[int]:
    """Return the bits per element of an array's own buffer besides its validity, if any."""
    if pa.types.is_struct(kind):
        return ()
    return (32,) if _has_offsets(kind) else (kind.bit_width,)


def _children(runs: _Runs) -> Iterator[_Runs]:
    """Yield the runs of child arrays and of text that the runs of an array refer to."""
    array, filled = runs.of, runs.ends > runs.begins
    begins, last = runs.begins[filled], runs.ends[filled]
    if isinstance(array, pa.Buffer) or not len(begins):
        return
    if pa.types.is_struct(array.type):
        for position in range(array.type.num_fields):
            yield _Runs(array.field(position), begins, last)
    elif _has_offsets(array.type) and (offsets := array.buffers()[1]) is not None:
        ends = np.frombuffer(offsets, np.int32).astype(np.int64)
        of = array.values if pa.types.is_list(array.type) else array.buffers()[2]
        if of is not None:
            yield _Runs(of, ends[begins], ends[last])
