"""Location of an index: a local folder, or an object store with copies on this machine.

Files in a folder are memory-mapped in place. Files of a store are copied into a cache and mapped
there (cluster/index/copies.py). New files are written in a scratch folder of the cache and
uploaded in one step, so that an object is either complete or absent.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from pyarrow import NativeFile, fs

from cluster.errors import CiteRayError, InputError, StorageError
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.object_store import (
    StoredFacts,
    StoredFile,
    asking,
    is_stored,
    join_url,
    list_folder,
    open_store,
    writing,
)

# Size of a read, which is one request: large enough to be fast, small for a worker's memory.
BLOCK_BYTES = 8 << 20
# A scratch folder is locked soon after its creation; an older one without a lock is orphaned.
_LOCKED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class StoredLocation(StoredFile):
    """A folder or file of an object store. `copy` is the path of its local copy, if there is
    one; `scratch` is a folder for files that are being written.
    """

    copy: Path
    scratch: Path

    @classmethod
    def at(cls, url: str, cache: Path) -> StoredLocation:
        """Return the location `url`, with its copies in a separate folder of `cache`."""
        own = cache / hashlib.sha256(url.encode()).hexdigest()[:16]
        return cls(url, own, cache / "scratch")

    @property
    def parent(self) -> StoredLocation:
        """The parent folder in the store, with the parent folder of the copies."""
        parts = urlsplit(self.url)
        above = parts._replace(path=str(PurePosixPath(parts.path).parent))
        return StoredLocation(urlunsplit(above), self.copy.parent, self.scratch)

    def __truediv__(self, name: str | PurePath) -> StoredLocation:
        # These two characters would end the URL's path; no others are special here.
        plain = str(name).replace("?", "%3F").replace("#", "%23")
        return StoredLocation(join_url(self.url, plain), self.copy / name, self.scratch)

    def is_file(self) -> bool:
        """Return whether this is an object. Raises InputError if the store cannot be read."""
        return is_stored(self.url)

    def is_dir(self) -> bool:
        """Return whether the folder contains any object. Raises the errors of `is_file`."""
        filesystem, path = open_store(self.url)
        with asking(self.url):
            return bool(filesystem.get_file_info(path).type == fs.FileType.Directory)

    def stat(self) -> StoredFacts:
        """Return size and time. Raises FileNotFoundError, or as `is_file` does."""
        with _asking_for_one(self.url):
            return StoredFile.stat(self)

    def open_at_random(self) -> NativeFile:
        """Open for random access, with one request per read. Raises the errors of `blocks`."""
        filesystem, path = open_store(self.url)
        with _asking_for_one(self.url):
            return filesystem.open_input_file(path)

    def blocks(self) -> Iterator[bytes]:
        """Yield the object's bytes in blocks. Raises FileNotFoundError, or as `is_file` does."""
        filesystem, path = open_store(self.url)
        with _asking_for_one(self.url), filesystem.open_input_file(path) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block

    def read_bytes(self) -> bytes:
        """Return the whole object. Raises the errors of `blocks`."""
        return b"".join(self.blocks())


Location: TypeAlias = Path | StoredLocation


@contextmanager
def _asking_for_one(url: str) -> Iterator[None]:
    try:
        with asking(url):
            yield
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise FileNotFoundError(f"{url}: there is no such object") from error
        raise


def put(location: StoredLocation, data: bytes) -> None:
    """Write `data` to the object in one step. Raises StorageError if the store refuses."""
    filesystem, path = open_store(location.url)
    # Disable compression, since Arrow would otherwise compress .gz files again.
    with writing(location.url), filesystem.open_output_stream(path, compression=None) as sink:
        sink.write(data)


