from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from cluster.errors import InputError
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.train.examples.mine_candidates import kept_candidates, mine_candidates
from pipelines.train.examples.read_questions import GoldQuestion, read_corpus, read_questions
from pipelines.train.recipe import RetrievalRecipe, read_recipe
from pipelines.train.tasks.retrieval_task import MinedQuestion, RetrievalTask, average_precision
from tests.pipelines.train.tiny_data import write_corpus, write_questions
from tests.tiny_models import make_tiny_encoder

pytestmark = [pytest.mark.model, pytest.mark.nightly]

TEXTS = ["aspirin treats fever", "the gene inhibits a protein", "bleeding in the heart", ""]


def one_hot(texts: list[str]) -> np.ndarray:
    return np.stack([np.eye(4, dtype=np.float32)[TEXTS.index(t)] for t in texts])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


def recipe(**changes: object) -> RetrievalRecipe:
    return read_recipe(RetrievalRecipe, "encoder").model_copy(update={"rank": 4} | changes)


def test_gold_rows_are_those_of_the_latest_record(tmp_path: Path) -> None:
    first = write_corpus(tmp_path / "c1.xml", {7: "old", 9: "y"})
    second = write_corpus(tmp_path / "c2.xml", {7: "new"})
    corpus = read_corpus(find_sources([str(first), str(second)]))
    assert sorted(corpus.texts) == ["new", "y"]
    path = write_questions(tmp_path / "q.json", {"what is y?": [9, 1234], "what is z?": [5]})
    row = corpus.texts.index("y")
    assert read_questions([path], corpus) == [GoldQuestion("what is y?", frozenset({row}))]
    path = write_questions(tmp_path / "q.json", {"what?": [8]})
    with pytest.raises(InputError, match="no question has a gold document in the corpus"):
        read_questions([path], corpus)


def test_candidates_of_both_searches_are_interleaved() -> None:
    queries = np.array([[0.0, 0.9, 0.5, 0.0]], np.float32)
    found = mine_candidates(TEXTS, ["aspirin for bleeding"], queries, one_hot, 2)
    assert found == [[2, 1, 0]]


def test_mined_candidates_are_cached(tmp_path: Path) -> None:
    file = tmp_path / "mined.json"
    assert kept_candidates(file, "a", lambda: [[1]]) == [[1]]
    assert kept_candidates(file, "a", lambda: [[2]]) == [[1]]
    assert kept_candidates(file, "b", lambda: [[3]]) == [[3]]


def test_average_precision_divides_by_at_most_ten() -> None:
    assert average_precision([5, 1, 2], frozenset({5, 2})) == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(list(range(20)), frozenset(range(20))) == 1.0
    assert average_precision([*range(10, 20), 1], frozenset({1})) == 0.0


def mined(text: str, gold: int, *candidates: int) -> MinedQuestion:
    return MinedQuestion(GoldQuestion(text, frozenset({gold})), candidates)


def test_gold_shared_with_another_question_is_not_a_negative(base: Path) -> None:
    """A question whose only candidate is its gold text is refused."""
    with pytest.raises(InputError, match="no question has a candidate that is not its gold"):
        RetrievalTask(base, TEXTS, [mined("what?", 0, 0)], [], recipe(), "cpu")
    both = [mined("aspirin", 0, 0, 3), mined("fever", 0, 0, 3)]
    texts = [TEXTS[0], "", "", TEXTS[0]]
    task = RetrievalTask(base, texts, both, [], recipe(maxsim_scale=0.0), "cpu")
    torch.manual_seed(0)
    task.model.eval()
    # The only negative of each question has the same text as the gold.
    assert task.loss([0, 1]).item() == pytest.approx(float(np.log(3)), abs=1e-4)


def test_training_ranks_gold_first(base: Path) -> None:
    questions = [mined("which drug", 0, 1, 0, 2), mined("which gene", 1, 0, 1, 2)]
    task = RetrievalTask(base, TEXTS[:3], questions, questions, recipe(), "cpu")
    optimizer = torch.optim.AdamW([p for p in task.model.parameters() if p.requires_grad], 0.01)
    task.model.eval()
    for _ in range(40):
        optimizer.zero_grad()
        task.loss([0, 1]).backward()
        optimizer.step()
    measured = task.measure()
    assert measured["dense MAP@10"] == 1.0
    assert measured["late interaction MAP@10"] == 1.0
    assert measured["dense recall@100"] == 1.0
