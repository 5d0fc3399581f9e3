from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from transformers import BertForSequenceClassification

from evaluation.biogen.judge_citations import Asked, EntailmentJudge
from evaluation.biogen.read_biogen import Cited
from evaluation.biogen.read_labels import Labels, Relation
from evaluation.biogen.score_biogen import score_task_b
from serve.support.attribute_sentences import Stance, Support
from serve.support.check_entailment import NliSupport
from tests.tiny_models import make_tiny_cross_encoder

pytestmark = pytest.mark.model


class Keywords:
    """Entails by the premise's word: a stance, and a score after it."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        self.pairs += pairs
        found = []
        for premise, _ in pairs:
            stances: tuple[Stance, ...] = ("support", "contradict", "neutral")
            stance = next(word for word in stances if word in premise)
            score = next((part for part in premise.split() if part.startswith("0.")), "0.9.")
            found.append(Support(float(score.rstrip(".")) if stance == "support" else 0.1, stance))
        return found


def judge_text(text: str, threshold: float = 0.5) -> list[Relation]:
    judge = EntailmentJudge(lambda pmids: {1: text}, Keywords(), threshold, window=1)
    return judge.judge([Asked("t", "It helps.", 1)])


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("It is neutral. One support.", "support"),
        ("One contradict. One support.", "support"),
        ("It is neutral. One contradict.", "contradict"),
        ("It is neutral. It is neutral.", "neutral"),
        ("", "unknown"),
    ],
)
def test_any_entailing_sentence_supports_then_any_contradicting_one_contradicts(
    text: str, relation: Relation
) -> None:
    assert judge_text(text) == [relation]


@pytest.mark.parametrize(("threshold", "relation"), [(0.6, "support"), (0.61, "neutral")])
def test_a_document_supports_from_the_threshold_on(threshold: float, relation: Relation) -> None:
    assert judge_text("We saw support 0.6.", threshold) == [relation]


def test_premises_are_windows_of_sentences_and_texts_are_asked_once() -> None:
    scorer = Keywords()
    asked: list[list[int]] = []

    def texts(pmids: Sequence[int]) -> dict[int, str]:
        asked.append(list(pmids))
        return {1: "A neutral. B neutral. C neutral.", 2: "D neutral."}

    judge = EntailmentJudge(texts, scorer, window=2)
    items = [Asked("t", "S.", 1), Asked("t", "T.", 2), Asked("t", "T.", 1), Asked("t", "S.", 3)]
    assert judge.judge(items) == ["neutral", "neutral", "neutral", "unknown"]
    assert asked == [[1, 2, 3]]
    windows = ["A neutral. B neutral.", "B neutral. C neutral."]
    assert scorer.pairs == [
        *((window, "S.") for window in windows),
        ("D neutral.", "T."),
        *((window, "T.") for window in windows),
    ]


def test_answers_stay_beside_their_questions() -> None:
    texts = {1: "Here is support.", 2: "Here is contradict. Here is neutral.", 3: ""}
    judge = EntailmentJudge(lambda pmids: texts, Keywords(), window=1)
    items = [Asked("t", "S.", pmid) for pmid in (2, 3, 1, 4)]
    assert judge.judge(items) == ["contradict", "unknown", "support", "unknown"]


def test_nothing_to_judge_asks_no_model() -> None:
    scorer = Keywords()
    assert EntailmentJudge(lambda pmids: {}, scorer).judge([Asked("t", "S.", 1)]) == ["unknown"]
    assert scorer.pairs == []


@pytest.mark.parametrize(
    ("leaning", "relation"), [(0, "contradict"), (1, "neutral"), (2, "support")]
)
def test_a_run_judged_by_an_nli_model(tmp_path: Path, leaning: int, relation: Relation) -> None:
    path = make_tiny_cross_encoder(tmp_path, labels=3)
    model = BertForSequenceClassification.from_pretrained(path)
    model.config.id2label = {0: "contradiction", 1: "neutral", 2: "entailment"}
    model.classifier.weight.data.zero_()
    model.classifier.bias.data.zero_()
    model.classifier.bias.data[leaning] = 5.0
    model.save_pretrained(path)
    judge = EntailmentJudge(lambda pmids: {1: "Aspirin reduces fever."}, NliSupport(str(path)))
    scores = score_task_b({"t": (Cited("Aspirin treats fever.", (1,)),)}, Labels(), judge)
    found = scores.by_question()["t"]
    assert found["machine judgements"] == 1
    assert found["citation support rate"] == (relation == "support")
    assert found["citation contradict rate"] == (relation == "contradict")
