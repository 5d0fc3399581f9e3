from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cluster.errors import InputError
from cluster.models.encoder import Encoder
from serve.search.rerank_passages import CrossEncoderReranker, LateInteractionReranker, late_scores
from tests.tiny_models import make_tiny_cross_encoder, make_tiny_encoder

pytestmark = pytest.mark.model

QUESTION = "what reduces fever?"
PASSAGES = ["the gene in the cell", "aspirin reduces fever", "a study of patients with bleeding"]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder(
        make_tiny_encoder(tmp_path_factory.mktemp("encoder")), device="cpu", dtype="float32"
    )


@pytest.fixture(scope="module")
def late(encoder: Encoder) -> LateInteractionReranker:
    return LateInteractionReranker(encoder)


@pytest.fixture(scope="module")
def cross_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_cross_encoder(tmp_path_factory.mktemp("cross"))


@pytest.fixture(scope="module")
def cross(cross_dir: Path) -> CrossEncoderReranker:
    return CrossEncoderReranker(cross_dir, device="cpu", dtype="float32", batch_size=2)


def rows(*vectors: tuple[float, float]) -> np.ndarray:
    return np.array(vectors, dtype=np.float32)


def test_late_scores_are_means_of_the_best_cosines() -> None:
    question = rows((1, 0), (0, 1))
    # (0.6, 0.8) gives (0.6 + 0.8) / 2; with (1, 0) as a second token, (1 + 0.8) / 2.
    scores = late_scores(question, [rows((0.6, 0.8)), rows((0.6, 0.8), (1, 0))])
    np.testing.assert_allclose(scores, [0.7, 0.9], atol=1e-6)
    # Padding does not win over a negative cosine.
    long = rows((0, 1), (0, 1), (0, 1))
    scores = late_scores(rows((1, 0)), [rows((-1, 0)), long])
    np.testing.assert_allclose(scores, [-1.0, 0.0], atol=1e-6)


def test_text_without_tokens_scores_zero() -> None:
    nothing = np.zeros((0, 2), dtype=np.float32)
    assert late_scores(rows((1, 0)), [nothing, rows((1, 0))]).tolist() == [0.0, 1.0]
    assert late_scores(rows((1, 0)), [nothing]).tolist() == [0.0]
    assert late_scores(nothing, [rows((1, 0))]).tolist() == [0.0]


def test_late_interaction_agrees_with_a_loop_over_tokens(
    late: LateInteractionReranker, encoder: Encoder
) -> None:
    question, *passages = encoder.token_vectors([QUESTION, *PASSAGES])
    expected = [np.mean([max(p @ q for p in passage) for q in question]) for passage in passages]
    # Vectors are cached in 16 bits.
    np.testing.assert_allclose(late.score(QUESTION, PASSAGES), expected, atol=1e-3)


@pytest.fixture(params=["late", "cross"])
def reranker(request: pytest.FixtureRequest) -> LateInteractionReranker | CrossEncoderReranker:
    return request.getfixturevalue(request.param)


def test_pairs_of_several_questions_score_as_each_question_alone(
    reranker: LateInteractionReranker | CrossEncoderReranker,
) -> None:
    other = "which gene inhibits the protein in the heart?"
    pairs = [(q, p) for p in PASSAGES for q in (QUESTION, other)]
    expected = np.stack([reranker.score(QUESTION, PASSAGES), reranker.score(other, PASSAGES)])
    np.testing.assert_allclose(
        reranker.score_pairs(pairs), expected.T.reshape(-1), rtol=0, atol=1e-5
    )
    assert reranker.score(QUESTION, []).shape == (0,)


class Counting:
    """Encoder that records the texts that it encodes."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.texts: list[str] = []

    def token_vectors(self, texts: Sequence[str], batch_size: int | None = None) -> list[Any]:
        self.texts += texts
        return self._encoder.token_vectors(texts, batch_size)


def test_token_vectors_are_cached_up_to_the_limit(encoder: Encoder) -> None:
    counting = Counting(encoder)
    cached = LateInteractionReranker(counting, cache_mb=1)  # type: ignore[arg-type]
    first = cached.score(QUESTION, PASSAGES)
    np.testing.assert_array_equal(first, cached.score(QUESTION, PASSAGES))
    assert counting.texts == [QUESTION, *PASSAGES]
    many = [f"aspirin reduces fever {number}" for number in range(3000)]
    cached.score(QUESTION, many)
    cached.score(QUESTION, [many[0], many[-1]])
    # The least recently used vectors are evicted.
    assert counting.texts.count(many[0]) == 2
    assert counting.texts.count(many[-1]) == 1


def test_cross_encoder_returns_the_sigmoid_of_the_logit(
    cross: CrossEncoderReranker, cross_dir: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(cross_dir)
    model = AutoModelForSequenceClassification.from_pretrained(cross_dir).eval()
    expected = []
    for passage in PASSAGES:
        with torch.no_grad():
            logits = model(**tokenizer(QUESTION, passage, return_tensors="pt")).logits
        expected.append(1 / (1 + np.exp(-logits.item())))
    np.testing.assert_allclose(cross.score(QUESTION, PASSAGES), expected, atol=1e-5)


def test_cross_encoder_truncates_long_pairs(cross: CrossEncoderReranker) -> None:
    long = "the heart " * 200
    first, second = cross.score(QUESTION, [f"{long}gene", f"{long}blood"])
    assert first == pytest.approx(second, abs=1e-6)


def test_cross_encoder_with_several_labels_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gives 3 scores a pair where a reranker needs one"):
        CrossEncoderReranker(make_tiny_cross_encoder(tmp_path, labels=3), device="cpu")
