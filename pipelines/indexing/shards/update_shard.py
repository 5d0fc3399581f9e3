"""Update an index: write the records of new sources as one small segment per shard.

The cost depends on the new records and on the citations that they replace: of older segments, only
the PMIDs, the citations of all passages and the replaced rows are read; in an object store by byte
range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np

from cluster.arrow_records import RowTaker, citation_from_row
from cluster.errors import InputError
from cluster.index.copies import at_hand
from cluster.index.layout import (
    CITATIONS,
    PASSAGES,
    SUPERSEDES,
    TERM_COUNTS,
    segment_directory,
)
from cluster.index.manifest import DeadEntry, Manifest, SegmentEntry, ShardEntry, TokensEntry
from cluster.index.read_records import Rows, SegmentRecords
from cluster.index.supersedes import (
    Supersedes,
    deleted_pmids,
    read_supersedes,
    write_supersedes,
)
from cluster.index.terms.term_table import TermCounter
from cluster.index.versions import analyser_of
from cluster.index.write_segment import Dead, SegmentPlan, Written, write_segment
from cluster.models.adapters import full_name
from cluster.records import Citation
from cluster.settings.settings import Settings
from cluster.settings.stages.index import TokenVectorSettings
from cluster.storage.arrow_ranges import RangedArrowFile
from cluster.storage.locations import Location
from pipelines.indexing.shards.build_shard import BATCH_ROWS, StagedShard, read_staged
from pipelines.indexing.shards.order_records import NO_EVENTS, Events, LiveRows, join_events
from pipelines.indexing.sources.late_sources import SourceOrder
from pipelines.indexing.staging.stage_citations import ParsedSource
from pipelines.vocabulary.mine_vocabulary import count_terms, merge_counts, negated, write_counts

# The columns from which the terms of the vocabulary are counted.
COUNTED_COLUMNS = ("pmid", "title", "sections", "mesh", "chemicals", "keywords")


def _coded(tokens: TokensEntry | TokenVectorSettings | None) -> str:
    if tokens is None:
        return "none"
    return f"{tokens.components} components of {tokens.bits} bits, {tokens.pool} tokens as one"


def check_settings(manifest: Manifest, settings: Settings, model_sum: str) -> None:
    """Raise InputError if new segments would not be compatible with those of `manifest`.

    The error names every setting that differs. Raises IndexFormatError if the analyser of the
    BM25 terms is unknown.
    """
    analyser_of(manifest)
    split, encoder = manifest.split, manifest.encoder
    pairs = {
        "index.shards": (len(manifest.shards), settings.index.shards),
        "index.vectors": (manifest.vectors, settings.index.vectors),
        "index.bm25_over": (list(manifest.bm25_over), list(settings.index.bm25_over)),
        "index.token_vectors": (
            _coded(manifest.tokens),
            _coded(settings.index.token_codec),
        ),
        "split.method": (split.method, settings.split.method),
        "split.size": (split.size, settings.split.size),
        "split.overlap": (split.overlap, settings.split.overlap),
        "encoder.max_tokens": (encoder.max_tokens, settings.encoder.max_tokens),
        "encoder.model": (
            f"{full_name(encoder)} ({encoder.sha256[:12]})",
            f"{full_name(settings.encoder)} ({model_sum[:12]})",
        ),
    }
    if encoder.sha256 == model_sum:
        del pairs["encoder.model"]
    different = [f"{name} {was} (now {now})" for name, (was, now) in pairs.items() if was != now]
    if different:
        raise InputError(
            f"{manifest.version} was built with {', '.join(different)}; restore these settings, "
            "or build the index again"
        )


def applicable(accounts: Sequence[ParsedSource]) -> list[ParsedSource]:
    """Return the sources before the first that failed; those after it must wait for it."""
    return list(takewhile(lambda account: not account.error, accounts))


@dataclass(frozen=True, slots=True)
class ShardUpdate:
    """A shard's new segment, its number of records, and the increase in deleted PMIDs."""

    entry: SegmentEntry
    records: int
    deleted: int


@dataclass(frozen=True, slots=True)
class _Change:
    """The effect of new events on existing segments: `dead` are the replaced rows of each."""

    dead: list[Rows]
    supersedes: Supersedes
    deleted: int


def _records_of(location: Location, entry: SegmentEntry) -> SegmentRecords:
    """Open the records of a segment; those in an object store are read by byte range."""
    directory = at_hand(location, entry.artefacts, SUPERSEDES)
    if isinstance(location, Path):
        return SegmentRecords(directory)
    files = (RangedArrowFile(location / n, entry.artefacts[n].bytes) for n in (CITATIONS, PASSAGES))
    return SegmentRecords(directory, *(RowTaker(file.table, file.fetch) for file in files))


