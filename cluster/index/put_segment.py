"""Publishes a complete segment atomically, in a folder or in an object store.

In a folder, a segment is written to a temporary folder, which is then renamed. For an object
store, it is written on this machine and uploaded, its entry (segment.json) last: files without
an entry are ignored. Two tasks may write the same segment at once if one belongs to a killed
run. A store cannot rename, so each uploads under a unique name, which becomes the segment's.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePath

from pydantic import ValidationError

from cluster.errors import IndexFormatError
from cluster.index.layout import SEGMENT
from cluster.index.manifest import SegmentEntry, check_artefact
from cluster.storage.disk_faults import explain_disk_faults
from cluster.storage.locations import Location, StoredLocation, list_files, scratch_folder, upload
from cluster.storage.whole_files import sync, write_atomically

_PARALLEL = 4


def find_segment(directory: Location) -> SegmentEntry | None:
    """Return the entry of the segment `directory`, under any of its names, if it is complete.

    In a store, the objects are read, not their local copies.
    """
    if isinstance(directory, Path):
        return read_entry(directory)
    sent = [PurePath(name).parts for name in list_files(directory.parent)]
    names = [p[0] for p in sent if p[1:] == (SEGMENT,) and p[0].startswith(f"{directory.name}.")]
    entries = (read_entry(directory.parent / name) for name in names)
    return next((entry for entry in entries if entry), None)


def read_entry(directory: Location) -> SegmentEntry | None:
    """Return the entry of a segment whose files all match it, or None.

    A damaged segment counts as missing, so that building again repairs it.
    """
    if not (directory / SEGMENT).is_file():
        return None
    try:
        entry = SegmentEntry.model_validate_json((directory / SEGMENT).read_bytes())
        for name, expected in entry.artefacts.items():
            check_artefact(directory / name, expected)
    except (ValidationError, IndexFormatError):
        return None
    return entry


@contextmanager
def temporary_segment(directory: Location) -> Iterator[Path]:
    """Yield an empty local folder to write the segment in, and remove it afterwards."""
    if isinstance(directory, StoredLocation):
        with scratch_folder(directory) as folder:
            yield folder
        return
    # A unique name, because a task of a killed run may still be writing the same segment.
    aside = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.partial")
    try:
        with explain_disk_faults(directory):
            aside.mkdir(parents=True)
            yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def put_segment(aside: Path, directory: Location, entry: SegmentEntry) -> SegmentEntry:
    """Move the segment written in `aside` into place, and return the entry of the result.

    Raises StorageError if the storage refuses.
    """
    if isinstance(directory, StoredLocation):
        name = f"{entry.id}.{uuid.uuid4().hex[:8]}"
        entry = entry.model_copy(update={"id": name})
        _upload(aside, directory.parent / name, entry)
        return entry
    # Fails if `remove_partials` has removed the folder.
    (aside / SEGMENT).write_bytes(entry_text(entry))
    # A version that names it may be published at once and must survive a power loss.
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(sync, (*aside.rglob("*"), aside)))
    try:
        aside.rename(directory)
        sync(directory.parent)
    except OSError:
        # Another task has put a complete segment there, or a damaged one exists.
        if (there := read_entry(directory)) is not None:
            return there
        shutil.rmtree(directory, ignore_errors=True)
        aside.rename(directory)
        sync(directory.parent)
    return entry


def remove_partials(index: Location) -> None:
    """Remove incomplete segments and graphs that killed tasks left behind.

    Files that they uploaded to a store stay until pruned; without an entry they are ignored.
    """
    if isinstance(index, Path):
        for path in (index / "segments").glob("*/.*.partial"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _upload(aside: Path, directory: StoredLocation, entry: SegmentEntry) -> None:
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(lambda name: upload(aside / name, directory / name), entry.artefacts))
    write_atomically(directory / SEGMENT, entry_text(entry))


def entry_text(entry: SegmentEntry) -> bytes:
    """Return the content of a segment's file SEGMENT."""
    return entry.model_dump_json(indent=1).encode()
