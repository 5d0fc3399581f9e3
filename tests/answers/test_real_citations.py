"""The default preset over real citations, without a language model."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Examiner]:
    index = build_index(tmp_path_factory.mktemp("real"), load_citations("real"))
    examiner = Examiner(settings_for(index))
    yield examiner
    examiner.close()


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
