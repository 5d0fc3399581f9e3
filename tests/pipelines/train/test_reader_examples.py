"""What the reader learns from: spans, stances and windows drawn from gold questions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.reader import NO, SILENT, YES
from pipelines.train.contrary import contradict
from pipelines.train.propositions import make_propositions
from pipelines.train.read_questions import Corpus
from pipelines.train.reader_examples import examples_of, find_names, overlap, read_answered
from pipelines.train.recipe import ReaderRecipe, read_recipe

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
SAYS = "Aspirin was effective against fever."


def write(path: Path, **row: Any) -> Path:
    whole = {
        "body": "Is aspirin effective against fever?",
        "type": "yesno",
        "documents": [f"{URL}1"],
        "snippets": [{"text": SAYS, "document": f"{URL}1"}],
        "exact_answer": "yes",
        "ideal_answer": ["Yes, aspirin is effective against fever."],
    } | row
    path.write_text(json.dumps({"questions": [whole]}), encoding="utf-8")
    return path


def recipe(**changes: Any) -> ReaderRecipe:
    return read_recipe(ReaderRecipe, "reader").model_copy(update=changes)


def found_in(path: Path, **changes: Any) -> list[Any]:
    [question] = read_answered([path])
    corpus = Corpus((f"{SAYS} It is old.", "Cats sleep.", "Dogs bark."), {1: 0, 2: 1, 3: 2})
    draw = random.Random(0)
    return list(examples_of(question, corpus, [0, 1, 2], recipe(**changes), draw))


def test_a_snippet_takes_the_stance_of_its_question(tmp_path: Path) -> None:
    yes = found_in(write(tmp_path / "q.json"), flipped=0.0)
    assert {e.stance for e in yes if e.relevant} == {YES}
    assert {e.stance for e in yes if not e.relevant} == {SILENT}
    no = found_in(write(tmp_path / "q.json", exact_answer="No"), flipped=0.0)
    assert {e.stance for e in no if e.relevant} == {NO}


def test_a_snippet_turned_round_takes_the_other_stance(tmp_path: Path) -> None:
    found = found_in(write(tmp_path / "q.json"), flipped=1.0)
    turned = [e for e in found if e.stance == NO]
    assert {e.passage for e in turned} == {"Aspirin was ineffective against fever."}


def test_gold_citations_are_never_taken_for_silent_ones(tmp_path: Path) -> None:
    found = found_in(write(tmp_path / "q.json"))
    silent = {e.passage for e in found if not e.relevant}
    assert silent >= {"Cats sleep.", "Dogs bark."}


def test_names_are_marked_where_a_list_or_factoid_question_has_them(tmp_path: Path) -> None:
    row = {"type": "factoid", "exact_answer": [["aspirin", "acetylsalicylic acid"]]}
    found = found_in(write(tmp_path / "q.json", **row))
    marked = [e for e in found if e.relevant]
    assert all([(m.begin, m.end) for m in e.names] == [(0, 7)] for e in marked)
    assert all(e.stance is None for e in found)
    assert all(e.names == () for e in found if not e.relevant)


def test_names_are_found_as_whole_words_in_any_case_longest_first() -> None:
    text = "The FXIa inhibitor. Factor XIa and XIa, not XIaB."
    marks = find_names(text, [["XIa", "factor XIa (FXIa)"]])
    assert [text[m.begin : m.end] for m in marks] == ["FXIa", "Factor XIa", "XIa"]


def test_a_sentence_that_is_the_ideal_answer_counts_whole() -> None:
    assert overlap("Aspirin treats fever.", ["Cats sleep.", "aspirin treats fever"]) == 1.0
    assert overlap("Cats sleep.", ["aspirin treats fever"]) == 0.0


@pytest.mark.parametrize(
    ("sentence", "turned"),
    [
        ("It was not associated with harm.", "It was associated with harm."),
        ("It increased survival.", "It decreased survival."),
        ("It was found in mice.", "It was not found in mice."),
        ("Cats sleep.", ""),
    ],
)
def test_a_sentence_is_turned_round(sentence: str, turned: str) -> None:
    assert contradict(sentence) == turned


def test_propositions_fill_a_name_in_alike_on_both_sides() -> None:
    made = list(make_propositions(300, random.Random(1)))
    assert len(made) == 300
    assert {e.stance for e in made} == {YES, NO, SILENT}
    assert not any("{" in e.question + e.passage for e in made)
    assert [e.question for e in made] == [
        e.question for e in make_propositions(300, random.Random(1))
    ]


@pytest.mark.parametrize("row", [{"exact_answer": "perhaps"}, {"documents": ["x"]}])
def test_a_question_without_its_gold_is_refused_by_its_place(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="question 0: not a gold question"):
        read_answered([write(tmp_path / "q.json", **row)])
