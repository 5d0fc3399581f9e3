"""Check one file of an index against its size and checksum in the manifest."""

from __future__ import annotations

from pathlib import Path, PurePath

from cluster.index.copies import fresh_copy
from cluster.index.manifest import Artefact
from cluster.storage.locations import Location
from cluster.storage.whole_files import sha256_of
from pipelines.verify.note_findings import RESTORE, Finding


def artefact_fault(path: Path, expected: Artefact, *, quick: bool) -> str | None:
    """Return the fault of the file at `path`, or None; `quick` checks only its size."""
    if not path.is_file():
        return f"missing, the manifest says {expected.bytes:,} bytes"
    size = path.stat().st_size
    if size != expected.bytes:
        return f"{size:,} bytes where the manifest says {expected.bytes:,}"
    if quick:
        return None
    try:
        found = sha256_of(path)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if found != expected.sha256:
        return f"sha256 {found[:12]}... where the manifest says {expected.sha256[:12]}..."
    return None


def check_file(
    index: Location, file: PurePath, expected: Artefact, *, quick: bool
) -> list[Finding]:
    """Return the findings for one file; a file in an object store is copied first."""
    with fresh_copy(index / file.parent, {file.name}) as here:
        fault = artefact_fault(here / file.name, expected, quick=quick)
    return [Finding("artefact", str(file), fault, RESTORE)] if fault else []
