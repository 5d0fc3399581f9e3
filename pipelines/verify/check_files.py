"""Check the files of an index that are in no segment, and find files that are in no version."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path, PurePath
from typing import Any

from pydantic import ValidationError

from cluster.errors import IndexFormatError
from cluster.index.copies import fresh_copy
from cluster.index.layout import (
    CURRENT,
    LEASE,
    SEGMENT,
    SUPERSEDES,
    TERMS,
    manifest_file,
    segment_directory,
    terms_file,
)
from cluster.index.lease_record import record_of
from cluster.index.manifest import Artefact, Manifest, Pointer, read_pointer
from cluster.index.terms.term_table import map_terms, merged_batches, negated
from cluster.index.versions import named_by
from cluster.storage.conditional_store import Stamped
from cluster.storage.locations import Location, file_names, list_files
from cluster.storage.whole_files import sha256_of
from pipelines.verify.note_findings import RESTORE, Finding, Notes


def artefact_fault(path: Path, expected: Artefact, *, quick: bool) -> str | None:
    """Return the fault of the file at `path`, or None; `quick` checks only its size."""
    if not path.is_file():
        return f"missing, the manifest says {expected.bytes:,} bytes"
    size = path.stat().st_size
    if size != expected.bytes:
        return f"{size:,} bytes instead of the manifest's {expected.bytes:,}"
    if quick:
        return None
    try:
        found = sha256_of(path)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if found != expected.sha256:
        return f"sha256 {found[:12]}... instead of the manifest's {expected.sha256[:12]}..."
    return None


def check_file(
    index: Location, file: PurePath, expected: Artefact, *, quick: bool
) -> list[Finding]:
    """Return the findings for one file; a file in an object store is copied first."""
    with fresh_copy(index / file.parent, {file.name}) as here:
        fault = artefact_fault(here / file.name, expected, quick=quick)
    return [Finding("artefact", str(file), fault, RESTORE)] if fault else []


def check_pointer(index: Location) -> Pointer | Finding:
    """Return the content of CURRENT, or a finding if it is missing or damaged."""
    try:
        return read_pointer((index / CURRENT).read_bytes(), index / CURRENT)
    except IndexFormatError:
        return Finding("pointer", CURRENT, "damaged: it is not what was published", RESTORE)
    except OSError as error:
        versions = [n for n in file_names(index / "versions") if PurePath(n).match("v*.json")]
        if not isinstance(error, FileNotFoundError):
            message = f"cannot be read: {error.strerror or error}"
        elif versions:
            message = f"missing: no index here, but there are manifests {', '.join(versions)}"
        else:
            message = "missing: no index here"
        return Finding("pointer", CURRENT, message, RESTORE)


def check_lease(index: Location, pointer: Pointer) -> list[Finding]:
    """Return the findings for the lease file.

    It may only be missing if no version was published under a lease. Its numbers never decrease.
    """
    mend = "remove it if no command is changing the index: the next one creates it again"
    try:
        record = record_of(Stamped((index / LEASE).read_bytes(), ""), index)
    except FileNotFoundError:
        if not pointer.token:
            return []
        message = "missing, and versions were published under it"
        return [Finding("lease", LEASE, message, "the next build, update or compact creates it")]
    except IndexFormatError:
        return [Finding("lease", LEASE, "damaged: it is not what was written", mend)]
    except OSError as error:
        return [Finding("lease", LEASE, f"cannot be read: {error.strerror or error}", mend)]
    # A writer takes the lease before it changes CURRENT, so the lease's numbers are never lower.
    if record.token < pointer.token or record.version < int(pointer.version[1:]):
        message = f"it is older than {pointer.version}, which is published"
        return [Finding("lease", LEASE, message, mend)]
    return []


def check_earlier(index: Location, manifest: Manifest) -> list[Finding]:
    """Return findings for damaged manifests of earlier versions; missing ones were pruned."""
    findings = []
    for entry in manifest.history:
        file = manifest_file(entry.version)
        try:
            data = (index / file).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            fault = f"cannot be read: {error.strerror or error}"
        else:
            if hashlib.sha256(data).hexdigest() == entry.sha256:
                continue
            fault = "changed since it was published"
        mend = f"restore it from a copy; until then --as-of cannot show {entry.version}"
        findings.append(Finding("earlier", str(file), fault, mend))
    return findings


def check_version_terms(index: Location, manifest: Manifest, *, quick: bool) -> list[Finding]:
    """Return findings for the files of term counts; `quick` does not check the sums."""
    files: dict[PurePath, Artefact] = {terms_file(e.version): e.counts for e in manifest.terms}
    checked = (check_file(index, file, entry, quick=quick) for file, entry in files.items())
    findings = [finding for found in checked for finding in found]
    return findings if findings or quick else _check_sums(index, manifest, files)


def _check_sums(
    index: Location, manifest: Manifest, files: Mapping[PurePath, Artefact]
) -> list[Finding]:
    segments = [
        segment_directory(number, segment.id) / TERMS
        for number, shard in enumerate(manifest.shards)
        for segment in shard.segments
    ]
    notes = Notes(str(manifest_file(manifest.version)), RESTORE)
    with ExitStack() as stack:

        def read(file: PurePath) -> Any:
            here = stack.enter_context(fresh_copy(index / file.parent, {file.name}))
            return map_terms(here / file.name)

        try:
            added = [read(file) for file in segments]
        except IndexFormatError:
            # The check of the segment reports this.
            return []
        tables = [read(file) for file in files]
        wrong = sum(batch.num_rows for batch in merged_batches([*tables, *map(negated, added)]))
    if wrong:
        message = f"{wrong:,} terms do not have the sums of the segments' counts"
        notes.note("terms", message)
    return notes.findings


_TOP = (CURRENT, LEASE, "versions", "segments")


def find_leftovers(index: Location) -> list[Finding]:
    """Return findings for staging, partial files and segments that no version at `index` names.

    If the manifest of another version cannot be read, its segments are not known; this is then the
    only finding.
    """
    files = list_files(index)
    named: dict[str, set[str]] = {}
    for file in (f for f in files if PurePath(f).match("versions/v*.json")):
        try:
            manifest = Manifest.model_validate_json((index / file).read_bytes())
        except (OSError, ValidationError):
            mend = "restore it from a copy, or remove it with the version's vocabulary"
            return [Finding("leftover", file, "not a manifest that this CiteRay reads", mend)]
        named |= _needed(manifest)
    sizes: Counter[str] = Counter()
    for file, size in files.items():
        path = _unnamed(file, named)
        if path and not file.endswith(".lock"):
            sizes[path] += size
    return [_leftover(path, sizes[path]) for path in sorted(sizes, key=_from_above)]


def _from_above(where: str) -> tuple[int, str]:
    top = where.split("/")[0]
    return (_TOP.index(top) if top in _TOP else -1, where)


def _needed(manifest: Manifest) -> dict[str, set[str]]:
    """Return the paths that `manifest` names, and for segments the files that they may have."""
    needed: dict[str, set[str]] = {name: set() for name in named_by(manifest)}
    for number, shard in enumerate(manifest.shards):
        for entry in shard.segments:
            files = {*entry.artefacts, SEGMENT, SUPERSEDES}
            needed[str(segment_directory(number, entry.id))] = files
    return needed


def _unnamed(file: str, named: dict[str, set[str]]) -> str | None:
    """Return the unnamed path that is or contains `file`, such as a segment or staging, if any."""
    parts = PurePath(file).parts
    if parts[0] not in _TOP:
        return parts[0]
    depth = 3 if parts[0] == "segments" else 2
    if len(parts) < depth:
        return None
    path = str(PurePath(*parts[:depth]))
    if path not in named:
        return path
    inside = str(PurePath(*parts[depth:]))
    return file if len(parts) > depth and inside not in named[path] else None


def _leftover(where: str, size: int) -> Finding:
    mend = "remove it if no build or update is under way"
    message = f"{size / 1e6:,.1f} MB that no version names"
    return Finding("leftover", where, message, mend)
