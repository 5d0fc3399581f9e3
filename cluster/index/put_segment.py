"""Where a segment is written, and how it gets its place when it is whole.

In a folder it is written aside and renamed. For an object store it is written on this
machine and sent, its entry last: what has no entry is no segment. Two tasks may write the
same segment at once, when one is of a killed run, and a store renames nothing; there each
sends under a name of its own, which is then the segment's.
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
from cluster.storage.disk_faults import naming_disk_faults
from cluster.storage.places import Place, StoredPlace, list_files, scratch_folder, upload
from cluster.storage.whole_files import sync, write_atomically

_SENT_AT_ONCE = 4


def find_segment(directory: Place) -> SegmentEntry | None:
    """The entry of the segment `directory` if it is there and whole, under any of its names.

    Of a store the objects are read, not their copies.
    """
    if isinstance(directory, Path):
        return read_entry(directory)
    sent = [PurePath(name).parts for name in list_files(directory.parent)]
    names = [p[0] for p in sent if p[1:] == (SEGMENT,) and p[0].startswith(f"{directory.name}.")]
    entries = (read_entry(directory.parent / name) for name in names)
    return next((entry for entry in entries if entry), None)


def read_entry(directory: Place) -> SegmentEntry | None:
    """The entry of a segment that is whole to the byte; None where there is none.

    A damaged one counts as none, so that building again mends it.
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
def room_beside(directory: Place) -> Iterator[Path]:
    """An empty folder on this machine to write the segment in; what is left in it goes."""
    if isinstance(directory, StoredPlace):
        with scratch_folder(directory) as folder:
            yield folder
        return
    # A name of its own: a task of a killed run may still be writing the same segment.
    aside = directory.with_name(f".{directory.name}.{uuid.uuid4().hex}.partial")
    try:
        with naming_disk_faults(directory):
            aside.mkdir(parents=True)
            yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def put_segment(aside: Path, directory: Place, entry: SegmentEntry) -> SegmentEntry:
    """Put what was written in `aside` in its place; gives the entry of what is there then.

    Raises StorageError where that is refused.
    """
    if isinstance(directory, StoredPlace):
        name = f"{entry.id}.{uuid.uuid4().hex[:8]}"
        entry = entry.model_copy(update={"id": name})
        _send(aside, directory.parent / name, entry)
        return entry
    # Fails where remove_partials took the folder away.
    (aside / SEGMENT).write_bytes(entry_text(entry))
    # A version that names it may be published at once, and must then survive a loss of power.
    with ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
        list(pool.map(sync, (*aside.rglob("*"), aside)))
    try:
        aside.rename(directory)
        sync(directory.parent)
    except OSError:
        # Another has put a whole segment there meanwhile, or a damaged one is there.
        if (there := read_entry(directory)) is not None:
            return there
        shutil.rmtree(directory, ignore_errors=True)
        aside.rename(directory)
        sync(directory.parent)
    return entry


def remove_partials(index: Place) -> None:
    """Remove what tasks that were killed left of the segments they were writing.

    What they had sent to a store stays until it is pruned: no entry makes a segment of it.
    """
    if isinstance(index, Path):
        for path in (index / "segments").glob("*/.*.partial"):
            shutil.rmtree(path, ignore_errors=True)


def _send(aside: Path, directory: StoredPlace, entry: SegmentEntry) -> None:
    with ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
        list(pool.map(lambda name: upload(aside / name, directory / name), entry.artefacts))
    write_atomically(directory / SEGMENT, entry_text(entry))


def entry_text(entry: SegmentEntry) -> bytes:
    """What the file SEGMENT of a segment holds."""
    return entry.model_dump_json(indent=1).encode()