def _live_among(segments: Sequence[SegmentRecords], pmids: Rows) -> list[Rows]:
    """Return for each segment, oldest first, the rows that are the live records of `pmids`."""
    found: list[Rows] = []
    for segment in reversed(segments):
        rows = segment.rows_of(pmids)
        found.append(rows)
        pmids = np.setdiff1d(pmids, np.union1d(segment.pmids[rows], segment.supersedes()))
    return found[::-1]


def _held(segments: Sequence[SegmentRecords], pmids: Rows, order: SourceOrder | None) -> Events:
    """Return the live records of `pmids` with their position in the order of events."""
    parts = [NO_EVENTS]
    for segment, rows in zip(segments, _live_among(segments, pmids), strict=True):
        held = segment.table(rows, ("version", "position", "source"))
        versions, positions = (
            np.asarray(held.column(name).to_numpy(), np.int64) for name in ("version", "position")
        )
        # Without a late source, all records of the index come before the new ones.
        names = held.column("source").to_pylist() if order else []
        ranks = [order.ranks[name] for name in names] if order else [-1] * len(rows)
        files = np.asarray(ranks, np.int64)
        parts.append(Events(segment.pmids[rows], files, positions, versions))
    return join_events(parts)


def _change(segments: Sequence[SegmentRecords], live: LiveRows) -> _Change:
    dead = _live_among(segments, live.touched)
    parts = [segment.pmids[rows] for segment, rows in zip(segments, dead, strict=True)]
    before = deleted_pmids(read_supersedes(segment.directory) for segment in segments)
    before = np.intersect1d(before, live.touched)
    known = np.union1d(np.concatenate([np.empty(0, np.int64), *parts]), before)
    # A deletion is stored if there was a record, in older segments or in the new sources.
    after = np.intersect1d(live.removed, np.union1d(known, live.deleted_pmids))
    pmids = np.union1d(known, after)
    supersedes = Supersedes(pmids, np.isin(pmids, after))
    return _Change(dead, supersedes, len(after) - len(before))


def _chunks(rows: Rows) -> Iterator[Rows]:
    for begin in range(0, len(rows), BATCH_ROWS):
        yield rows[begin : begin + BATCH_ROWS]


def _dead_citations(segments: Sequence[SegmentRecords], dead: Sequence[Rows]) -> Iterator[Citation]:
    for segment, rows in zip(segments, dead, strict=True):
        for chunk in _chunks(rows):
            yield from map(citation_from_row, segment.table(chunk, COUNTED_COLUMNS).to_pylist())


def _count_dead(
    segments: Sequence[SegmentRecords], dead: Sequence[Rows], plan: SegmentPlan
) -> Dead:
    over = plan.bm25_over
    counter, totals, passages = TermCounter(), dict.fromkeys(over, 0), 0
    for segment, rows in zip(segments, dead, strict=True):
        for chunk in _chunks(rows):
            of_chunk = segment.passages_of(chunk)
            passages += len(of_chunk)
            texts = {"citations": (segment.citation_texts, chunk)}
            texts["passages"] = (segment.passage_texts, of_chunk)
            for name in over:
                read, units = texts[name]
                for terms in map(plan.analyser.terms, read(units)):
                    counter.add(name, terms)
                    totals[name] += len(terms)
    entry = DeadEntry(citations=sum(map(len, dead)), passages=passages, terms=totals)
    return Dead(entry, counter.table())


def update_shard(
    index: Location,
    shard: int,
    before: ShardEntry,
    directories: Sequence[Location],
    plan: SegmentPlan,
    order: SourceOrder | None = None,
) -> ShardUpdate | None:
    """Write the segment that the staged sources add to `shard`; a rerun reuses a complete segment.

    Return None if no staged record or deletion changes the shard. `before` are the shard's
    published segments. `order` is given if some of the sources are late.
    """
    staged = read_staged(directories, shard, order=order)
    segments = [_records_of(index / segment_directory(shard, s.id), s) for s in before.segments]
    staged = staged.beside(_held(segments, staged.live.touched, order))
    change = _change(segments, staged.live)
    if not staged.live.records and not len(change.supersedes.pmids):
        return None

    def complete(directory: Path, _: Written) -> Dead:
        write_supersedes(change.supersedes, directory)
        _write_counts(staged, _dead_citations(segments, change.dead), directory)
        return _count_dead(segments, change.dead, plan)

    directory = index / segment_directory(shard, plan.id)
    entry = write_segment(staged.batches(), directory, plan, complete)
    return ShardUpdate(entry, staged.live.records, change.deleted)


def _write_counts(staged: StagedShard, dead: Iterator[Citation], directory: Path) -> None:
    added, taken = count_terms(staged.citations()), negated(count_terms(dead))
    write_counts(merge_counts([added, taken]), directory / TERM_COUNTS)
