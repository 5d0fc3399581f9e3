"""The census: compare the source files with the index, PMID by PMID."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cluster.index.manifest import Manifest
from pipelines.indexing.shards.order_records import ANY_VERSION, Events, deciding_events
from pipelines.verify.check_segment import Rows
from pipelines.verify.note_findings import Finding, Ints, first_pmids
from pipelines.verify.read_source_records import SourceRecords

# Maximum number of source files that a finding names; the rest are only counted.
NAMED_FILES = 3


class Census:
    """Expected live records: for each PMID, the deciding record (order_records.py).

    `names` are all source files in the order in which they apply. `read` are the records of those
    files that were read, in the same order. Needs about 50 bytes per record.
    """

    def __init__(
        self, names: Sequence[str], read: Sequence[SourceRecords], manifest: Manifest
    ) -> None:
        self._names = names
        numbers = {name: number for number, name in enumerate(names)}
        # The last item is for records whose file has no number, which are in no source.
        self._was_read = np.ones(len(names) + 1, bool)
        self._was_read[:-1] = np.isin(names, [r.name for r in read])
        files = _joined([np.full(len(r.pmids), numbers[r.name]) for r in read])
        events = Events(
            _joined([r.pmids for r in read]),
            files,
            _joined([r.positions for r in read]),
            _joined([r.versions for r in read]),
        )
        kept = _joined([r.kept for r in read]).astype(bool)
        newest = deciding_events(events, ~kept)
        self._pmids, self._files = events.pmids[newest], files[newest]
        self._positions, self._versions = events.positions[newest], events.versions[newest]
        self._kept = kept[newest]
        self._seen = np.zeros(len(newest), bool)
        # A PMID that an unread file may have deleted cannot be reported as missing.
        names_read = {r.name for r in read}
        deleting = [s.name for s in manifest.sources if s.deletions and s.name not in names_read]
        self._certain_after = max((numbers[name] for name in deleting), default=-1)
        self._extra: list[tuple[Ints, Ints]] = []
        self._stale: list[tuple[Ints, Ints]] = []

    def compare(self, live: Rows) -> None:
        """Compare the live citations of one shard."""
        places = np.searchsorted(self._pmids, live.pmids)
        known = np.append(self._pmids, -1)[places] == live.pmids
        self._seen[places[known]] = True

        def newest(values: npt.NDArray) -> npt.NDArray:
            """Return the value of each live PMID's newest record, or -1 or False if it has none."""
            absent = np.zeros(1, bool) if values.dtype == bool else np.full(1, -1, values.dtype)
            chosen: npt.NDArray = np.append(values, absent)[np.where(known, places, len(values))]
            return chosen

        files, kept = newest(self._files), newest(self._kept)
        same = (
            (files == live.files)
            & (newest(self._positions) == live.positions)
            & (newest(self._versions) == live.versions)
        )
        # A record from an unread file is accepted unless a later file has its PMID with the same or
        # a higher version, or deletes it.
        versions = newest(self._versions)
        spoken = np.where(
            kept,
            versions >= live.versions,
            np.isin(versions, ANY_VERSION) | (versions == live.versions),
        )
        judged = self._was_read[live.files] | ((files > live.files) & spoken)
        extra, stale = judged & ~kept, judged & kept & ~same
        self._extra.append((live.pmids[extra], live.files[extra]))
        self._stale.append((live.pmids[stale], files[stale]))

    def findings(self) -> list[Finding]:
        """Return the missing, extra and stale PMIDs, after every shard was compared."""
        missing = self._kept & ~self._seen & (self._files > self._certain_after)
        kinds = (
            ("missing", self._pmids[missing], self._files[missing], "are not in the index"),
            ("extra", *_both(self._extra), "are in the index, but deleted, or in no source"),
            ("stale", *_both(self._stale), "are in the index with a record that is not the newest"),
        )
        return [
            Finding(
                kind,
                f"census, {self._origins(files)}",
                f"{len(pmids):,} PMIDs {what}",
                "build the index again from these sources, or update it",
                first_pmids(pmids),
            )
            for kind, pmids, files, what in kinds
            if len(pmids)
        ]

    def _origins(self, files: Ints) -> str:
        """Describe the files that most of the records come from, with their numbers of records."""
        numbers, counts = np.unique(files, return_counts=True)
        most = np.argsort(-counts, kind="stable")
        named = [
            f"{self._names[numbers[i]] if numbers[i] >= 0 else 'an unknown source'} ({counts[i]:,})"
            for i in most[:NAMED_FILES]
        ]
        others = len(most) - len(named)
        return ", ".join(named) + (f" and {others} more files" if others > 0 else "")


def _joined(parts: Sequence[npt.NDArray]) -> Ints:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _both(parts: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    return _joined([p for p, _ in parts]), _joined([f for _, f in parts])
