"""Check one shard: its segments, and which of their citations are live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster.index.copies import fresh_copy
from cluster.index.layout import SEGMENT, SUPERSEDES, segment_directory
from cluster.index.manifest import Manifest, SegmentEntry
from cluster.storage.locations import Location
from pipelines.verify.check_segment import CheckedSegment, Rows, SegmentChecker, join_rows
from pipelines.verify.note_findings import REBUILD, Finding, Notes


@dataclass(frozen=True, slots=True)
class CheckedShard:
    """Result of a check, with the numbers of live citations and passages.

    `live` are the citations that are not superseded or deleted, by ascending PMID; None unless they
    are compared with sources, so that results do not grow with the index.
    """

    findings: list[Finding]
    citations: int
    passages: int
    live: Rows | None


def check_shard(
    shard: int,
    index: Location,
    manifest: Manifest,
    *,
    quick: bool,
    files: Mapping[str, int] | None = None,
) -> CheckedShard:
    """Check every segment of `shard`; an unreadable segment is noted and has no live citations.

    `files` maps source files to numbers, for a comparison with them. From an object store, one
    segment at a time is copied freshly, and its copy is then removed.
    """

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
    return CheckedShard(findings + notes.findings, *counts, live if files is not None else None)
