"""Group the sources given to a build or an update: new, already in the index, and copies.

No source is left out silently: it is new, or the index already holds the same content, or an error
names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cluster.errors import InputError
from cluster.index.manifest import Manifest, SourceEntry
from cluster.pubmed.source_order import check_one_baseline, natural_key, without_order
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.sources.late_sources import first_late

# Sources whose size and checksum are read concurrently; reading releases the GIL.
READS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class GivenSources:
    """The sources of an update, each in one of the three groups.

    `new` are to be applied, in order. The index already holds `held` with the same content.
    `copies` maps a source to the name of one in `held` or `new` with the same content.
    """

    new: Sequence[File]
    held: Sequence[File]
    copies: Mapping[File, str]


def sort_sources(manifest: Manifest, sources: Sequence[File]) -> GivenSources:
    """Compare the `sources`, in order, with those that `manifest` holds.

    A source in the index is recognised by its name. Its bytes are read only if its modification
    time differs from the recorded one. Raises InputError for a name in the index with other
    content, and for files of another year's baseline.
    """
    held = {source.name: source for source in manifest.sources}
    check_one_baseline([*held, *(path.name for path in sources)])
    known = [path for path in sources if path.name in held]
    others = [path for path in sources if path.name not in held]
    if changed := [path for path, same in _unchanged(known, held) if not same]:
        raise InputError(_changed(manifest, changed))
    twins = {_stem(name): name for name in held}
    if twin := next((path for path in others if _stem(path.name) in twins), None):
        raise InputError(
            f"{twin}: {manifest.version} holds {twins[_stem(twin.name)]}, which is the same file "
            "with or without compression; leave it out, or rename it if its content is newer"
        )
    copies = find_copies(others, manifest.sources)
    return GivenSources([path for path in others if path not in copies], known, copies)


def _stem(name: str) -> str:
    return name.removesuffix(".gz")


def _changed(manifest: Manifest, changed: Sequence[File]) -> str:
    names = ", ".join(str(path) for path in changed)
    return (
        f"{names}: the content is not that which {manifest.version} indexed under this name; to "
        "apply it as a newer file, give it a new name; if NLM has issued it again, build the index "
        "again; otherwise restore it"
    )


def _unchanged(
    paths: Sequence[File], held: Mapping[str, SourceEntry]
) -> Iterable[tuple[File, bool]]:
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        same = pool.map(lambda path: _is_entry(path, held[path.name]), paths)
        return list(zip(paths, same, strict=True))


def are_unchanged(sources: Sequence[File], manifest: Manifest) -> bool:
    """Return whether all `sources`, whose names the manifest holds, have the indexed content."""
    held = {source.name: source for source in manifest.sources}
    return all(same for _, same in _unchanged(sources, held))


def _is_entry(path: File, entry: SourceEntry) -> bool:
    found = path.stat()
    if found.st_size != entry.bytes:
        return False
    return found.st_mtime_ns == entry.modified_ns or sha256_of(path) == entry.sha256


def find_copies(paths: Sequence[File], held: Sequence[SourceEntry] = ()) -> dict[File, str]:
    """Map each copy among `paths` to the name of an equal source, earlier in `paths` or in `held`.

    Only files of equal size are read.
    """
    known = {entry.sha256: entry.name for entry in held}
    by_size: dict[int, list[File]] = defaultdict(list)
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        for path, size in zip(paths, pool.map(lambda p: p.stat().st_size, paths), strict=True):
            by_size[size].append(path)
        held_sizes = {entry.bytes for entry in held}
        alike = [p for size, ps in by_size.items() if len(ps) > 1 or size in held_sizes for p in ps]
        digests = dict(zip(alike, pool.map(sha256_of, alike), strict=True))
    copies = {}
    for path in paths:
        if path in digests and known.setdefault(digests[path], path.name) != path.name:
            copies[path] = known[digests[path]]
    return copies


def copy_notes(copies: Mapping[File, str]) -> tuple[str, ...]:
    """Return a sentence for each source that is left out as a copy of another."""
    return tuple(
        f"{path}: left out, since its content is that of {name}" for path, name in copies.items()
    )


def order_notes(sources: Sequence[File], manifest: Manifest | None = None) -> tuple[str, ...]:
    """Return sentences about the order of new sources whose names do not determine it.

    `manifest` is that of the index to which an update adds the sources.
    """
    names = [path.name for path in sources]
    free, notes = without_order(names), []
    if len(free) > 1:
        listed = ", ".join(free) if len(free) <= 10 else f"{free[0]} ... {free[-1]}"
        notes.append(
            f"applied in this order, since only NLM's file names tell theirs: {listed}; where two "
            "hold the same article, the later one counts; name files in another order to change it"
        )
    held = [source.name for source in manifest.sources] if manifest else []
    last = max(held, key=natural_key, default="")
    if early := [name for name in free if held and natural_key(name) < natural_key(last)]:
        notes.append(
            f"applied after {last}, which the index holds, since only NLM's file names tell their "
            f"order and an update counts as newer: {', '.join(early)}"
        )
    if manifest and (late := first_late(manifest, names)):
        notes.append(
            f"{late} comes before files that the index holds, by NLM's numbers: where a later file "
            "holds the same article, that one still counts"
        )
    return tuple(notes)