def upload(source: Path, location: StoredLocation) -> None:
    """Upload a local file. Raises StorageError if the store refuses or fails midway."""
    size = source.stat().st_size
    if size <= BLOCK_BYTES:
        put(location, source.read_bytes())
        return
    filesystem, path = open_store(location.url)
    with writing(location.url):
        try:
            with (
                source.open("rb") as stream,
                filesystem.open_output_stream(path, compression=None) as sink,
            ):
                shutil.copyfileobj(stream, sink, BLOCK_BYTES)
            arrived = filesystem.get_file_info(path).size
            if arrived != size:
                raise OSError(f"{arrived} of {size} bytes arrived")
        except BaseException:
            # An interrupted stream is closed as if it were complete, so delete the object.
            _delete_partial(filesystem, path)
            raise


def _delete_partial(filesystem: fs.FileSystem, path: str) -> None:
    try:
        filesystem.delete_file(path)
    except OSError:
        return


def list_files(location: Location) -> dict[str, int]:
    """Return the size in bytes of every file below `location`, by relative path, in order.

    An empty local folder counts as a file of 0 bytes. Raises InputError if a store cannot
    be read.
    """
    if isinstance(location, Path):
        here = (p for p in location.rglob("*") if p.is_file() or not any(p.iterdir()))
        sizes = {p: p.stat().st_size if p.is_file() else 0 for p in here}
        return {str(p.relative_to(location)): sizes[p] for p in sorted(sizes)}
    filesystem, path = open_store(location.url)
    below = fs.FileSelector(path, recursive=True, allow_not_found=True)
    with asking(location.url):
        found = filesystem.get_file_info(below)
    files = {f.path[len(path) + 1 :]: f.size for f in found if f.type == fs.FileType.File}
    return dict(sorted(files.items()))


def file_names(folder: Location) -> list[str]:
    """Return the names of the files directly in `folder`, sorted; none if it does not exist.

    Raises InputError if a store cannot be read.
    """
    if isinstance(folder, Path):
        return sorted(p.name for p in folder.glob("*") if p.is_file())
    return [file.name for file in list_folder(folder.url)]


def remove(location: Location) -> None:
    """Remove a file, or a folder with its contents; do nothing if it does not exist.

    Raises OSError, or for a store StorageError, if the removal is refused.
    """
    if isinstance(location, Path):
        if location.is_dir():
            shutil.rmtree(location)
        else:
            location.unlink(missing_ok=True)
        return
    filesystem, path = open_store(location.url)
    with writing(location.url):
        kind = filesystem.get_file_info(path).type
        if kind == fs.FileType.File:
            filesystem.delete_file(path)
        elif kind == fs.FileType.Directory:
            # A gs:// folder may have no object of its own, for which Arrow raises an error.
            with suppress(FileNotFoundError):
                filesystem.delete_dir(path)


@contextmanager
def scratch_folder(location: StoredLocation) -> Iterator[Path]:
    """Yield an empty local folder that is removed when the block ends.

    Folders left behind by killed processes are removed first. Raises StorageError if the
    cache's disk is full or not writable.
    """
    folder = location.scratch / uuid.uuid4().hex
    with explain_cache_faults(location):
        location.scratch.mkdir(parents=True, exist_ok=True)
        _remove_orphans(location.scratch)
        folder.mkdir()
        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(held)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def explain_cache_faults(location: StoredLocation) -> Iterator[None]:
    """Raise StorageError like `explain_disk_faults`, and suggest another cache folder."""
    elsewhere = f"copies of {location} can lie elsewhere: --set index.cache=DIR"
    try:
        yield
    except CiteRayError:
        raise
    except (NotADirectoryError, FileExistsError) as error:
        raise StorageError(f"{location.copy}: cannot create a folder here; {elsewhere}") from error
    except Exception as error:
        try:
            with explain_disk_faults(location.copy):
                raise
        except StorageError as named:
            raise StorageError(f"{named}; {elsewhere}") from error


def _remove_orphans(scratch: Path) -> None:
    for folder in scratch.iterdir():
        try:
            if time.time() - folder.stat().st_mtime < _LOCKED_WITHIN_S:
                continue
            held = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(held)
