"""Writes one immutable segment from citations in PMID order, in bounded memory."""

from __future__ import annotations

import shutil
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from cluster.arrow_records import CITATION_SCHEMA, titles_and_abstracts
from cluster.errors import IndexFormatError
from cluster.index import cagra, vectors
from cluster.index.bm25 import Bm25Writer
from cluster.index.filters.write_filters import FilterWriter, Posted
from cluster.index.layout import (
    CITATIONS,
    PASSAGES,
    SEGMENT,
    TERMS,
    TOKENS,
    VECTORS,
    bm25_directory,
)
from cluster.index.manifest import Artefact, DeadEntry, SegmentEntry, artefact
from cluster.index.put_segment import find_segment, put_segment, temporary_segment
from cluster.index.terms.term_table import (
    NO_TERMS,
    TermCounter,
    merged_batches,
    negated,
    write_terms,
)
from cluster.records import search_text
from cluster.storage.locations import Location
from cluster.storage.whole_files import published_atomically
from cluster.text.analysis import ANALYSER, Analyser

SECTION_CODES = {"title": 0, "abstract": 1}

SPANS = pa.list_(pa.struct([("section", pa.uint8()), ("begin", pa.uint32()), ("end", pa.uint32())]))
# Input of `write_segment`: a citation and the spans of its passages, then, in the order of the
# spans, their vectors as 16-bit floats, their token counts, and the codes of all their tokens.
EMBEDDED_SCHEMA = pa.schema(
    [
        *CITATION_SCHEMA,
        ("spans", SPANS),
        ("vectors", pa.large_binary()),
        ("token_counts", pa.list_(pa.uint16())),
        ("codes", pa.large_binary()),
    ]
)

