"""Removes staging that a published version has taken in, and nothing else.

Before it publishes, a run notes in `staging/<build>/taken-<version>.json` what of its staging
that version takes in. Once the version is published, whoever holds the lease may remove
what the note lists: the run itself, or after its death the next writer. Staging of an
interrupted run is in no note, and stays for the rerun.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from cluster.errors import CiteRayError, IndexFormatError, StorageError
from cluster.index.lease import Lease, hold_lease
from cluster.index.manifest import read_manifest
from cluster.storage.places import Place, list_files, remove
from cluster.storage.whole_files import write_atomically

_NOTE = "taken-"


def note_taken(build: Place, sources: Sequence[str], others: Sequence[str], version: str) -> None:
    """Note that `version` takes in the staging of `sources`, whatever their files' state.

    `others` are further names in `build`, such as the quantiser's.
    """
    staged = {name.split("/")[0] for name in list_files(build)}
    taken = {name for name in staged if name in others or name.rsplit("-", 2)[0] in sources}
    write_atomically(build / f"{_NOTE}{version}.json", json.dumps(sorted(taken)).encode())


def drop_taken(lease: Lease) -> None:
    """Remove all staging that published versions have taken in.

    What cannot be removed stays for the next writer. Raises LeaseLostError without the lease.
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


def drop_left(index: Place, command: str) -> None:
    """`drop_taken` for a command that changes nothing else, where a run died once it published.

    Another command that is at work drops it itself, so that nothing is waited for or raised.
    """
    if _notes(index / "staging"):
        with suppress(OSError, CiteRayError), hold_lease(index, command) as lease:
            drop_taken(lease)


def _notes(staging: Place) -> list[str]:
    return [name for name in list_files(staging) if f"/{_NOTE}" in name]


def _published(index: Place) -> set[str]:
    try:
        manifest = read_manifest(index)
    except IndexFormatError:
        return set()
    return {manifest.version, *(entry.version for entry in manifest.history)}


def _remove_all(lease: Lease, build: Place, names: Iterable[str]) -> None:
    for name in names:
        lease.check()
        remove(build / name)


def _remove_empty(staging: Place) -> None:
    """Folders go with their last file; a store may keep an empty object in a folder's place."""
    if isinstance(staging, Path):
        for folder in (*staging.glob("*/"), staging):
            with suppress(OSError):
                folder.rmdir()
    elif not list_files(staging):
        remove(staging)
