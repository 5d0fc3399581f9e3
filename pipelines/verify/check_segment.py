"""Check one segment against its entry in the manifest, and that the rows of its files agree.

Row r of citations.arrow is document r of the BM25 over citations; row p of passages.arrow is
document p of the BM25 over passages and vector p of the HNSW (cluster/index/layout.py). A citation
can be found in all of them if each holds all its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import faiss
import numpy as np
import pyarrow as pa

from cluster.arrow_records import reference_sum
from cluster.errors import IndexFormatError
from cluster.index import vectors
from cluster.index.layout import (
    CITATIONS,
    FILTERS,
    PASSAGES,
    SEGMENT,
    SUPERSEDES,
    TERMS,
    TOKENS,
    VECTORS,
    bm25_directory,
    segment_directory,
    shard_of,
)
from cluster.index.manifest import Manifest, SegmentEntry
from cluster.index.put_segment import entry_text
from cluster.index.terms.bags import BAGS, Bags
from pipelines.verify.check_files import artefact_fault
from pipelines.verify.check_filters import absent_rows, check_filters, count_documents
from pipelines.verify.check_texts import check_texts, check_tokens
from pipelines.verify.note_findings import RESTORE, Finding, Ints, Notes
from pipelines.verify.read_columns import (
    UNREADABLE,
    integers,
    known_columns,
    read_batches,
    read_integers,
)

REQUIRED = (CITATIONS, PASSAGES, VECTORS, TOKENS, TERMS, FILTERS)
ORIGIN = ("version", "source", "position")


@dataclass(frozen=True, slots=True)
class Rows:
    """Parallel arrays with one item per citation: its PMID, number of passages and record.

    `files` are the numbers of the source files, or -1 for a file without a number. `references` are
    checksums of the references, or -1 where these are unknown.
    """

    pmids: Ints
    passages: Ints
    versions: Ints
    files: Ints
    positions: Ints
    references: Ints

    def take(self, chosen: Ints) -> Rows:
        """Return the rows at the indices `chosen`, which may be a mask."""
        return Rows(*(getattr(self, f.name)[chosen] for f in fields(self)))


def join_rows(parts: list[Rows]) -> Rows:
    """Return the items of all parts, in order."""
    nothing = Rows(*[np.empty(0, np.int64)] * len(fields(Rows)))
    columns = [[getattr(part, f.name) for part in (nothing, *parts)] for f in fields(Rows)]
    return Rows(*map(np.concatenate, columns))


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    """Result of a check; `rows` is None if the citations cannot be read, `supersedes` are PMIDs."""

    findings: list[Finding]
    rows: Rows | None
    supersedes: Ints


class SegmentChecker:
    """Checks one segment of `shard`, which is in `directory`.

    With `quick`, artefacts are not read to their end. `files` maps source files to numbers; if it
    is given, the rows of the result identify their records.
    """

    def __init__(
        self,
        directory: Path,
        manifest: Manifest,
        shard: int,
        entry: SegmentEntry,
        *,
        quick: bool,
        files: Mapping[str, int] | None,
    ) -> None:
        path = segment_directory(shard, entry.id)
        self._notes = Notes(str(path), RESTORE)
        self._directory = directory
        self._manifest, self._shard, self._entry = manifest, shard, entry
        self._quick, self._files = quick, files
        self._unsound: set[str] = set()

    def check(self) -> CheckedSegment:
        """Check the segment; each problem becomes a finding."""
        nothing = np.empty(0, np.int64)
        notes, entry = self._notes, self._entry
        if not self._directory.is_dir():
            notes.note("missing-segment", f"missing, with its {entry.citations:,} citations")
            return CheckedSegment(notes.findings, None, nothing)
        self._check_artefacts()
        self._check_entry()
        supersedes = self._read_supersedes()
        rows = self._read_citations()
        if rows is not None:
            self._check_pmids(rows.pmids)
            counts = self._count_passages(len(rows.pmids))
            if counts is not None:
                rows = replace(rows, passages=counts)
                self._check_searches(rows)
        return CheckedSegment(notes.findings, rows, supersedes)

    def _check_artefacts(self) -> None:
        named = self._entry.artefacts
        for name, expected in named.items():
            fault = artefact_fault(self._directory / name, expected, quick=self._quick)
            if fault:
                self._unsound.add(name)
                self._notes.note("artefact", fault, file=name)
        for name in (n for n in REQUIRED if n not in named):
            self._unsound.add(name)
            self._notes.note("artefact", "the manifest does not name it", file=name)
        # Readers use this file even if the manifest does not name it.
        if SUPERSEDES not in named and (self._directory / SUPERSEDES).exists():
            self._notes.note("artefact", "the manifest does not name it", file=SUPERSEDES)

    def _check_entry(self) -> None:
        """Check that segment.json is identical to the segment's entry in the manifest."""
        try:
            found = (self._directory / SEGMENT).read_bytes()
        except FileNotFoundError:
            self._notes.note("artefact", "missing", file=SEGMENT)
            return
        except OSError as error:
            self._notes.note("artefact", f"cannot be read: {error}", file=SEGMENT)
            return
        if found != entry_text(self._entry):
            self._notes.note("artefact", "not what the manifest says", file=SEGMENT)

    def _read_supersedes(self) -> Ints:
        if SUPERSEDES not in self._entry.artefacts or SUPERSEDES in self._unsound:
            return np.empty(0, np.int64)
        try:
            pmids = read_integers(self._directory / SUPERSEDES, "pmid")
        except UNREADABLE as error:
            self._unreadable(SUPERSEDES, error)
            return np.empty(0, np.int64)
        self._check_shard(pmids, SUPERSEDES)
        return pmids

    def _unreadable(self, file: str, error: Exception) -> None:
        self._unsound.add(file)
        self._notes.note("unreadable", f"cannot be read: {' '.join(str(error).split())}", file=file)

    def _read_citations(self) -> Rows | None:
        """Return the rows, with passages not counted yet."""
        if CITATIONS in self._unsound:
            return None
        path = self._directory / CITATIONS
        try:
            origin = () if self._files is None else (*ORIGIN, "references")
            batches = read_batches(path, ("pmid", *known_columns(path, origin)))
            return join_rows([self._rows_of(batch) for batch in batches])
        except UNREADABLE as error:
            self._unreadable(CITATIONS, error)
            return None

    def _rows_of(self, batch: pa.RecordBatch) -> Rows:
        pmids = integers(batch, "pmid")
        none = np.zeros(len(pmids), np.int64)
        if self._files is None:
            return Rows(pmids, none, none, none, none, none)
        names = batch.column("source").to_pylist()
        numbers = np.asarray([self._files.get(n, -1) for n in names], np.int64)
        lists = [None] * len(names)
        if "references" in batch.schema.names:
            lists = batch.column("references").to_pylist()
        sums = [-1 if cited is None else reference_sum(cited) for cited in lists]
        places = integers(batch, "version"), numbers, integers(batch, "position")
        return Rows(pmids, none, *places, np.asarray(sums, np.int64))

    def _check_pmids(self, pmids: Ints) -> None:
        self._check_count("citations", len(pmids), self._entry.citations, CITATIONS)
        falls = np.flatnonzero(np.diff(pmids) <= 0) + 1
        if len(falls):
            message = f"{len(falls):,} PMIDs are not greater than the one before"
            self._notes.note("order", message, pmids[falls], file=CITATIONS)
        self._check_shard(pmids, CITATIONS)

    def _check_shard(self, pmids: Ints, file: str) -> None:
        shards = len(self._manifest.shards)
        stray = [p for p in pmids.tolist() if p < 1 or shard_of(p, shards) != self._shard]
        if stray:
            message = f"{len(stray):,} PMIDs belong to other shards than {self._shard}"
            self._notes.note("wrong-shard", message, stray, file=file)

    def _check_count(self, what: str, found: int, expected: int, file: str) -> None:
        if found != expected:
            message = f"{found:,} {what} instead of the manifest's {expected:,}"
            self._notes.note("count", message, file=file)

    def _count_passages(self, citations: int) -> Ints | None:
        """Return the number of passages of each citation row, or None if the rows are invalid."""
        if PASSAGES in self._unsound:
            return None
        counts = np.zeros(citations, np.int64)
        last, total, usable = 0, 0, True
        try:
            for batch in read_batches(self._directory / PASSAGES, ("citation_row",)):
                rows = integers(batch, "citation_row")
                usable &= not bool((np.diff(rows, prepend=last) < 0).any())
                usable &= not bool((rows >= citations).any())
                owners, held = np.unique(rows[rows < citations], return_counts=True)
                counts[owners] += held
                total += len(rows)
                last = int(rows[-1]) if len(rows) else last
        except UNREADABLE as error:
            self._unreadable(PASSAGES, error)
            return None
        self._check_count("passages", total, self._entry.passages, PASSAGES)
        if not usable:
            message = f"citation_row decreases, or is beyond the last of {citations:,} citations"
            self._notes.note("order", message, file=PASSAGES)
            return None
        return counts

    def _check_searches(self, rows: Rows) -> None:
        """Check that postings and vectors hold each row, and that term counts match the texts."""
        over = self._manifest.bm25_over
        if set(over) != set(self._entry.terms):
            sides = ", ".join(self._entry.terms) or "nothing"
            named = ", ".join(over)
            self._notes.note("bm25", f"BM25 over {sides} instead of the manifest's {named}")
        self._check_vectors(rows)
        self._check_tokens(rows)
        sound = [side for side in over if self._check_postings(side, rows)]
        if not self._quick and not {CITATIONS, PASSAGES, TERMS} & self._unsound:
            noted = (rows.passages, self._notes)
            readable = check_texts(self._directory, self._manifest, self._entry, *noted)
            if readable and FILTERS not in self._unsound:
                check_filters(self._directory, sound, *noted)

    def _check_vectors(self, rows: Rows) -> None:
        if VECTORS in self._unsound:
            return
        try:
            graph = vectors.load(self._directory / VECTORS, mapped=True)
        except IndexFormatError as error:
            self._unreadable(VECTORS, error)
            return
        held = min(graph.ntotal, faiss.downcast_index(graph.storage).ntotal)
        passages = int(rows.passages.sum())
        if held != passages:
            message = f"{held:,} vectors for {passages:,} passages"
            ends = np.cumsum(rows.passages)
            self._notes.note("vectors", message, rows.pmids[ends > held], file=VECTORS)
        if graph.d != self._manifest.encoder.dimensions:
            expected = self._manifest.encoder.dimensions
            message = f"vectors of {graph.d} dimensions instead of the manifest's {expected}"
            self._notes.note("vectors", message, file=VECTORS)

    def _check_tokens(self, rows: Rows) -> None:
        if {PASSAGES, TOKENS} & self._unsound:
            return
        noted = (self._manifest.tokens, rows.pmids, rows.passages, self._notes)
        try:
            check_tokens(self._directory, *noted)
        except UNREADABLE as error:
            self._unreadable(PASSAGES, error)

    def _check_postings(self, side: str, rows: Rows) -> bool:
        """Return True if one BM25 index has exactly one document for each row."""
        name = bm25_directory(side)
        if any(unsound.startswith(f"{name}/") for unsound in self._unsound):
            return False
        units = len(rows.pmids) if side == "citations" else int(rows.passages.sum())
        try:
            documents = count_documents(self._directory / name)
            absent = [] if self._quick else absent_rows(self._directory / name, units)
        except UNREADABLE as error:
            self._unreadable(name, error)
            return False
        if documents != units or absent:
            ends = np.arange(1, units + 1) if side == "citations" else np.cumsum(rows.passages)
            owners = np.searchsorted(ends, np.asarray(absent, np.int64), side="right")
            message = f"{documents:,} documents for {units:,} {side}"
            self._notes.note("bm25", message, rows.pmids[owners], file=name)
            return False
        return self._check_bags(name, side, units)

    def _check_bags(self, name: str, side: str, units: int) -> bool:
        try:
            found = Bags(self._directory / name).units
        except IndexFormatError as error:
            self._unreadable(f"{name}/{BAGS}", error)
            return False
        if found != units:
            message = f"{found:,} bags of terms for {units:,} {side}"
            self._notes.note("bm25", message, file=f"{name}/{BAGS}")
        return bool(found == units)
