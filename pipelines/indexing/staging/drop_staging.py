"""Remove staging that a published version includes, and nothing else.

Before a run publishes, it lists in `staging/<build>/taken-<version>.json` the staging that the
version includes. Once the version is published, the holder of the lease may remove what the file
lists: the run itself or, if it failed, the next writer. Staging of an interrupted run is in no such
file and stays for the rerun.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from cluster.errors import CiteRayError, IndexFormatError, StorageError
from cluster.index.lease import Lease, hold_lease
from cluster.index.manifest import read_manifest
from cluster.storage.locations import Location, list_files, remove
from cluster.storage.whole_files import write_atomically

_NOTE = "taken-"


def note_taken(
    build: Location, sources: Sequence[str], others: Sequence[str], version: str
) -> None:
    """Record that `version` includes all staging of `sources`, also of earlier states of the files.

    `others` are further names in `build`, such as that of the quantiser.
    """
    staged = {name.split("/")[0] for name in list_files(build)}
    taken = {name for name in staged if name in others or name.rsplit("-", 2)[0] in sources}
    write_atomically(build / f"{_NOTE}{version}.json", json.dumps(sorted(taken)).encode())


def drop_taken(lease: Lease) -> None:
    """Remove all staging that published versions include.

    Files that cannot be removed are left to the next writer. Raises LeaseLostError if the lease was
    lost.
    """
    staging = lease.index / "staging"
    notes = _notes(staging)
    if not notes:
        return
    published = _published(lease.index)
    with suppress(OSError, StorageError):
        for note in notes:
            build, _, name = note.partition("/")
            if name.removeprefix(_NOTE).removesuffix(".json") in published:
                _remove_all(lease, staging / build, json.loads((staging / note).read_bytes()))
            remove(staging / note)
        _remove_empty(staging)


def drop_left(index: Location, command: str) -> None:
    """Remove the staging of an earlier run that failed after publishing, as `drop_taken` does.

    For commands that have nothing else to change. If another command holds the lease, it removes
    the staging itself; this function then neither waits nor raises.
    """
    if _notes(index / "staging"):
        with suppress(OSError, CiteRayError), hold_lease(index, command) as lease:
            drop_taken(lease)


def _notes(staging: Location) -> list[str]:
    return [name for name in list_files(staging) if f"/{_NOTE}" in name]


def _published(index: Location) -> set[str]:
    try:
        manifest = read_manifest(index)
    except IndexFormatError:
        return set()
    return {manifest.version, *(entry.version for entry in manifest.history)}


def _remove_all(lease: Lease, build: Location, names: Iterable[str]) -> None:
    for name in names:
        lease.check()
        remove(build / name)


def _remove_empty(staging: Location) -> None:
    """Remove empty folders; in a store, remove the empty object that may stand for a folder."""
    if isinstance(staging, Path):
        for folder in (*staging.glob("*/"), staging):
            with suppress(OSError):
                folder.rmdir()
    elif not list_files(staging):
        remove(staging)
