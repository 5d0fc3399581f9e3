"""The default preset over real citations, without a language model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.answers.collection import Examiner, build_index, settings_for
from tests.answers.judge import judge
from tests.answers.real import DATA, Asked, load_citations, load_questions

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(not DATA.is_dir(), reason="needs ../shared/data/bioasq"),
]

DECLINED_AT_LEAST = 4
RIGHT_AT_LEAST = 0.5
FOUND_WITHIN = 5
# Limits for questions with a true or a false premise, each followed by its target. A system that
# declines every question fails.
FALSE_AFFIRMED_AT_MOST = 0.04  # 0
TRUE_DENIED_AT_MOST = 0.03  # 0
TRUE_RIGHT_AT_LEAST = 0.55  # 0.8


@contextmanager
def examine(suite: str, folders: pytest.TempPathFactory) -> Iterator[Examiner]:
    index = build_index(folders.mktemp(suite), load_citations(suite))
    examiner = Examiner(settings_for(index))
    yield examiner
    examiner.close()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    with examine("real", tmp_path_factory) as examiner:
        yield examiner


def answerable() -> list[Asked]:
    return [asked for asked in load_questions("real") if asked.row.expected is not None]


def test_no_answer_contradicts_its_evidence(real: Examiner) -> None:
    judged = {a: judge(a.row, real.answer(a.question, a.type)) for a in answerable()}
    wrong = [f"{a.question} {j.reason}" for a, j in judged.items() if j.outcome == "wrong"]
    assert not wrong, "\n".join(wrong)
    right = sum(j.outcome == "right" for j in judged.values())
    assert right >= RIGHT_AT_LEAST * len(judged), f"{right} of {len(judged)} right"


def test_unanswerable_questions_are_declined(real: Examiner) -> None:
    asked = [a for a in load_questions("real") if a.row.expected is None]
    verdicts = {a.question: real.answer(a.question, a.type).verdict for a in asked}
    declined = list(verdicts.values()).count("not_enough_evidence")
    assert declined >= DECLINED_AT_LEAST, verdicts


def test_retrieval_finds_the_documents_of_the_experts(real: Examiner) -> None:
    missed = []
    for asked in answerable():
        found = real.search(asked.question, asked.type).citations[:FOUND_WITHIN]
        if not asked.pmids & {citation.pmid for citation in found}:
            missed.append(asked.question)
    assert not missed


def test_false_premise_is_seldom_affirmed_and_true_premise_seldom_denied(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    found: dict[str, list[str]] = {"yes": [], "no": []}
    with examine("premises", tmp_path_factory) as examiner:
        for asked in load_questions("premises"):
            judged = judge(asked.row, examiner.answer(asked.question, asked.type))
            found[str(asked.row.expected)].append(judged.outcome)
    assert found["no"].count("wrong") <= FALSE_AFFIRMED_AT_MOST * len(found["no"])
    assert found["yes"].count("wrong") <= TRUE_DENIED_AT_MOST * len(found["yes"])
    assert found["yes"].count("right") >= TRUE_RIGHT_AT_LEAST * len(found["yes"])
