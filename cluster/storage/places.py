"""Where an index lies: a folder here, or a place in an object store, of which copies lie here.

What is in a folder is mapped where it is. Of a store, what must be a file is copied into a
cache and mapped there (cluster/index/copies.py), and what is written is made in a scratch
folder beside the cache and sent whole: an object is there to its end or not at all.
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
from cluster.storage.disk_faults import naming_disk_faults
from cluster.storage.object_store import (
    StoredFacts,
    StoredFile,
    asking,
    join_url,
    list_folder,
    open_store,
    writing,
)

# Each read is a request: large enough for a disk's speed, small beside what a worker holds.
BLOCK_BYTES = 8 << 20
# A scratch folder is made and locked within this, so that an older one without a lock is nobody's.
_LOCKED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class StoredPlace(StoredFile):
    """A folder or file of an object store. `copy` is where its copy lies on this machine, if
    there is one; `scratch` is a folder for what is being made.
    """

    copy: Path
    scratch: Path

    @classmethod
    def at(cls, url: str, cache: Path) -> StoredPlace:
        """The place `url`, with its copies in a folder of `cache` that is its own."""
        own = cache / hashlib.sha256(url.encode()).hexdigest()[:16]
        return cls(url, own, cache / "scratch")

    @property
    def parent(self) -> StoredPlace:
        """The folder above in the store; its copies lie one folder above as well."""
        parts = urlsplit(self.url)
        above = parts._replace(path=str(PurePosixPath(parts.path).parent))
        return StoredPlace(urlunsplit(above), self.copy.parent, self.scratch)

    def __truediv__(self, name: str | PurePath) -> StoredPlace:
        # These two would end a URL's path; nothing else in it is special here.
        plain = str(name).replace("?", "%3F").replace("#", "%23")
        return StoredPlace(join_url(self.url, plain), self.copy / name, self.scratch)

    def is_file(self) -> bool:
        """Raises InputError where the store cannot be asked."""
        filesystem, path = open_store(self.url)
        with asking(self.url):
            return bool(filesystem.get_file_info(path).type == fs.FileType.File)

    def is_dir(self) -> bool:
        """Whether anything is below; raises as `is_file`."""
        filesystem, path = open_store(self.url)
        with asking(self.url):
            return bool(filesystem.get_file_info(path).type == fs.FileType.Directory)

    def stat(self) -> StoredFacts:
        """Raises FileNotFoundError if there is no such object, or as `is_file`."""
        with _asking_for_one(self.url):
            return StoredFile.stat(self)

    def open_at_random(self) -> NativeFile:
        """For reading any of its bytes, a request for each read; raises as `blocks`."""
        filesystem, path = open_store(self.url)
        with _asking_for_one(self.url):
            return filesystem.open_input_file(path)

    def blocks(self) -> Iterator[bytes]:
        """The object's bytes. Raises FileNotFoundError if there is none, or as `is_file`."""
        filesystem, path = open_store(self.url)
        with _asking_for_one(self.url), filesystem.open_input_file(path) as stream:
            while block := stream.read(BLOCK_BYTES):
                yield block

    def read_bytes(self) -> bytes:
        """The whole object; raises as `blocks`."""
        return b"".join(self.blocks())


Place: TypeAlias = Path | StoredPlace


@contextmanager
def _asking_for_one(url: str) -> Iterator[None]:
    try:
        with asking(url):
            yield
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise FileNotFoundError(f"{url}: there is no such object") from error
        raise


def put(place: StoredPlace, data: bytes) -> None:
    """Make `data` the object, in one step. Raises StorageError where the store refuses."""
    filesystem, path = open_store(place.url)
    # Told of no compression, or Arrow would pack what is named .gz once more.
    with writing(place.url), filesystem.open_output_stream(path, compression=None) as sink:
        sink.write(data)


def upload(source: Path, place: StoredPlace) -> None:
    """Send a file of this machine. Raises StorageError where the store refuses or fails midway."""
    size = source.stat().st_size
    if size <= BLOCK_BYTES:
        put(place, source.read_bytes())
        return
    filesystem, path = open_store(place.url)
    with writing(place.url):
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
            # A stream that is left midway is closed as if it were whole.
            _forget(filesystem, path)
            raise


def _forget(filesystem: fs.FileSystem, path: str) -> None:
    try:
        filesystem.delete_file(path)
    except OSError:
        return


def list_files(place: Place) -> dict[str, int]:
    """The bytes of every file below `place`, by its path relative to it, in order.

    An empty folder here counts as a file of 0 bytes. Raises InputError where a store cannot
    be asked.
    """
    if isinstance(place, Path):
        here = (p for p in place.rglob("*") if p.is_file() or not any(p.iterdir()))
        sizes = {p: p.stat().st_size if p.is_file() else 0 for p in here}
        return {str(p.relative_to(place)): sizes[p] for p in sorted(sizes)}
    filesystem, path = open_store(place.url)
    below = fs.FileSelector(path, recursive=True, allow_not_found=True)
    with asking(place.url):
        found = filesystem.get_file_info(below)
    files = {f.path[len(path) + 1 :]: f.size for f in found if f.type == fs.FileType.File}
    return dict(sorted(files.items()))


def file_names(folder: Place) -> list[str]:
    """The names of the files right in `folder`, sorted; none where there is no such folder.

    Raises InputError where a store cannot be asked.
    """
    if isinstance(folder, Path):
        return sorted(p.name for p in folder.glob("*") if p.is_file())
    return [file.name for file in list_folder(folder.url)]


def remove(place: Place) -> None:
    """Remove a file, or a folder with all that is in it; where there is none, nothing.

    Raises OSError, or of a store StorageError, where that is refused.
    """
    if isinstance(place, Path):
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        return
    filesystem, path = open_store(place.url)
    with writing(place.url):
        kind = filesystem.get_file_info(path).type
        if kind == fs.FileType.File:
            filesystem.delete_file(path)
        elif kind == fs.FileType.Directory:
            # A folder of gs:// may have no object of its own, which Arrow then misses.
            with suppress(FileNotFoundError):
                filesystem.delete_dir(path)


@contextmanager
def scratch_folder(place: StoredPlace) -> Iterator[Path]:
    """An empty folder on this machine that goes when the block ends.

    What killed processes left is removed first. Raises StorageError where the cache's disk
    is full or may not be written.
    """
    folder = place.scratch / uuid.uuid4().hex
    with naming_cache_faults(place):
        place.scratch.mkdir(parents=True, exist_ok=True)
        _sweep(place.scratch)
        folder.mkdir()
        held = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(held)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def naming_cache_faults(place: StoredPlace) -> Iterator[None]:
    """Around what is written to the cache: as `naming_disk_faults`, with where else it may be."""
    elsewhere = f"copies of {place} can lie elsewhere: --set index.cache=DIR"
    try:
        yield
    except CiteRayError:
        raise
    except (NotADirectoryError, FileExistsError) as error:
        raise StorageError(f"{place.copy}: no folder can be made here; {elsewhere}") from error
    except Exception as error:
        try:
            with naming_disk_faults(place.copy):
                raise
        except StorageError as named:
            raise StorageError(f"{named}; {elsewhere}") from error


def _sweep(scratch: Path) -> None:
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
