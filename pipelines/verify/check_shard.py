"""Check one shard: its segments, and which of their citations are live."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster.index.copies import fresh_copy
from cluster.index.layout import SEGMENT, SUPERSEDES, segment_directory
from cluster.index.manifest import Manifest, SegmentEntry
from cluster.storage.locations import Location
from pipelines.verify.check_segment import CheckedSegment, Rows, SegmentChecker, join_rows
from pipelines.verify.note_findings import REBUILD, Finding, Notes
from pipelines.verify.take_census import CensusFiles, Differences, ShardRecords, compare


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
