"""The census: compare the source files with the index, PMID by PMID.

Each shard is compared by the task that checks it, with the records of its PMIDs in all sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from cluster.index.manifest import Manifest
from pipelines.indexing.shards.order_records import ANY_VERSION, Events, deciding_events
from pipelines.verify.check_segment import Rows
from pipelines.verify.note_findings import Finding, Ints, first_pmids
from pipelines.verify.read_source_records import Records, SourceRecords

# Maximum number of source files that a finding names; the rest are only counted.
NAMED_FILES = 3
_KINDS = (
    ("missing", "are not in the index"),
    ("extra", "are in the index, but deleted, or in no source"),
    ("stale", "are in the index with a record that is not the newest"),
    ("references", "are in the index with other references than in their source"),
)


@dataclass(frozen=True, slots=True)
class CensusFiles:
    """Names of all source files, in the order in which they apply, and which of them were read.

    A PMID that an unread file may have deleted cannot be reported as missing: only the records of
    files with a number above `certain_after` can.
    """

    names: Sequence[str]
    was_read: npt.NDArray[np.bool_]
    certain_after: int

    @classmethod
    def of(
        cls, names: Sequence[str], read: Sequence[SourceRecords], manifest: Manifest
    ) -> CensusFiles:
        """Return the files `names`, of which `read` were read."""
        names_read = {source.name for source in read if source.whole}
        # The last item is for records whose file has no number, which are in no source.
        was_read = np.array([*(name in names_read for name in names), True])
        deleting = [s.name for s in manifest.sources if s.deletions and s.name not in names_read]
        certain_after = max((names.index(name) for name in deleting), default=-1)
        return cls(names, was_read, certain_after)


@dataclass(frozen=True, slots=True)
class ShardRecords:
    """The records in all sources whose PMIDs belong to one shard, with their files' numbers."""

    records: Records
    files: npt.NDArray[np.integer]


@dataclass(frozen=True, slots=True)
class Differences:
    """PMIDs of a shard that differ from the sources, each with the number of a file, or -1.

    Each attribute is a pair of parallel arrays. The file is the source of the newest record; for an
    extra PMID, of the record in the index.
    """

    missing: tuple[Ints, Ints]
    extra: tuple[Ints, Ints]
    stale: tuple[Ints, Ints]
    references: tuple[Ints, Ints]


def split_by_shard(
    files: CensusFiles, read: Sequence[SourceRecords], shards: int
) -> list[ShardRecords]:
    """Return the records of each shard; needs as much memory as `read` once more."""
    numbers = {name: number for number, name in enumerate(files.names)}
    found = []
    for shard in range(shards):
        parts = [source.of_shard(shard) for source in read]
        owners = np.array([numbers[source.name] for source in read], np.int32)
        counts = [len(part.pmids) for part in parts]
        columns = ([getattr(part, f.name) for part in parts] for f in fields(Records))
        joined = Records(*map(np.concatenate, columns))
        found.append(ShardRecords(joined, np.repeat(owners, counts)))
    return found


def compare(expected: ShardRecords, live: Rows, sources: CensusFiles) -> Differences:
    """Compare the live citations of a shard with the deciding record of each of its PMIDs."""
    records = expected.records
    wide = (records.pmids, expected.files, records.positions, records.versions)
    events = Events(*(values.astype(np.int64) for values in wide))
    decided = deciding_events(events, ~records.kept)
    own = Events(*(getattr(events, f.name)[decided] for f in fields(Events)))
    newest_kept = records.kept[decided]
    places = np.searchsorted(own.pmids, live.pmids)
    known = np.append(own.pmids, -1)[places] == live.pmids
    seen = np.zeros(len(decided), bool)
    seen[places[known]] = True

    def newest(values: npt.NDArray) -> npt.NDArray:
        """Return the value of each live PMID's newest record, or -1 or False if it has none."""
        absent = np.zeros(1, bool) if values.dtype == bool else np.full(1, -1, values.dtype)
        chosen: npt.NDArray = np.append(values, absent)[np.where(known, places, len(values))]
        return chosen

    files, kept, versions = newest(own.files), newest(newest_kept), newest(own.versions)
    same = (
        (files == live.files)
        & (newest(own.positions) == live.positions)
        & (versions == live.versions)
    )
    # A record from an unread file is accepted unless a later file has its PMID with the same or
    # a higher version, or deletes it.
    spoken = np.where(
        kept,
        versions >= live.versions,
        np.isin(versions, ANY_VERSION) | (versions == live.versions),
    )
    judged = sources.was_read[live.files] | ((files > live.files) & spoken)
    extra, stale = judged & ~kept, judged & kept & ~same
    # Segments of older versions of CiteRay have no references.
    cited = newest(records.references[decided])
    other = judged & kept & same & (live.references >= 0) & (cited != live.references)
    missing = newest_kept & ~seen & (own.files > sources.certain_after)
    return Differences(
        (own.pmids[missing], own.files[missing]),
        (live.pmids[extra], live.files[extra]),
        (live.pmids[stale], files[stale]),
        (live.pmids[other], files[other]),
    )


def census_findings(found: Sequence[Differences], names: Sequence[str]) -> list[Finding]:
    """Return the missing, extra and stale PMIDs of all shards."""
    findings = []
    for kind, what in _KINDS:
        pairs = [getattr(differences, kind) for differences in found]
        pmids, files = (np.concatenate(column) for column in zip(*pairs, strict=True))
        if len(pmids):
            finding = Finding(
                kind,
                f"census, {_origins(files, names)}",
                f"{len(pmids):,} PMIDs {what}",
                "build the index again from these sources, or update it",
                first_pmids(pmids),
            )
            findings.append(finding)
    return findings


def _origins(files: Ints, names: Sequence[str]) -> str:
    """Describe the files that most of the records come from, with their numbers of records."""
    numbers, counts = np.unique(files, return_counts=True)
    most = np.argsort(-counts, kind="stable")
    named = [
        f"{names[numbers[i]] if numbers[i] >= 0 else 'an unknown source'} ({counts[i]:,})"
        for i in most[:NAMED_FILES]
    ]
    others = len(most) - len(named)
    return ", ".join(named) + (f" and {others} more files" if others > 0 else "")
