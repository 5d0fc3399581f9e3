"""Local files of an index for memory-mapping: in place, or copied from an object store.

Copies in `index.cache` have the same layout as in the store. Each is checked against the
manifest when it is copied and whenever a reader opens it, and is copied again if it is
truncated, changed or of another version. Jobs check only the size of a copy, so that their
cost does not grow with the whole index. A process that has mapped a copy can still read it
after it was removed or replaced.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock

from cluster.errors import IndexFormatError
from cluster.index.manifest import Artefact, Manifest, check_artefact, current_version
from cluster.index.versions import named_by
from cluster.storage.locations import (
    Location,
    StoredLocation,
    explain_cache_faults,
    list_files,
    scratch_folder,
)

_COPIED_AT_ONCE = 4
_IsUsable: TypeAlias = Callable[[Path, Artefact], bool]


def verified(folder: Location, artefacts: Mapping[str, Artefact]) -> Path:
    """Return `folder` on this machine with these files in it, every checksum verified.

    Raises IndexFormatError if a file is missing or does not match `artefacts`, InputError if a
    store cannot be read, and StorageError if its copies cannot be written.
    """
    if isinstance(folder, Path):
        for name, expected in artefacts.items():
            check_artefact(folder / name, expected)
        return folder
    return _copies(folder, artefacts, _is_valid)


def at_hand(folder: Location, artefacts: Mapping[str, Artefact], *names: str) -> Path:
    """Return `folder` on this machine with those of its files that are called `names`.

    To save time, local files are not checked, and copies from a store only by their size.
    Raises the errors of `verified`.
    """
    if isinstance(folder, Path):
        return folder
    named = {name: artefacts[name] for name in names if name in artefacts}
    return _copies(folder, named, _has_expected_size)


@contextmanager
def fresh_copy(folder: Location, names: Collection[str]) -> Iterator[Path]:
    """Yield `folder` in its current state, with those of `names` that exist, for checking.

    For a store this is a separate copy that is removed when the block ends; if no file exists,
    the yielded path does not exist either. Raises InputError like `verified`.
    """
    if isinstance(folder, Path):
        yield folder
        return
    with scratch_folder(folder) as scratch:
        for name in list_files(folder).keys() & set(names):
            _fetch(folder / name, scratch / "copy" / name)
        yield scratch / "copy"


def drop_copies(index: Location, manifest: Manifest) -> None:
    """Remove copies that `manifest` does not name, if it is the published one.

    A reader of an older version removes nothing, because others may use the newer one.
    """
    if isinstance(index, Path) or current_version(index) != manifest.version:
        return
    named = named_by(manifest)
    for path in (*index.copy.glob("versions/*"), *index.copy.glob("segments/*/*")):
        if str(path.relative_to(index.copy)).removesuffix(".lock") not in named:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _copies(
    folder: StoredLocation, artefacts: Mapping[str, Artefact], is_usable: _IsUsable
) -> Path:
    def keep(name: str) -> None:
        _ensure_copy(folder / name, artefacts[name], is_usable)

    with ThreadPoolExecutor(_COPIED_AT_ONCE) as pool:
        list(pool.map(keep, artefacts))
    return folder.copy


def _ensure_copy(location: StoredLocation, expected: Artefact, is_usable: _IsUsable) -> None:
    """Copy the object unless a valid copy exists; a concurrent caller waits for the copy."""
    with explain_cache_faults(location):
        location.copy.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{location.copy}.lock"):
            if not is_usable(location.copy, expected):
                _copy(location, expected)


def _copy(location: StoredLocation, expected: Artefact) -> None:
    with scratch_folder(location) as scratch:
        try:
            found = _fetch(location, scratch / "copy")
        except FileNotFoundError as error:
            raise IndexFormatError(
                f"{location}: missing from the index; build it again or restore it"
            ) from error
        if found != expected:
            raise IndexFormatError(
                f"{location}: its size or checksum does not match the manifest; build it again"
            )
        with (scratch / "copy").open("rb") as copy:
            # Otherwise a power loss could leave the file's name and time without its bytes.
            os.fsync(copy.fileno())
        os.replace(scratch / "copy", location.copy)


def _is_valid(path: Path, expected: Artefact) -> bool:
    try:
        check_artefact(path, expected)
    except IndexFormatError:
        return False
    return True


def _has_expected_size(path: Path, expected: Artefact) -> bool:
    try:
        return path.stat().st_size == expected.bytes
    except FileNotFoundError:
        return False


def _fetch(location: StoredLocation, path: Path) -> Artefact:
    """Copy the object to `path` and return its size and checksum.

    Raises FileNotFoundError, OSError or InputError.
    """
    digest, size = hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        for block in location.blocks():
            sink.write(block)
            digest.update(block)
            size += len(block)
    return Artefact(bytes=size, sha256=digest.hexdigest())
