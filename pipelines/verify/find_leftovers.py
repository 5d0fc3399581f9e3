"""Find files in an index directory that belong to no version; they are reported, not removed."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from pydantic import ValidationError

from cluster.index.layout import CURRENT, LEASE, SEGMENT, SUPERSEDES, segment_directory
from cluster.index.manifest import Manifest
from cluster.index.versions import named_by
from cluster.storage.locations import Location, list_files
from pipelines.verify.note_findings import Finding

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
        place = _unnamed(file, named)
        if place and not file.endswith(".lock"):
            sizes[place] += size
    return [_leftover(place, sizes[place]) for place in sorted(sizes, key=_from_above)]


def _from_above(place: str) -> tuple[int, str]:
    top = place.split("/")[0]
    return (_TOP.index(top) if top in _TOP else -1, place)


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
    place = str(PurePath(*parts[:depth]))
    if place not in named:
        return place
    inside = str(PurePath(*parts[depth:]))
    return file if len(parts) > depth and inside not in named[place] else None


def _leftover(place: str, size: int) -> Finding:
    mend = "remove it if no build or update is under way"
    message = f"{size / 1e6:,.1f} MB that no version names"
    return Finding("leftover", place, message, mend)
