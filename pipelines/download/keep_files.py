"""Store downloaded files in a local folder or in an object store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from filelock import FileLock, Timeout
from pyarrow import fs

from cluster.errors import CiteRayError
from cluster.storage.object_store import open_store
from cluster.storage.whole_files import md5_of, write_atomically
from pipelines.download.fetch_file import discard
from pipelines.download.list_files import RemoteFile

# Free space to leave for logs, partial files and the file system's own blocks.
MARGIN_BYTES = 256 * 1024**2
_BLOCK_BYTES = 1 << 23


class Keeper(Protocol):
    """Stores complete files by folder and name, each with a checksum file next to it."""

    def holds(self, file: RemoteFile, md5: str) -> bool:
        """Return True if the file is stored already with the checksum `md5`."""

    def partial(self, file: RemoteFile) -> Path:
        """Return the local path to which the file is written until it is complete."""

    def keep(self, file: RemoteFile, md5: str) -> None:
        """Move the partial file, already verified against `md5`, to its final path."""

    def require_room(self, missing: Sequence[int], concurrent: int) -> None:
        """Raise CiteRayError if missing files of these sizes in bytes do not fit on the disk."""


@contextmanager
def open_keeper(destination: str) -> Iterator[Keeper]:
    """Yield the keeper for a folder or a URL.

    Raises CiteRayError if it cannot be written, or if another download writes there.
    """
    filesystem, path = open_store(destination)
    with ExitStack() as stack:
        try:
            if isinstance(filesystem, fs.LocalFileSystem):
                Path(path).mkdir(parents=True, exist_ok=True)
                stack.enter_context(FileLock(Path(path) / ".download.lock", timeout=0))
                keeper: Keeper = _FolderKeeper(Path(path))
            else:
                _try_writing(filesystem, f"{path}/.download")
                scratch = stack.enter_context(TemporaryDirectory(prefix="citeray-download-"))
                keeper = _StoreKeeper(filesystem, path, Path(scratch))
        except Timeout as error:
            raise CiteRayError(
                f"{destination}: another download writes there; wait for it or stop it"
            ) from error
        except OSError as error:
            raise CiteRayError(
                f"{destination}: it cannot be written ({error}); check the path and its "
                "permissions, and for a store its bucket, endpoint and credentials"
            ) from error
        yield keeper


def _try_writing(filesystem: Any, path: str) -> None:
    """Write a test object, so that a store without write access fails before any download."""
    with filesystem.open_output_stream(path, compression=None) as sink:
        sink.write(b"a download was begun\n")
    filesystem.delete_file(path)


def _checksum_line(file: RemoteFile, md5: str) -> bytes:
    return f"MD5({file.name})= {md5}\n".encode("ascii")


def _require_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed and needed + MARGIN_BYTES > free:
        raise CiteRayError(
            f"{folder}: the download needs {(needed + MARGIN_BYTES) / 1e9:,.1f} GB and "
            f"{free / 1e9:,.1f} GB are free; free disk space, use another disk, or download "
            "fewer files with --files"
        )


class _FolderKeeper:
    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, file: RemoteFile) -> Path:
        return self._root / file.folder / file.name

    def holds(self, file: RemoteFile, md5: str) -> bool:
        path = self._path(file)
        if not path.is_file() or md5_of(path) != md5:
            return False
        self._write_checksum(file, md5)
        # A download that was killed in `keep` may have left a validator.
        discard(self.partial(file))
        return True

    def partial(self, file: RemoteFile) -> Path:
        path = self._path(file)
        path.parent.mkdir(exist_ok=True)
        return path.with_name(f"{path.name}.partial")

    def keep(self, file: RemoteFile, md5: str) -> None:
        partial = self.partial(file)
        with partial.open("rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(partial, self._path(file))
        discard(partial)
        self._write_checksum(file, md5)

    def _write_checksum(self, file: RemoteFile, md5: str) -> None:
        path = self._path(file).with_name(f"{file.name}.md5")
        line = _checksum_line(file, md5)
        if not path.is_file() or path.read_bytes() != line:
            # No other process writes here, because this one holds the folder's lock.
            write_atomically(path, line, alone=True)

    def require_room(self, missing: Sequence[int], concurrent: int) -> None:
        _require_room(self._root, sum(missing))


class _StoreKeeper:
    """Keeper for an object store; a file is complete once its checksum, written last, exists."""

    def __init__(self, filesystem: Any, root: str, scratch: Path) -> None:
        self._filesystem = filesystem
        self._root = root
        self._scratch = scratch

    def _path(self, file: RemoteFile) -> str:
        return f"{self._root}/{file.folder}/{file.name}"

    def holds(self, file: RemoteFile, md5: str) -> bool:
        path = self._path(file)
        found = self._filesystem.get_file_info([path, f"{path}.md5"])
        if any(f.type != fs.FileType.File for f in found):
            return False
        with self._filesystem.open_input_file(f"{path}.md5") as stream:
            return bool(stream.read() == _checksum_line(file, md5))

    def partial(self, file: RemoteFile) -> Path:
        return self._scratch / f"{file.folder}-{file.name}"

    def keep(self, file: RemoteFile, md5: str) -> None:
        path, partial = self._path(file), self.partial(file)
        if self._filesystem.get_file_info(f"{path}.md5").type == fs.FileType.File:
            self._filesystem.delete_file(f"{path}.md5")
        # Write under another name first, because a stream that fails half-way is closed as if it
        # were complete. Without compression=None, Arrow would compress a .gz file again.
        aside = f"{path}.partial"
        with (
            partial.open("rb") as source,
            self._filesystem.open_output_stream(aside, compression=None) as sink,
        ):
            shutil.copyfileobj(source, sink, _BLOCK_BYTES)
        sent, size = self._filesystem.get_file_info(aside).size, partial.stat().st_size
        if sent != size:
            raise OSError(f"{aside}: {sent} of {size} bytes arrived in the store")
        self._filesystem.move(aside, path)
        with self._filesystem.open_output_stream(f"{path}.md5", compression=None) as sink:
            sink.write(_checksum_line(file, md5))
        discard(partial)

    def require_room(self, missing: Sequence[int], concurrent: int) -> None:
        _require_room(self._scratch, sum(sorted(missing)[-concurrent:]))
