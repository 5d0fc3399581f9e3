"""Results of the default preset on the suites, without a language model.

`make test` asks a sample of the questions over the citations of the sample; `make test-nightly`
asks all. `python -m tests.answers.show SUITE` prints each row, also for an endpoint with a model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from cluster.answers import Answer
from tests.answers.collection import MAX_WRONG, Examiner, build_index, settings_for
from tests.answers.judge import Judgement, judge
from tests.answers.suite import Row, load_all_rows, load_collection

pytestmark = pytest.mark.model

UNITED = ("yes", "no")
# Rows of each kind in the sample, and the seed that draws them.
SAMPLED = {"yes": 12, "no": 12, "mixed": 8, "unanswerable": 8, "named": 8}
SEED = 1
FOUND_WITHIN = 5


@dataclass(frozen=True)
class Limits:
    """Greatest numbers of `wrong` rows and least numbers of `right` ones, by kind.

    Only answerable rows count as right, so a system that declines every question fails. Names are
    asked for at an error budget of 1, because a budget of 0.1 withholds all of them.
    """

    wrong: dict[str, int]
    right: dict[str, int]


# What the default preset reaches without a language model. Targets: none wrong, 60 of the 100
# united rows right, 40% of each polarity, and 60 unanswerable questions declined.
OF_ALL = Limits(
    wrong={"united": 3, "mixed": 1, "of the wrong type": 4, "without their evidence": 16},
    right={"united": 30, "yes": 13, "no": 16, "mixed": 17, "unanswerable": 59, "named": 31},
)
# One row less than it reached on the sample, because processors round differently.
OF_THE_SAMPLE = Limits(
    wrong={"united": 2, "mixed": 1, "of the wrong type": 1, "without their evidence": 1},
    right={"united": 8, "yes": 4, "no": 3, "mixed": 6, "unanswerable": 7, "named": 7},
)

Judged = list[tuple[Row, Answer, Judgement]]


class Exam:
    """Rows of the suites, an examiner over their citations, and limits of their outcomes."""

    def __init__(self, rows: list[Row], examiner: Examiner, limits: Limits) -> None:
        self.rows = rows
        self.examiner = examiner
        self.limits = limits

    def judged(self, *kinds: str, max_wrong: float = MAX_WRONG) -> Judged:
        """Return each row of `kinds` with its answer; fail if a stage was lost."""
        rows = [row for row in self.rows if row.kind in kinds]
        answers = [self.examiner.answer(row.question, row.type, max_wrong) for row in rows]
        lost = {row.id: a.degraded for row, a in zip(rows, answers, strict=True) if a.degraded}
        assert not lost, f"answered without a stage: {lost}"
        return [(row, a, judge(row, a)) for row, a in zip(rows, answers, strict=True)]


def draw_sample() -> list[Row]:
    rows, dice = load_all_rows(), random.Random(SEED)
    return [
        row
        for kind, count in SAMPLED.items()
        for row in dice.sample([row for row in rows if row.kind == kind], count)
    ]


EXAMS = [
    pytest.param((draw_sample, OF_THE_SAMPLE), id="sample"),
    pytest.param((load_all_rows, OF_ALL), id="all", marks=pytest.mark.nightly),
]


@pytest.fixture(scope="module", params=EXAMS)
def exam(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exam]:
    draw, limits = request.param
    rows = draw()
    index = build_index(tmp_path_factory.mktemp("answers"), load_collection(rows))
    examiner = Examiner(settings_for(index))
    yield Exam(rows, examiner, limits)
    examiner.close()


def count(rows: Judged, outcome: str) -> int:
    return sum(j.outcome == outcome for _, _, j in rows)


def listed(rows: Judged, outcome: str) -> str:
    lines = [f"{row.id}: {row.question} {j.reason}" for row, _, j in rows if j.outcome == outcome]
    return "\n".join([f"{len(lines)} of {len(rows)} {outcome}:", *lines])


def test_few_answers_contradict_their_evidence(exam: Exam) -> None:
    for kinds, limit in ((UNITED, "united"), (("mixed",), "mixed")):
        rows = exam.judged(*kinds)
        assert count(rows, "wrong") <= exam.limits.wrong[limit], listed(rows, "wrong")


RIGHT = {
    "united": UNITED,
    "yes": ("yes",),
    "no": ("no",),
    "mixed": ("mixed",),
    "unanswerable": ("unanswerable",),
}


@pytest.mark.parametrize("limit", RIGHT)
def test_most_questions_of_each_kind_get_the_right_answer(exam: Exam, limit: str) -> None:
    rows = exam.judged(*RIGHT[limit])
    others = f"{listed(rows, 'wrong')}\n{listed(rows, 'held back')}"
    assert count(rows, "right") >= exam.limits.right[limit], others


def test_few_names_are_of_the_wrong_type(exam: Exam) -> None:
    rows = exam.judged("named", max_wrong=1.0)
    junk = [f"{row.id}: {j.reason}" for row, _, j in rows if j.reason.startswith("of the wrong")]
    assert len(junk) <= exam.limits.wrong["of the wrong type"], "\n".join(junk)


@pytest.mark.nightly
def test_names_are_withheld_within_the_error_budget(exam: Exam) -> None:
    rows = exam.judged("named")
    assert count(rows, "held back") == len(rows), listed(rows, "right")


def test_most_names_are_right_without_an_error_budget(exam: Exam) -> None:
    rows = exam.judged("named", max_wrong=1.0)
    reasons = f"{listed(rows, 'wrong')}\n{listed(rows, 'held back')}"
    assert count(rows, "right") >= exam.limits.right["named"], reasons


def test_retrieval_finds_the_evidence_among_the_distractors(exam: Exam) -> None:
    missed = []
    for kinds, max_wrong in ((("yes", "no", "mixed"), MAX_WRONG), (("named",), 1.0)):
        for row, answer, _ in exam.judged(*kinds, max_wrong=max_wrong):
            found = {citation.pmid for citation in answer.citations[:FOUND_WITHIN]}
            if not row.pmids & found:
                missed.append(f"{row.id}: {row.question}")
    assert len(missed) <= exam.limits.wrong["without their evidence"], "\n".join(missed)