PASSAGE_SCHEMA = pa.schema(
    [
        ("citation_row", pa.uint32()),
        ("section", pa.uint8()),
        ("begin", pa.uint32()),
        ("end", pa.uint32()),
        # Cumulative number of tokens up to and including this passage.
        ("token_end", pa.uint64()),
    ]
)


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """Settings of a segment. `quantiser` is a trained, empty FAISS index.

    The graph is built on a GPU if `gpus` is above 0 and FAISS was built with CAGRA.
    """

    id: str
    quantiser: Location
    dimensions: int
    bm25_over: Sequence[str]
    vectors: str
    hnsw_m: int
    ef_construction: int
    threads: int
    gpus: float = 0
    analyser: Analyser = ANALYSER


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Citations in CITATION_SCHEMA with their SPANS, and the data of all spans together.

    These are the vectors (n, d), or none if the graph exists already, the token counts (n,), and
    the codes of all tokens.
    """

    citations: pa.RecordBatch
    spans: pa.ListArray
    vectors: vectors.Vectors
    token_counts: npt.NDArray[np.int64]
    codes: bytes


def staged_vectors(batch: pa.RecordBatch, dimensions: int) -> vectors.Vectors:
    """Return the vectors (n, d) of a batch in EMBEDDED_SCHEMA."""
    joined = b"".join(batch.column("vectors").to_pylist())
    return np.frombuffer(joined, np.float16).reshape(-1, dimensions).astype(np.float32)


def _staged(batch: pa.RecordBatch, dimensions: int) -> SegmentRows:
    has_vectors = "vectors" in batch.schema.names
    return SegmentRows(
        batch.select(CITATION_SCHEMA.names),
        batch.column("spans"),
        staged_vectors(batch, dimensions) if has_vectors else np.empty((0, dimensions), np.float32),
        batch.column("token_counts").flatten().to_numpy().astype(np.int64),
        b"".join(batch.column("codes").to_pylist()),
    )


def _passage_batch(rows: SegmentRows, first_row: int, first_token: int) -> pa.RecordBatch:
    citation_rows = pc.add(pc.list_parent_indices(rows.spans), first_row).cast(pa.uint32())
    ends = pa.array(first_token + np.cumsum(rows.token_counts, dtype=np.int64), pa.uint64())
    columns = [citation_rows, *rows.spans.flatten().flatten(), ends]
    return pa.RecordBatch.from_arrays(columns, schema=PASSAGE_SCHEMA)


class PostingsWriter:
    """Writes the BM25 indexes of a segment, over citations, passages or both.

    `counter` counts their terms. The indexes are complete when the `with` block ends without an
    error; after an error, no thread is still writing.
    """

    def __init__(self, directory: Path, over: Sequence[str], analyser: Analyser) -> None:
        self._writers = {
            name: Bm25Writer(directory / bm25_directory(name), analyser) for name in over
        }
        self.counter = TermCounter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        writers = self._writers.values()
        try:
            for writer in () if failed else writers:
                writer.close()
        finally:
            for writer in writers:
                writer.discard()

    def add(self, rows: SegmentRows, filters: Sequence[Posted]) -> None:
        """Index the citations and passages of `rows` after those added so far.

        `filters` has the filter values of each citation, which its passages share.
        """
        texts = titles_and_abstracts(rows.citations)
        if writer := self._writers.get("citations"):
            for (title, abstract), posted in zip(texts, filters, strict=True):
                terms = writer.add(search_text(title, abstract), posted)
                self.counter.add("citations", terms)
        if writer := self._writers.get("passages"):
            spans_of = rows.spans.to_pylist()
            for citation, posted, spans in zip(texts, filters, spans_of, strict=True):
                for span in spans:
                    text = citation[span["section"]][span["begin"] : span["end"]]
                    self.counter.add("passages", writer.add(text, posted))

    @property
    def terms(self) -> dict[str, int]:
        """The total number of terms in each index."""
        return {name: writer.terms for name, writer in self._writers.items()}


def artefacts_of(directory: Path) -> dict[str, Artefact]:
    """Describe every file below `directory` by relative path, except its entry and lock files."""
    files = sorted(p for p in directory.rglob("*") if p.is_file())
    return {
        str(p.relative_to(directory)): artefact(p)
        for p in files
        if p.name != SEGMENT and not p.name.endswith(".lock")
    }


def _check_order(citations: pa.RecordBatch, last: int) -> int:
    """Return the last PMID. Raises IndexFormatError unless the PMIDs ascend from above `last`."""
    pmids = np.append(last, citations.column("pmid").to_numpy())
    wrong = np.flatnonzero(np.diff(pmids) <= 0)
    if len(wrong):
        raise IndexFormatError(
            f"PMID {pmids[wrong[0] + 1]} after {pmids[wrong[0]]}: the citations of a segment must "
            "be unique and in ascending PMID order"
        )
    return int(pmids[-1])


def _write_parts(
    batches: Iterable[SegmentRows], directory: Path, plan: SegmentPlan, graph: Location | None
) -> tuple[int, int, PostingsWriter]:
    citations = passages = tokens = 0
    last_pmid = 0
    with (
        PostingsWriter(directory, plan.bm25_over, plan.analyser) as sides,
        ipc.new_file(directory / CITATIONS, CITATION_SCHEMA) as citation_file,
        ipc.new_file(directory / PASSAGES, PASSAGE_SCHEMA) as passage_file,
        (directory / TOKENS).open("wb") as token_file,
        FilterWriter(directory) as filter_file,
    ):

        def parts() -> Iterator[vectors.Vectors]:
            nonlocal citations, passages, tokens, last_pmid
            for batch in batches:
                last_pmid = _check_order(batch.citations, last_pmid)
                sides.add(batch, filter_file.add(batch.citations))
                citation_file.write_batch(batch.citations)
                passage_file.write_batch(_passage_batch(batch, citations, tokens))
                token_file.write(batch.codes)
                citations += batch.citations.num_rows
                passages += len(batch.token_counts)
                tokens += int(batch.token_counts.sum())
                yield batch.vectors

        if graph is None:
            raw = directory / ".vectors.f32"
            vectors.save(_build_vectors(parts(), plan, raw)[0], directory / VECTORS)
        else:
            deque(parts(), maxlen=0)
            _take_graph(graph, directory / VECTORS, passages)
    return citations, passages, sides


def _take_graph(graph: Location, path: Path, passages: int) -> None:
    """Copy a file of `write_graph`. Raises IndexFormatError if it has other rows."""
    if isinstance(graph, Path):
        shutil.copyfile(graph, path)
    else:
        with path.open("wb") as sink:
            sink.writelines(graph.blocks())
    found = vectors.load(path, mapped=True).ntotal
    if found != passages:
        raise IndexFormatError(
            f"{graph}: {found:,} vectors for {passages:,} passages; remove it and run the same "
            "command again"
        )


def write_graph(parts: Iterable[vectors.Vectors], graph: Location, plan: SegmentPlan) -> str:
    """Write the vectors of a segment, in the order of its passages, before the segment itself.

    `parts` are float32 arrays (n, d). `write_rows` takes ownership of the file. Return the reason
    why the CPU built the graph although `plan` requests a GPU, or "".
    """
    with published_atomically(graph, f"{uuid.uuid4().hex}.partial") as aside:
        raw = aside.with_name(f"{aside.name}.f32.partial")
        try:
            index, reason = _build_vectors(parts, plan, raw)
            vectors.save(index, aside)
        finally:
            raw.unlink(missing_ok=True)
    return reason


def _build_vectors(
    parts: Iterable[vectors.Vectors], plan: SegmentPlan, raw: Path
) -> tuple[Any, str]:
    """Return a filled index and a reason as `build_from_parts` does; `raw` is a scratch file."""
    empty = vectors.load_quantiser(plan.quantiser)
    if plan.gpus:
        return cagra.build_from_parts(empty, parts, plan.threads, raw)
    return vectors.build(empty, parts, plan.threads), ""


@dataclass(frozen=True, slots=True)
class Written:
    """Numbers of units that a segment holds and of their terms, and how many hold each term."""

    citations: int
    passages: int
    terms: dict[str, int]
    table: pa.Table


@dataclass(frozen=True, slots=True)
class Dead:
    """Counts of units that a segment replaces or removes in older ones, and of their terms."""

    entry: DeadEntry
    terms: pa.Table


NONE_DEAD = Dead(DeadEntry(), NO_TERMS)


Complete = Callable[[Path, Written], Dead]
"""Callback that adds files to a segment and returns what the segment replaces or removes."""


def _supersedes_nothing(directory: Path, written: Written) -> Dead:
    return NONE_DEAD


def write_segment(
    batches: Iterable[pa.RecordBatch],
    directory: Location,
    plan: SegmentPlan,
    complete: Complete = _supersedes_nothing,
    graph: Location | None = None,
) -> SegmentEntry:
    """Write a segment from staged batches in EMBEDDED_SCHEMA; see `write_rows`."""
    rows = (_staged(batch, plan.dimensions) for batch in batches)
    return write_rows(rows, directory, plan, complete, graph)


def write_rows(
    batches: Iterable[SegmentRows],
    directory: Location,
    plan: SegmentPlan,
    complete: Complete = _supersedes_nothing,
    graph: Location | None = None,
) -> SegmentEntry:
    """Write the segment `directory` from batches with unique, ascending PMIDs.

    The segment is written to a temporary folder and moved when it is complete. `complete` adds its
    own files to that folder and returns the counts of the citations that it replaces or removes. If
    a complete segment already exists, it is kept and only read. If `graph`, a file of
    `write_graph`, is given, the batches need no vectors.
    """
    if (entry := find_segment(directory)) is not None:
        return entry
    with temporary_segment(directory) as aside:
        citations, passages, sides = _write_parts(batches, aside, plan, graph)
        table = sides.counter.table()
        dead = complete(aside, Written(citations, passages, sides.terms, table))
        write_terms(merged_batches([table, negated(dead.terms)]), aside / TERMS)
        entry = SegmentEntry(
            id=plan.id,
            citations=citations,
            passages=passages,
            terms=sides.terms,
            artefacts=artefacts_of(aside),
            dead=dead.entry,
        )
        return put_segment(aside, directory, entry)
