"""Verify a published version: its files, rows and counts, and with sources its census."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

from cluster.errors import IndexFormatError, InputError
from cluster.index.copies import fresh_copy
from cluster.index.layout import (
    SEGMENT,
    SUPERSEDES,
    codec_file,
    manifest_file,
    quantiser_file,
    segment_directory,
    vocabulary_file,
)
from cluster.index.manifest import Manifest, SegmentEntry, SourceEntry, read_manifest
from cluster.index.versions import analyser_of
from cluster.pubmed.source_order import apply_order, find_gaps, natural_key
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from cluster.text.vocabulary import Vocabulary
from pipelines.verify.check_files import (
    artefact_fault,
    check_earlier,
    check_file,
    check_lease,
    check_pointer,
    check_version_terms,
    find_leftovers,
)
from pipelines.verify.check_segment import CheckedSegment, Rows, SegmentChecker, join_rows
from pipelines.verify.note_findings import REBUILD, RESTORE, Finding, Notes
from pipelines.verify.read_source_records import SourceRecords, read_source_records
from pipelines.verify.take_census import (
    CensusFiles,
    Differences,
    ShardRecords,
    census_findings,
    compare,
    split_by_shard,
)

Item = TypeVar("Item")
Result = TypeVar("Result")
MapInOrder = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]
"""Like the built-in `map`: yields the results of a function for each item, in order."""
Report = Callable[[str, int, int], None]
"""Progress callback: the unit ("sources" or "shards"), the number done and the total."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Result of a verification; `version` is None if the manifest cannot be read.

    `citations` and `passages` count the live ones found, `sources` the source files read.
    `leftovers` are not faults.
    """

    version: str | None
    citations: int
    passages: int
    sources: int
    findings: tuple[Finding, ...]
    leftovers: tuple[Finding, ...]


def verify_index(
    index: Location,
    sources: Sequence[File] = (),
    *,
    quick: bool = False,
    allow_gap: bool = False,
    map_in_order: MapInOrder = map,
    report: Report = lambda *_: None,
) -> Verification:
    """Check the version published at `index`, and compare it with `sources` if given.

    With `quick`, only PMIDs and row numbers of artefacts are read. `map_in_order` checks shards and
    reads sources; `in_processes` and `cluster.ray.map_tasks` do so in parallel. From an object
    store, every file is copied freshly, even with `quick` and if there is a cached copy; the check
    of a shard keeps one segment on disk at a time. Gaps in the numbers of the source files are
    findings unless `allow_gap`. Raises InputError if there is no directory at `index`, or if a
    store cannot be read.
    """
    if not index.is_dir():
        raise InputError(f"{index}: no such directory; name the index with --set index.path=DIR")
    pointer = check_pointer(index)
    if isinstance(pointer, Finding):
        return Verification(None, 0, 0, 0, (pointer,), ())
    try:
        manifest = read_manifest(index)
    except IndexFormatError as error:
        return Verification(None, 0, 0, 0, (_manifest_finding(index, error),), ())
    findings = check_lease(index, pointer) + check_earlier(index, manifest)
    findings += _check_sources(manifest)
    for found in map_in_order(partial(_check_version_files, index, quick=quick), [manifest]):
        findings += found
    findings += [] if allow_gap else _check_numbers(manifest)
    files: CensusFiles | None = None
    expected: Sequence[ShardRecords | None] = [None] * len(manifest.shards)
    if sources:
        files, expected, found = _read_sources(sources, manifest, map_in_order, report)
        findings += _check_source_list(sources, manifest) + found
    parts = list(enumerate(expected))
    check = partial(check_shard, index=index, manifest=manifest, quick=quick, sources=files)
    checked = []
    for shard in map_in_order(check, parts):
        checked.append(shard)
        report("shards", len(checked), len(parts))
        findings += shard.findings
    citations, passages = (sum(getattr(s, n) for s in checked) for n in ("citations", "passages"))
    findings += _check_totals(manifest, citations, passages)
    if files:
        findings += census_findings([s.differences for s in checked if s.differences], files.names)
    leftovers, read = tuple(find_leftovers(index)), len({path.name for path in sources})
    return Verification(manifest.version, citations, passages, read, tuple(findings), leftovers)


def _manifest_finding(index: Location, error: IndexFormatError) -> Finding:
    fault, _, mend = str(error).removeprefix(f"{index}/").partition("; ")
    place, _, message = fault.partition(": ")
    return Finding("manifest", place, message, mend)


def _check_version_files(index: Location, manifest: Manifest, *, quick: bool) -> list[Finding]:
    """Check the files of a version that belong to no single segment."""
    findings = _check_vocabulary(index, manifest, quick=quick)
    findings += _check_shared(index, manifest, quick=quick)
    return findings + check_version_terms(index, manifest, quick=quick)


def _check_vocabulary(index: Location, manifest: Manifest, *, quick: bool) -> list[Finding]:
    file = vocabulary_file(manifest.version)
    notes = Notes(str(file), RESTORE)
    with fresh_copy(index / file.parent, {file.name}) as here:
        fault = artefact_fault(here / file.name, manifest.vocabulary, quick=quick)
        if fault:
            notes.note("artefact", fault)
            return notes.findings
        try:
            Vocabulary.open(here / file.name)
        except IndexFormatError as error:
            notes.note("unreadable", str(error).partition("; ")[0])
    return notes.findings


def _check_shared(index: Location, manifest: Manifest, *, quick: bool) -> list[Finding]:
    """Check the files that all segments share: the quantiser and the token codec."""
    shared = {quantiser_file(manifest.quantiser.sha256): manifest.quantiser}
    if manifest.tokens:
        shared[codec_file(manifest.tokens.codec.sha256)] = manifest.tokens.codec
    checked = (check_file(index, file, entry, quick=quick) for file, entry in shared.items())
    return [finding for found in checked for finding in found]


def _check_sources(manifest: Manifest) -> list[Finding]:
    """Check the sums in the manifest: of each source, and of all sources against live citations."""
    notes = Notes(str(manifest_file(manifest.version)), REBUILD)
    try:
        analyser_of(manifest)
    except IndexFormatError as error:
        notes.note("manifest", str(error).partition("; ")[0])
    for source in manifest.sources:
        parts = source.kept + source.deletions + sum(source.dropped.values())
        if source.read != parts:
            message = (
                f"{source.name}: {source.read:,} records read, but {parts:,} kept, deletions "
                "and dropped"
            )
            notes.note("count", message)
    kept = sum(source.kept for source in manifest.sources)
    counted = manifest.citations + manifest.superseded + manifest.deleted
    if manifest.sources and kept != counted:
        message = (
            f"{kept:,} citations kept from all sources, but {counted:,} live, superseded and "
            "deleted"
        )
        notes.note("count", message)
    return notes.findings


def _check_numbers(manifest: Manifest) -> list[Finding]:
    """Return findings for gaps in the numbers of the version's source files."""
    mend = "update the index with it, or accept the gap with --allow-gap"
    gaps = find_gaps(source.name for source in manifest.sources)
    return [Finding("gap", gap.first, str(gap), mend) for gap in gaps]


