"""Read PubMed files (plain or gzip) as chunks of decompressed bytes."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, cast

from cluster.errors import SourceError
from cluster.storage.object_store import File

# NLM's largest files have some hundreds of MiB when decompressed.
MAX_BYTES = 4 * 1024**3
CHUNK_BYTES = 32 * 1024

_GZIP_MAGIC = b"\x1f\x8b"
# Encodings in which tags are not ASCII bytes, by the first two bytes of a file.
_WIDE_ENCODINGS = {
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}


@contextmanager
def open_decompressed(path: File, source: str) -> Iterator[IO[bytes]]:
    """Open a file for reading; gzip is detected by its magic bytes, not by the file's name.

    Raises SourceError if the file cannot be opened or read.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if is_packed else raw
    except OSError as error:
        raise SourceError(f"{source}: {error.strerror or error}; check the path {path}") from error


def read_chunks(stream: IO[bytes], source: str, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """Yield the stream's bytes.

    Raises SourceError if the stream is empty, breaks, or is longer than `max_bytes`.
    """
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
                "if the file is valid, split it"
            )
        yield chunk
    if total == 0:
        raise SourceError(f"{source}: the file is empty; download it again")


def to_ascii_compatible(chunks: Iterator[bytes]) -> tuple[Iterator[bytes], str | None]:
    """Return the chunks, and the encoding to parse them with if it is not the declared one.

    UTF-16 is converted to UTF-8, so that tags can be found as ASCII bytes. All other encodings
    are returned unchanged, with None.
    """
    start = b""
    while len(start) < 2 and (chunk := next(chunks, None)) is not None:
        start += chunk
    encoding = _WIDE_ENCODINGS.get(start[:2])
    rest = _chained(start, chunks)
    return (_recoded(rest, encoding), "utf-8") if encoding else (rest, None)


def _chained(start: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if start:
        yield start
    yield from chunks


def _recoded(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    # Unpaired surrogates become invalid UTF-8, which the parser rejects in the record that has
    # them, while strict decoding would fail for the whole file.
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    for chunk in chunks:
        if text := decoder.decode(chunk):
            yield text.encode("utf-8", "surrogatepass")
