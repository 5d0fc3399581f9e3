"""The tables are well formed and balanced, so that no single habit passes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.answers.judge import holds
from tests.answers.real import DATA, development_ids, load_questions
from tests.answers.suite import (
    REAL_SUITES,
    SUITES,
    load_collection,
    load_real_rows,
    load_suite,
)

ROWS = [row for name in SUITES for row in load_suite(name)]
NAMED = load_suite("named")


def test_each_suite_has_the_questions_that_it_promises() -> None:
    assert {name: len(load_suite(name)) for name in SUITES} == {
        "yes_no": 120,
        "unanswerable": 60,
        "named": 40,
    }


def test_ids_and_questions_are_unique() -> None:
    real = (row.id for suite in REAL_SUITES for row in load_real_rows(suite))
    ids = Counter([*(row.id for row in ROWS), *real])
    assert not [id for id, count in ids.items() if count > 1]
    questions = Counter(row.question.casefold() for row in ROWS)
    assert not [question for question, count in questions.items() if count > 1]


def test_every_answerable_row_brings_two_to_four_citations() -> None:
    counts = {row.id: len(row.evidence) for row in ROWS if row.expected is not None}
    assert not {id: count for id, count in counts.items() if not 2 <= count <= 4}


def test_polarities_are_balanced() -> None:
    polarities = Counter(row.expected for row in load_suite("yes_no"))
    assert polarities == {"no": 72, "yes": 28, "mixed": 20}


def test_unanswerable_rows_expect_nothing_and_some_are_near_the_collection() -> None:
    rows = load_suite("unanswerable")
    assert all(row.expected is None for row in rows)
    assert sum(bool(row.evidence) for row in rows) >= 15
    assert sum(row.type == "yesno" for row in rows) >= 15


def test_named_rows_cover_every_kind_of_name() -> None:
    kinds = Counter(row.id.rpartition("-")[0] for row in NAMED)
    wanted = "gene drug disease protein organism dose age rate year mechanism definition"
    assert set(kinds) == set(wanted.split())
    assert min(kinds.values()) >= 3


def test_each_expected_thing_stands_in_the_evidence(subtests: pytest.Subtests) -> None:
    for row in NAMED:
        with subtests.test(row=row):
            text = " ".join(f"{c.title} {c.text}" for c in row.evidence)
            assert isinstance(row.expected, tuple)
            assert not [
                names for names in row.expected if not any(holds(text, name) for name in names)
            ]


def test_forbidden_names_tempt_and_are_not_expected(subtests: pytest.Subtests) -> None:
    for row in NAMED:
        with subtests.test(row=row):
            text = " ".join(f"{c.title} {c.text}" for c in row.evidence)
            assert isinstance(row.expected, tuple)
            expected = {name.casefold() for names in row.expected for name in names}
            assert not expected & {name.casefold() for name in row.forbidden}
            assert not [name for name in row.forbidden if not holds(text, name)]
            assert len(row.forbidden) >= 3


def test_the_collection_is_one_set_of_citations() -> None:
    assert 450 <= len(load_collection()) <= 600


def test_no_table_is_copied_from_the_development_questions() -> None:
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data/bioasq")
    assert not {row.bioasq for row in load_real_rows("real")} & development_ids()
    for suite in REAL_SUITES:
        assert len(load_questions(suite)) == len(load_real_rows(suite))


def test_every_table_says_at_its_head_what_it_holds() -> None:
    tables = sorted((Path(__file__).parent / "tables").rglob("*.yaml"))
    assert not [t for t in tables if not t.read_text(encoding="utf-8").startswith("# ")]