def _check_totals(manifest: Manifest, citations: int, passages: int) -> list[Finding]:
    notes = Notes(str(manifest_file(manifest.version)), REBUILD)
    found = {"citations": citations, "passages": passages}
    said = (manifest.citations, manifest.passages)
    for (what, number), expected in zip(found.items(), said, strict=True):
        if number != expected:
            message = f"{expected:,} {what} where the segments hold {number:,} live ones"
            notes.note("count", message)
    return notes.findings


def _check_source_list(sources: Sequence[File], manifest: Manifest) -> list[Finding]:
    """Return findings for given files not in the index, and indexed files not given."""
    findings = []
    indexed, given = {s.name for s in manifest.sources}, {path.name for path in sources}
    for name in sorted(indexed - given, key=natural_key):
        message = "in the index, but not among the files given, so it has no census"
        findings.append(Finding("source", name, message, "give its folder to --sources as well"))
    for name in sorted(given - indexed, key=natural_key):
        failed = " as it could not be read" if name in manifest.failed_sources else ""
        message = f"not in the index{failed}"
        findings.append(Finding("source", name, message, "update the index with it"))
    return findings


def _read_sources(
    sources: Sequence[File], manifest: Manifest, map_in_order: MapInOrder, report: Report
) -> tuple[CensusFiles, list[ShardRecords], list[Finding]]:
    """Return all files, the given files' records by shard, and what is wrong with these files."""
    entries = {source.name: source for source in manifest.sources}
    given = {path.name: path for path in sources}
    names = apply_order([*entries, *given])
    pairs = [(given[name], entries.get(name)) for name in names if name in given]
    read, shards = [], len(manifest.shards)
    for done, records in enumerate(map_in_order(partial(_read_source, shards), pairs), 1):
        read.append(records)
        report("sources", done, len(pairs))
    files = CensusFiles.of(names, read, manifest)
    findings = [finding for source in read for finding in source.findings]
    return files, split_by_shard(files, read, shards), findings


