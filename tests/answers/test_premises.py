"""Questions with a true or a false premise over real citations.

`python -m tests.answers.show premises` prints each row.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.answers.collection import Examiner, build_index, settings_for
from tests.answers.judge import judge
from tests.answers.real import DATA, load_citations, load_questions

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/bioasq"),
]

# Limits that the default preset meets without a language model, each followed by its target. A
# system that declines every question fails.
FALSE_AFFIRMED_AT_MOST = 0.04  # 0
TRUE_DENIED_AT_MOST = 0.03  # 0
TRUE_RIGHT_AT_LEAST = 0.55  # 0.8


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """Return the outcomes of the questions by expected answer."""
    index = build_index(tmp_path_factory.mktemp("premises"), load_citations("premises"))
    examiner = Examiner(settings_for(index))
    found: dict[str, list[str]] = {"yes": [], "no": []}
    for asked in load_questions("premises"):
        judged = judge(asked.row, examiner.answer(asked.question, asked.type))
        found[str(asked.row.expected)].append(judged.outcome)
    yield found
    examiner.close()


def share(outcomes: list[str], outcome: str) -> float:
    return outcomes.count(outcome) / len(outcomes)


def test_false_premise_is_seldom_affirmed(outcomes: dict[str, list[str]]) -> None:
    assert share(outcomes["no"], "wrong") <= FALSE_AFFIRMED_AT_MOST


def test_true_premise_is_mostly_affirmed_and_seldom_denied(
    outcomes: dict[str, list[str]],
) -> None:
    assert share(outcomes["yes"], "wrong") <= TRUE_DENIED_AT_MOST
    assert share(outcomes["yes"], "right") >= TRUE_RIGHT_AT_LEAST
