"""Random histories of updates, compactions and crashes give the result of a fresh build."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import read_manifest
from cluster.records import Citation
from tests.cluster import test_index
from tests.pipelines.histories import SmallIndex, lengths, live

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

PMIDS = range(1, 8)
TEXTS = [
    "aspirin fever",
    "warfarin bleeding bleeding",
    "heparin",
    "statins and aspirin",
    "",
    "v2 aspirin",
    "-v1",
    "-v2",
]
QUESTIONS = ["aspirin bleeding", "heparin statins trial"]

events = st.tuples(st.sampled_from(PMIDS), st.sampled_from([*TEXTS, None]))
files = st.lists(events, max_size=6)
steps = st.lists(
    st.tuples(
        st.lists(files, min_size=1, max_size=2),
        st.sampled_from(["update", "update", "compact", "crash", "half", "unstage", "fold half"]),
    ),
    max_size=3,
)


def apply(index: SmallIndex, step: list, how: str) -> None:
    """Run an update, after an interruption of the kind `how`."""
    if how in ("crash", "half"):
        index.update(step, crash_after=index.shards if how == "crash" else 1)
    if how == "unstage":
        index.update(step, crash_after=1)
        shutil.rmtree(index.path / "staging")
    index.update(step)
    if how == "fold half":
        index.compact(crash_after=1)
    if how in ("compact", "fold half"):
        index.compact()


FILTERED: list[tuple[Filters, Callable[[Citation], bool]]] = [
    (Filters(retracted=False), lambda c: not c.retracted),
    (
        Filters(languages=("eng",), year_from=2002),
        lambda c: "eng" in c.languages and (c.year or 0) >= 2002,
    ),
    (Filters(journals=("Journal of heparin",)), lambda c: c.journal == "Journal of heparin"),
]


def scores(
    index: SmallIndex, question: str, over: Any, filters: Filters = NO_FILTERS
) -> dict[int, tuple[float, float]]:
    """Return the dense and BM25 scores of every citation."""
    return test_index.scores(index.readers(), index.manifest, question, over, filters)


def vocabulary(index: SmallIndex) -> bytes:
    return (index.path / vocabulary_file(index.manifest.version)).read_bytes()


@settings(max_examples=8)
@given(st.lists(files, min_size=1, max_size=3), steps)
def test_any_sequence_of_updates_equals_a_fresh_build(first: list, steps: list) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        index, fresh = SmallIndex(folder / "index"), SmallIndex(folder / "fresh")
        whole = list(first)
        versions = [(index.build(first), live(whole))]
        for step, how in steps:
            apply(index, step, how)
            whole += step
            versions.append((index.manifest, live(whole)))
        built = fresh.build(whole)
        assert index.manifest == read_manifest(index.path)
        for version, held in versions:
            assert read_manifest(index.path, version.version) == version
            found = index.citations(PMIDS, version)
            assert {pmid: f.citation for pmid, f in found.items()} == held
        assert index.citations(PMIDS) == fresh.citations(PMIDS)
        for name in ("citations", "passages", "superseded", "deleted", "sources", "last_source"):
            assert getattr(index.manifest, name) == getattr(built, name), name
        for over in ("citations", "passages"):
            assert lengths(index.manifest, over) == lengths(built, over)
            for question in QUESTIONS:
                wanted = scores(fresh, question, over)
                assert scores(index, question, over) == {
                    pmid: pytest.approx(score, rel=1e-5, abs=1e-6) for pmid, score in wanted.items()
                }
            for filters, passes in FILTERED:
                assert scores(index, question, over, filters) == {
                    pmid: pytest.approx(score, rel=1e-5, abs=1e-6)
                    for pmid, score in wanted.items()
                    if passes(held[pmid])
                }
        assert vocabulary(index) == vocabulary(fresh)
    finally:
        shutil.rmtree(folder)
