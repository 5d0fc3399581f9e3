"""One shard: its segments, and which of their citations are live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cluster.index.manifest import Manifest
from pipelines.verify.check_segment import Rows, SegmentChecker, join_rows
from pipelines.verify.note_findings import Finding, Notes


@dataclass(frozen=True, slots=True)
class CheckedShard:
    """`live` are the citations that no newer segment replaces or removes, by ascending PMID."""

    findings: list[Finding]
    live: Rows


def check_shard(
    shard: int,
    index: Path,
    manifest: Manifest,
    *,
    quick: bool,
    files: Mapping[str, int] | None = None,
) -> CheckedShard:
    """Check every segment of `shard`; what cannot be read is noted and holds nothing live."""
    findings: list[Finding] = []
    parts: list[Rows] = []
    newer = np.empty(0, np.int64)
    for entry in reversed(manifest.shards[shard].segments):
        checker = SegmentChecker(index, manifest, shard, entry, quick=quick, files=files)
        checked = checker.check()
        findings = checked.findings + findings
        if checked.rows is not None:
            parts.append(checked.rows.take(np.flatnonzero(~np.isin(checked.rows.pmids, newer))))
        newer = np.union1d(newer, checked.supersedes)
    live = join_rows(parts)
    live = live.take(np.argsort(live.pmids, kind="stable"))
    notes = Notes(f"segments/{shard:04d}", "build the index again")
    twice = live.pmids[1:][np.diff(live.pmids) == 0]
    if len(twice):
        notes.note("twice", f"{len(np.unique(twice)):,} PMIDs are live more than once", twice)
    return CheckedShard(findings + notes.findings, live)
