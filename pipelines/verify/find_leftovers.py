"""What lies in an index directory and belongs to no version: told, never removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from cluster.index.layout import (
    CURRENT,
    SEGMENT,
    SUPERSEDES,
    manifest_file,
    quantiser_file,
    segment_directory,
    vocabulary_file,
)
from cluster.index.manifest import Manifest
from pipelines.verify.note_findings import Finding

_TOP = (CURRENT, "versions", "segments")


def find_leftovers(index: Path) -> list[Finding]:
    """Staging, half-written files, and segments that no version at `index` names.

    Where a manifest of another version cannot be read, the segments that it names are not
    known: that is then all that is told.
    """
    named: dict[Path, set[str]] = {}
    for path in sorted((index / "versions").glob("v*.json")):
        try:
            manifest = Manifest.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            place = str(path.relative_to(index))
            mend = "restore it from a copy, or remove it with the version's vocabulary"
            return [Finding("leftover", place, "not a manifest that this CiteRay reads", mend)]
        for own in (manifest_file(manifest.version), vocabulary_file(manifest.version)):
            named[own] = set()
        if manifest.quantiser:
            named[quantiser_file(manifest.quantiser.sha256)] = set()
        for number, shard in enumerate(manifest.shards):
            for entry in shard.segments:
                named[segment_directory(number, entry.id)] = {*entry.artefacts, SEGMENT, SUPERSEDES}
    return [_leftover(index, path) for path in _unnamed(index, named)]


def _unnamed(index: Path, named: dict[Path, set[str]]) -> Iterator[Path]:
    yield from (p for p in sorted(index.iterdir()) if p.name not in _TOP and p.suffix != ".lock")
    for path in (
        *sorted((index / "versions").glob("*")),
        *sorted((index / "segments").glob("*/*")),
    ):
        files = named.get(path.relative_to(index))
        if files is None:
            if path.suffix != ".lock":
                yield path
            continue
        for file in sorted(path.rglob("*")):
            known = str(file.relative_to(path)) in files or file.name.endswith(".lock")
            if file.is_file() and not known:
                yield file


def _leftover(index: Path, path: Path) -> Finding:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    size = sum(file.stat().st_size for file in files)
    mend = "remove it if no build or update is under way"
    message = f"{size / 1e6:,.1f} MB that no version names"
    return Finding("leftover", str(path.relative_to(index)), message, mend)
