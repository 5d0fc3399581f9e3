"""Count the terms of citations: headings, substances, keywords and defined abbreviations.

Counts of disjoint sets of citations add up, in any order and grouping, so that each shard counts
its own terms and publishing merges the files. Citations that an update replaces or removes have
negative counts, so that merging cancels their terms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster.arrow_records import map_table
from cluster.errors import IndexFormatError
from cluster.records import Citation
from cluster.text.mine_abbreviations import mine_abbreviations
from cluster.text.vocabulary import normalise
from pipelines.vocabulary.sorted_runs import run_starts

COUNTS_SCHEMA = pa.schema(
    [
        pa.field("kind", pa.large_string()),
        pa.field("key", pa.large_string()),
        pa.field("ui", pa.large_string()),
        pa.field("form", pa.large_string()),
        pa.field("short", pa.large_string()),
        pa.field("citations", pa.int64()),
    ],
    metadata={b"citeray.term-counts": b"1"},
)
TermKind = Literal["abbreviation", "chemical", "keyword", "mesh"]
_KINDS = sorted(get_args(TermKind))
_TERM = [name for name in COUNTS_SCHEMA.names if name != "citations"]

# Longer keywords are sentences or whole lists in one element.
MAX_KEYWORD_CHARS = 100
_CITATIONS_A_BATCH = 2_000
_FIRST_MERGE_ROWS = 500_000
_SHORT_PLURAL = re.compile(r"(?<=[A-Z])s$")


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Number of citations per term: a table of COUNTS_SCHEMA in one chunk, sorted by all columns.

    `kind` is a TermKind. `form` is the term as printed (an abbreviation's long form),
    `key` its normalised form, `ui` the id that NLM gives it or "", `short` an
    abbreviation's short form or "".
    """

    table: Any

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def of_kind(self, kind: TermKind) -> Any:
        """Return the rows of one kind, without copying them."""
        matches = pc.equal(self.table["kind"], kind)
        first = pc.index(matches, True).as_py()
        return self.table.slice(max(first, 0), pc.sum(matches).as_py() or 0)


def count_terms(citations: Iterable[Citation]) -> TermCounts:
    """Count the terms of `citations`, which must be distinct. Holds the distinct terms in memory.

    Batches are merged once they are larger than the merged counts, so that each row is merged a
    logarithmic number of times.
    """
    merged = TermCounts(COUNTS_SCHEMA.empty_table())
    waiting: list[TermCounts] = []
    for batch in _count_batches(iter(citations)):
        waiting.append(batch)
        if sum(map(len, waiting)) > max(len(merged), _FIRST_MERGE_ROWS):
            merged, waiting = merge_counts([merged, *waiting]), []
    return merge_counts([merged, *waiting])


def merge_counts(parts: Iterable[TermCounts]) -> TermCounts:
    """Return the sums of the counts of all parts, in any order.

    Memory: the rows of all parts, one kind at a time, and twice the result.
    """
    held = list(parts)
    merged = [sum_counts([part.of_kind(kind) for part in held]) for kind in _KINDS]
    return TermCounts(pa.concat_tables(merged).combine_chunks())


def sum_counts(tables: Sequence[Any]) -> Any:
    """Add up tables of COUNTS_SCHEMA: sorted by all columns, without terms whose sum is zero.

    Tables that are already sorted are only merged, which is faster than grouping by strings.
    """
    rows = pa.concat_tables(tables).combine_chunks()
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in _TERM])
    firsts = run_starts([rows[name].take(order) for name in _TERM])
    citations = np.add.reduceat(rows["citations"].to_numpy()[order.to_numpy()], firsts)
    kept = citations != 0
    terms = rows.select(_TERM).take(order.take(pa.array(firsts[kept])))
    return pa.table([*terms.columns, citations[kept]], schema=COUNTS_SCHEMA)


def negated(counts: TermCounts) -> TermCounts:
    """Return the negated counts, which subtract from others when merged with them."""
    column = counts.table.schema.get_field_index("citations")
    taken = pc.negate(counts.table["citations"])
    return TermCounts(counts.table.set_column(column, COUNTS_SCHEMA.field("citations"), taken))


def write_counts(counts: TermCounts, path: Path) -> None:
    """Write `counts` to an Arrow IPC file; equal counts give equal bytes."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, COUNTS_SCHEMA) as writer:
        writer.write_table(counts.table)


def read_counts(path: Path) -> TermCounts:
    """Memory-map a file of `write_counts`. Raises IndexFormatError if it is not one."""
    try:
        table = map_table(path)
    except (OSError, pa.ArrowException) as error:
        raise IndexFormatError(
            f"{path}: cannot be read as term counts ({error}); delete it and run "
            "`citeray index build` again"
        ) from error
    if not table.schema.equals(COUNTS_SCHEMA, check_metadata=True):
        raise IndexFormatError(
            f"{path}: not term counts of this version (columns {table.schema.names}); "
            "delete it and run `citeray index build` again"
        )
    return TermCounts(table)


def _count_batches(citations: Iterator[Citation]) -> Iterator[TermCounts]:
    while batch := list(islice(citations, _CITATIONS_A_BATCH)):
        counts = Counter(term for citation in batch for term in _terms(citation))
        columns = [[term[i] for term in counts] for i in range(len(_TERM))]
        table = pa.table([*columns, list(counts.values())], schema=COUNTS_SCHEMA)
        yield TermCounts(sum_counts([table]))


def _terms(citation: Citation) -> list[tuple[str, ...]]:
    """Return the distinct terms of a citation, with the fields of _TERM.

    Of several spellings of a term, the smallest is used, so that the order within the record does
    not matter.
    """
    terms: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(kind: str, form: str, ui: str = "", short: str = "") -> None:
        form = " ".join(form.split())
        key = normalise(form)
        if key:
            term = (kind, key, ui, form, short)
            identity = (kind, ui, "" if ui else key, short)
            terms[identity] = min(terms.get(identity, term), term)

    for heading in citation.mesh:
        add("mesh", heading.name, ui=heading.ui)
    for chemical in citation.chemicals:
        add("chemical", chemical.name, ui=chemical.ui)
    for keyword in citation.keywords:
        if len(keyword) <= MAX_KEYWORD_CHARS:
            add("keyword", keyword.strip(" .,;*"))
    for pair in mine_abbreviations(citation.search_text):
        add("abbreviation", pair.long, short=_SHORT_PLURAL.sub("", pair.short))
    return list(terms.values())
