"""Read the records of a source file, and check that it is the file that was indexed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from cluster.arrow_records import reference_sum
from cluster.errors import SourceError
from cluster.index.layout import shard_of
from cluster.index.manifest import SourceEntry
from cluster.pubmed.count_records import count_file
from cluster.pubmed.parse_articles import read_records
from cluster.pubmed.skipped_records import NO_RECORD
from cluster.records import Citation, Deletion
from cluster.storage.object_store import File, beside
from cluster.storage.whole_files import md5_of, sha256_of
from pipelines.verify.note_findings import Finding, Ints, Notes

_MD5_BYTES = 4096
# Reasons of `Rejected` items that are not records.
_NO_RECORDS = (NO_RECORD, "unknown-element")
_MD5 = re.compile(r"\b[0-9a-fA-F]{32}\b")


@dataclass(frozen=True, slots=True)
class Records:
    """Citations and deletions as parallel arrays, of the smallest types that hold their values.

    `kept` is false for a deletion; its version is the one deleted, or 0 for any. `references` are
    checksums of the references.
    """

    pmids: npt.NDArray[np.integer]
    versions: npt.NDArray[np.integer]
    positions: npt.NDArray[np.integer]
    references: npt.NDArray[np.integer]
    kept: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """The records of a file, by the shard of their PMID.

    `whole` is false if the file cannot be read to its end; there are then no records. The records
    of shard n are those from `bounds[n]` to `bounds[n + 1]`.
    """

    name: str
    findings: list[Finding]
    whole: bool
    records: Records
    bounds: Ints

    def of_shard(self, shard: int) -> Records:
        """Return the records whose PMIDs belong to `shard`."""
        chosen = slice(self.bounds[shard], self.bounds[shard + 1])
        return Records(*(getattr(self.records, field.name)[chosen] for field in fields(Records)))


def read_source_records(path: File, entry: SourceEntry | None, shards: int) -> SourceRecords:
    """Read `path` to its end, and compare it with its .md5 and with the manifest's `entry`.

    The records are also counted by their tags, to detect records that the parser skips. The result
    has 11 to 13 bytes for each record.
    """
    notes = Notes(path.name, "download it again, and build the index again if it has changed")
    rows: list[tuple[int, int, int, int, bool]] = []
    dropped: Counter[str] = Counter()
    whole, counted = True, 0
    try:
        _check_file(path, entry, notes)
        for record in read_records(path, strict=False):
            if isinstance(record, Citation):
                cited = reference_sum(record.references or ())
                rows.append((record.pmid, record.version, record.position, cited, True))
            elif isinstance(record, Deletion):
                rows.append((record.pmid, record.version, record.position, 0, False))
            else:
                dropped[record.reason] += 1
        counted = count_file(path)
    except (SourceError, OSError) as error:
        message, _, _ = str(error).removeprefix(f"{path.name}: ").rpartition("; ")
        notes.note("source", message or str(error))
        rows, whole = [], False
    *columns, flags = np.asarray(rows, np.int64).reshape(-1, 5).T.copy()
    kept = flags.astype(bool)
    read = len(rows) + sum(n for reason, n in dropped.items() if reason not in _NO_RECORDS)
    if whole and read != counted:
        notes.note("source", f"{counted:,} records counted by their tags, but {read:,} were read")
    if whole and entry is not None:
        _check_counts(entry, int(kept.sum()), int((~kept).sum()), dropped, notes)
    owners = np.asarray([shard_of(pmid, shards) for pmid in columns[0].tolist()], np.int64)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(shards + 1))
    pmids, versions, positions, references = (_compact(column[order]) for column in columns)
    records = Records(pmids, versions, positions, references, kept[order])
    return SourceRecords(path.name, notes.findings, whole, records, bounds)


def _compact(values: Ints) -> npt.NDArray[np.integer]:
    """Return non-negative `values` in the smallest signed type of 16 bits or more."""
    most = values.max(initial=0)
    kind = next(k for k in (np.int16, np.int32, np.int64) if most <= np.iinfo(k).max)
    return values.astype(kind)


def _check_file(path: File, entry: SourceEntry | None, notes: Notes) -> None:
    checksum = beside(path, ".md5")
    try:
        with checksum.open("rb") as stream:
            text = stream.read(_MD5_BYTES).decode(errors="replace")
    except FileNotFoundError:
        text = None
    if text is not None:
        # NCBI writes `MD5(NAME)= DIGEST`.
        stated = _MD5.search(text)
        found = md5_of(path)
        if stated is None:
            notes.note("source", f"no checksum in {checksum.name}")
        elif stated[0].lower() != found:
            notes.note("source", f"md5 {found} where {checksum.name} says {stated[0].lower()}")
    if entry is not None and (digest := sha256_of(path)) != entry.sha256:
        message = f"sha256 {digest[:12]}... instead of the manifest's {entry.sha256[:12]}..."
        notes.note("source", message)


def _check_counts(
    entry: SourceEntry, kept: int, deletions: int, dropped: Counter[str], notes: Notes
) -> None:
    found = {"citations": kept, "deletions": deletions, "dropped records": dropped.total()}
    said = (entry.kept, entry.deletions, sum(entry.dropped.values()))
    for (what, number), expected in zip(found.items(), said, strict=True):
        if number != expected:
            notes.note("source", f"{number:,} {what} instead of the manifest's {expected:,}")
