"""The tables are consistent and balanced, so that no constant answer passes."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.answers.judge import holds
from tests.answers.real import DATA, development_ids, load_questions
from tests.answers.suite import (
    REAL_SUITES,
    load_all_rows,
    load_real_rows,
    load_suite,
)

ROWS = load_all_rows()


def test_ids_and_questions_are_unique() -> None:
    real = (row.id for suite in REAL_SUITES for row in load_real_rows(suite))
    ids = Counter([*(row.id for row in ROWS), *real])
    assert not [id for id, count in ids.items() if count > 1]
    questions = Counter(row.question.casefold() for row in ROWS)
    assert not [question for question, count in questions.items() if count > 1]


def test_polarities_are_balanced() -> None:
    polarities = Counter(row.expected for row in load_suite("yes_no"))
    assert polarities == {"no": 72, "yes": 28, "mixed": 20}


def test_unanswerable_rows_expect_nothing_and_some_are_near_the_collection() -> None:
    rows = load_suite("unanswerable")
    assert all(row.expected is None for row in rows)
    assert sum(bool(row.evidence) for row in rows) >= 15
    assert sum(row.type == "yesno" for row in rows) >= 15


def test_names_are_in_the_evidence_and_forbidden_ones_are_not_expected(
    subtests: pytest.Subtests,
) -> None:
    for row in load_suite("named"):
        with subtests.test(row=row.id):
            text = " ".join(f"{c.title} {c.text}" for c in row.evidence)
            assert isinstance(row.expected, tuple)
            assert all(any(holds(text, name) for name in names) for names in row.expected)
            expected = {name.casefold() for names in row.expected for name in names}
            assert not expected & {name.casefold() for name in row.forbidden}
            assert [name for name in row.forbidden if not holds(text, name)] == []


def test_no_table_is_copied_from_the_development_questions() -> None:
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data/bioasq")
    assert not {row.bioasq for row in load_real_rows("real")} & development_ids()
    for suite in REAL_SUITES:
        assert len(load_questions(suite)) == len(load_real_rows(suite))
