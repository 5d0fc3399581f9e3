"""Repairs are complete and idempotent for any input."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from evaluation.find_citations import CitationLookup
from evaluation.lint.check_bioasq import check_bioasq
from evaluation.lint.note_problems import Asked, Checked
from tests.evaluation.lint.lint_runs import METADATA, URL, messages, snippet, task_a, task_b

WORDS = ["Iron.", "iron", "[12345]", "(PMID 7)", "Is it stored?", "[1[2]3]", "a " * 120, ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
ODD = st.one_of(st.none(), st.integers(-3, 20), TEXTS, st.booleans(), st.just([]), st.just({}))
PMIDS = st.sampled_from(
    [7, "7", "8", "PMID: 9", f"{URL}7", f"{URL}8", "https://pubmed.ncbi.nlm.nih.gov/7", "x", None]
)
OFFSETS = st.one_of(st.integers(-2, 80), st.none())
SNIPPETS = st.builds(
    snippet,
    st.sampled_from(["Iron is stored", "Iron is stored in ferritin", "Of iron", "x", ""]),
    OFFSETS,
    OFFSETS,
    document=PMIDS,
    beginSection=st.sampled_from(["abstract", "title", "sections.0", "x"]),
)
NAMES = st.sampled_from(["a", "A", "b", "c", "d", "e", "f", "", "x" * 101, 5])
EXACT = st.one_of(
    st.sampled_from(["yes", " No", "maybe"]),
    st.lists(st.one_of(NAMES, st.lists(NAMES, max_size=3)), max_size=9),
)
QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["q", "r", ""]),
        "type": st.sampled_from(["yesno", "factoid", "list", "summary", "essay"]),
        "documents": st.one_of(ODD, st.lists(PMIDS, max_size=14)),
        "snippets": st.one_of(ODD, st.lists(st.one_of(ODD, SNIPPETS), max_size=14)),
        "exact_answer": st.one_of(ODD, EXACT),
        "ideal_answer": st.one_of(ODD, TEXTS, st.lists(TEXTS, max_size=3)),
        "answerReady": st.booleans(),
    },
)
CITATIONS = st.one_of(
    ODD, st.lists(PMIDS, max_size=6), st.dictionaries(st.sampled_from("78x"), ODD)
)
SENTENCES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.one_of(ODD, TEXTS),
        "citations": CITATIONS,
        "existing_supported_citations": CITATIONS,
        "supported_citations": CITATIONS,
        "contradicted_citations": CITATIONS,
        "contradicting_citations": CITATIONS,
    },
)
ITEMS = st.one_of(ODD, st.lists(st.one_of(ODD, SENTENCES), max_size=5))
RECORDS = st.fixed_dictionaries(
    {"metadata": st.one_of(ODD, st.just(METADATA))}, optional={"answer": ITEMS, "responses": ITEMS}
)
Check = Callable[..., Checked]


@pytest.mark.parametrize(
    ("check", "rows"),
    [
        (check_bioasq, QUESTIONS),
        (partial(check_bioasq, synergy=True), QUESTIONS),
        (task_a, RECORDS),
        (task_b, RECORDS),
    ],
)
@pytest.mark.parametrize("with_index", [False, True])
@pytest.mark.slow
def test_repairing_twice_changes_nothing(
    check: Check, rows: Any, with_index: bool, lookup: CitationLookup
) -> None:
    asked = {"q": Asked("list", answer_ready=True), "181": Asked()}

    @hypothesis_settings(max_examples=120)
    @drawn(st.lists(st.one_of(ODD, rows), max_size=4), st.booleans(), st.booleans())
    def mend_twice(run: list[Any], drop: bool, against: bool) -> None:
        before = copy.deepcopy(run)
        mend = partial(
            check,
            questions=asked if against else None,
            lookup=lookup if with_index else None,
            drop_unknown=drop,
        )
        once = mend(run)
        again = mend(once.rows)
        assert run == before
        assert messages(again, mendable=True) == []
        assert again.rows == once.rows

    mend_twice()
