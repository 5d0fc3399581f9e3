"""One file of an index against the size and the checksum that the manifest gives it."""

from __future__ import annotations

from pathlib import Path, PurePath

from cluster.index.copies import fresh_copy
from cluster.index.manifest import Artefact
from cluster.storage.places import Place
from cluster.storage.whole_files import sha256_of
from pipelines.verify.note_findings import RESTORE, Finding


def artefact_fault(path: Path, expected: Artefact, *, quick: bool) -> str | None:
    """What is wrong with the file at `path`, or None; `quick` leaves its bytes unread."""
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


def check_file(index: Place, file: PurePath, expected: Artefact, *, quick: bool) -> list[Finding]:
    """What is wrong with one `file` of the index, which is copied first where it is in a store."""
    with fresh_copy(index / file.parent, {file.name}) as here:
        fault = artefact_fault(here / file.name, expected, quick=quick)
    return [Finding("artefact", str(file), fault, RESTORE)] if fault else []
