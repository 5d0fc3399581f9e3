"""Training examples, losses and measures of the recogniser, the encoder and the reranker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cluster.errors import InputError
from cluster.models.tag_entities import TaggedToken, merge_subwords
from cluster.records import Entity
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.train.examples.mine_candidates import kept_candidates, mine_candidates
from pipelines.train.examples.read_questions import GoldQuestion, read_corpus, read_questions
from pipelines.train.examples.tagged_texts import (
    TaggedText,
    allowed_labels,
    labels_of,
    read_tagged_texts,
    windows_of,
)
from pipelines.train.recipe import Recipe, RetrievalRecipe, read_recipe
from pipelines.train.tasks.retrieval_task import MinedQuestion, RetrievalTask, average_precision
from pipelines.train.tasks.tag_task import TagTask, measure_tagger
from tests.pipelines.train.tiny_data import write_corpus, write_lines, write_questions
from tests.tiny_models import make_tiny_encoder, tiny_tokenizer

pytestmark = [pytest.mark.model, pytest.mark.nightly]


BOTH = frozenset({"Chemical", "Disease"})
LABELS = labels_of(BOTH)


def entity(begin: int, end: int, kind: str) -> dict[str, Any]:
    return {"start": begin, "end": end, "type": kind}


def tags(text: TaggedText, *offsets: tuple[int, int]) -> list[list[str]]:
    rows = allowed_labels(text, offsets, LABELS)
    return [[label for label, may in zip(LABELS, row, strict=True) if may] for row in rows]


def test_marked_types_are_those_with_an_entity_in_the_file(tmp_path: Path) -> None:
    fever = {"text": "fever", "entities": [entity(0, 5, "Disease")]}
    aspirin = {"text": "aspirin", "entities": [entity(0, 7, "Chemical")]}
    one = write_lines(tmp_path / "a", [fever, {"text": "none", "entities": []}])
    two = write_lines(tmp_path / "b", [aspirin])
    texts = read_tagged_texts([one, two])
    assert [t.marked for t in texts] == [{"Disease"}, {"Disease"}, {"Chemical"}]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"entities": []}, "line 2: not a tagged text"),
        ({"text": "x", "entities": [{"start": 0}]}, "line 2: not a tagged text"),
        ({"text": "x", "entities": [entity(0, 2, "D")]}, "D at 0 to 2 is outside"),
        ([1], "line 2: not a JSON object"),
    ],
)
def test_invalid_row_is_refused_with_its_line(tmp_path: Path, row: Any, said: str) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [{"text": "fever", "entities": []}, row])
    with pytest.raises(InputError, match=said):
        read_tagged_texts([path])
    with pytest.raises(InputError, match=r"absent\.jsonl: cannot be read"):
        read_tagged_texts([tmp_path / "absent.jsonl"])


def test_unmarked_types_are_allowed_outside_entities() -> None:
    text = TaggedText("fever aspirin", ((0, 5, "Disease"),), frozenset({"Disease"}))
    assert tags(text, (0, 5), (6, 13)) == [["B-Disease"], ["O", "B-Chemical", "I-Chemical"]]


def test_allowed_labels_encode_the_gold_entities() -> None:
    """The service decodes the training labels to the same spans."""
    text = "Drug-induced heart tumour, fever."
    gold = ((13, 25, "Disease"), (27, 32, "Disease"))
    offsets = [(0, 4), (4, 5), (5, 12), (13, 18), (19, 25), (25, 26), (27, 32), (32, 33)]
    allowed = tags(TaggedText(text, gold, BOTH), *offsets)
    rows = [
        TaggedToken(text[begin:end], begin, end, labels[0], 1.0)
        for (begin, end), labels in zip(offsets, allowed, strict=True)
    ]
    assert tuple((e.begin, e.end, e.kind) for e in merge_subwords(text, rows)) == gold


def test_windows_end_at_sentences_and_keep_their_entities() -> None:
    first, second = "the gene causes fever .", "Aspirin treats fever ."
    text = f"{first} {second}"
    at = len(first) + 1
    whole = TaggedText(text, ((16, 21, "Disease"), (at, at + 7, "Chemical")), BOTH)
    windows = windows_of([whole], tiny_tokenizer(), [9])
    assert [w.text for w in windows] == [first, second]
    assert [w.entities for w in windows] == [((16, 21, "Disease"),), ((0, 7, "Chemical"),)]


TEXT = TaggedText("aspirin treats fever .", ((0, 7, "Chemical"), (15, 20, "Disease")), BOTH)


class Guesses:
    """Tagger stub that returns the given spans."""

    def __init__(self, *spans: tuple[int, int, str]) -> None:
        self._spans = spans

    def tag(self, texts: Any) -> list[list[Entity]]:
        return [[Entity(t[b:e], b, e, "", kind) for b, e, kind in self._spans] for t in texts]


def recipe(**changes: Any) -> Recipe:
    small = {"steps": 60, "batch": 2, "max_tokens": 32, "rank": 4, "learning_rate": 0.02}
    return read_recipe(Recipe, "ner").model_copy(update=small | changes)


def test_only_exact_spans_of_the_right_type_are_correct() -> None:
    found = measure_tagger(Guesses((0, 7, "Chemical"), (15, 20, "Chemical")), [TEXT])
    assert found["precision"] == found["recall"] == found["F1"] == 0.5
    assert found["Chemical precision"] == 0.5
    assert found["Chemical recall"] == 1.0
    assert found["Disease F1"] == 0.0
    assert measure_tagger(Guesses((0, 14, "Chemical")), [TEXT])["F1"] == 0.0


def test_predictions_of_unmarked_types_are_ignored() -> None:
    unmarked = TaggedText(TEXT.text, ((15, 20, "Disease"),), frozenset({"Disease"}))
    found = measure_tagger(Guesses((0, 7, "Chemical"), (15, 20, "Disease")), [unmarked])
    assert found["F1"] == 1.0


@pytest.mark.parametrize("rank", [4, 0])
def test_rank_selects_adapter_or_full_training(tmp_path: Path, rank: int) -> None:
    task = TagTask(make_tiny_encoder(tmp_path), [TEXT], [], recipe(rank=rank), "cpu")
    trained = {n for n, p in task.model.named_parameters() if p.requires_grad}
    assert any("classifier" in name for name in trained)
    assert any("word_embeddings" in name for name in trained) == (rank == 0)
    assert any("lora" in name for name in trained) == (rank > 0)
    with pytest.raises(InputError, match="nothing to train a recogniser on"):
        TagTask(tmp_path, [TaggedText("x", (), frozenset())], [], recipe(), "cpu")


TEXTS = ["aspirin treats fever", "the gene inhibits a protein", "bleeding in the heart", ""]


def one_hot(texts: list[str]) -> np.ndarray:
    return np.stack([np.eye(4, dtype=np.float32)[TEXTS.index(t)] for t in texts])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


def retrieval_recipe(**changes: object) -> RetrievalRecipe:
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
        RetrievalTask(base, TEXTS, [mined("what?", 0, 0)], [], retrieval_recipe(), "cpu")
    both = [mined("aspirin", 0, 0, 3), mined("fever", 0, 0, 3)]
    texts = [TEXTS[0], "", "", TEXTS[0]]
    task = RetrievalTask(base, texts, both, [], retrieval_recipe(maxsim_scale=0.0), "cpu")
    torch.manual_seed(0)
    task.model.eval()
    # The only negative of each question has the same text as the gold.
    assert task.loss([0, 1]).item() == pytest.approx(float(np.log(3)), abs=1e-4)