def _read_source(shards: int, pair: tuple[File, SourceEntry | None]) -> SourceRecords:
    return read_source_records(*pair, shards)


def in_processes(jobs: int) -> MapInOrder:
    """Return a function that is computed by `jobs` processes of this machine."""

    def map_in_order(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        if min(jobs, len(items)) < 2:
            yield from map(function, items)
            return
        # Spawned, because the threads of FAISS and tantivy would hang in a forked process.
        workers = ProcessPoolExecutor(min(jobs, len(items)), get_context("spawn"))
        with workers as pool:
            yield from pool.map(function, items)

    return map_in_order


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class CheckedShard:
    """Result of a check, with the numbers of live citations and passages.

    `differences` are those from the sources; None unless the shard was compared with them.
    """

    findings: list[Finding]
    citations: int
    passages: int
    differences: Differences | None


def check_shard(
    part: tuple[int, ShardRecords | None],
    index: Location,
    manifest: Manifest,
    *,
    quick: bool,
    sources: CensusFiles | None = None,
) -> CheckedShard:
    """Check every segment of a shard; an unreadable segment is noted and has no live citations.

    `part` is the number of the shard and, for a comparison with `sources`, their records. From an
    object store, one segment at a time is copied freshly, and its copy is then removed.
    """
    shard, expected = part
    files = {name: number for number, name in enumerate(sources.names)} if sources else None

    def check(entry: SegmentEntry) -> CheckedSegment:
        folder = index / segment_directory(shard, entry.id)
        with fresh_copy(folder, {*entry.artefacts, SEGMENT, SUPERSEDES}) as here:
            checker = SegmentChecker(here, manifest, shard, entry, quick=quick, files=files)
            return checker.check()

    findings: list[Finding] = []
    parts: list[Rows] = []
    newer = np.empty(0, np.int64)
    for entry in reversed(manifest.shards[shard].segments):
        checked = check(entry)
        findings = checked.findings + findings
        if checked.rows is not None:
            parts.append(checked.rows.take(np.flatnonzero(~np.isin(checked.rows.pmids, newer))))
        newer = np.union1d(newer, checked.supersedes)
    live = join_rows(parts)
    live = live.take(np.argsort(live.pmids, kind="stable"))
    notes = Notes(f"segments/{shard:04d}", REBUILD)
    twice = live.pmids[1:][np.diff(live.pmids) == 0]
    if len(twice):
        notes.note("twice", f"{len(np.unique(twice)):,} PMIDs are live more than once", twice)
    counts = (len(live.pmids), int(live.passages.sum()))
    differences = compare(expected, live, sources) if expected and sources else None
    return CheckedShard(findings + notes.findings, *counts, differences)
