"""What the reader learns from: spans, stances and windows drawn from gold questions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.models.readings import NO, SILENT, YES
from pipelines.train.examples.attributes import make_attributes
from pipelines.train.examples.contrary import contradict
from pipelines.train.examples.mark_names import find_names
from pipelines.train.examples.propositions import make_propositions
from pipelines.train.examples.read_questions import Corpus
from pipelines.train.examples.reader_examples import examples_of, overlap, read_answered
from pipelines.train.recipe import ReaderRecipe, read_recipe

pytestmark = [pytest.mark.durability, pytest.mark.nightly]

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
SAYS = "Aspirin was effective against fever in 40 adults."
# Of the ideal answer, what evidence might say.
IDEAL = "Aspirin is effective against fever."
LATER = "It is an old drug that has long been made from willow."


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
    corpus = Corpus((f"{SAYS} {LATER}", "Cats sleep.", "Dogs bark."), {1: 0, 2: 1, 3: 2})
    draw = random.Random(0)
    return list(examples_of(question, corpus, [0, 1, 2], recipe(**changes), draw))


def sayings(examples: list[Any]) -> list[tuple[str, Any]]:
    """Each part's text with what is known of it."""
    return [(e.passage[p.begin : p.end], p) for e in examples for p in e.parts]


def test_a_snippet_takes_the_stance_of_its_question(tmp_path: Path) -> None:
    yes = sayings(found_in(write(tmp_path / "q.json"), flipped=0.0))
    assert {(text, p.stance) for text, p in yes if p.relevant} == {(SAYS, YES), (IDEAL, YES)}
    assert {p.stance for _, p in yes if not p.relevant} == {SILENT}
    no = sayings(found_in(write(tmp_path / "q.json", exact_answer="No"), flipped=0.0))
    assert {p.stance for _, p in no if p.relevant} == {NO}


def test_a_snippet_turned_round_takes_the_other_stance(tmp_path: Path) -> None:
    found = sayings(found_in(write(tmp_path / "q.json"), flipped=1.0))
    turned = [text for text, p in found if p.stance == NO]
    assert set(turned) == {
        "Aspirin was ineffective against fever in 40 adults.",
        "Aspirin is ineffective against fever.",
    }


def test_a_snippet_stands_among_sentences_that_say_nothing(tmp_path: Path) -> None:
    first, *_ = found_in(write(tmp_path / "q.json"), flipped=0.0, embedded=1.0)
    said = sayings([first])
    assert [text for text, p in said if p.relevant] == [SAYS]
    assert {text for text, p in said if not p.relevant} <= {"Cats sleep.", "Dogs bark.", LATER}
    assert len(said) > 1
    alone, *_ = found_in(write(tmp_path / "q.json"), flipped=0.0, embedded=0.0)
    assert alone.passage == SAYS


def test_of_a_gold_citation_only_what_was_quoted_answers(tmp_path: Path) -> None:
    found = [e for e in found_in(write(tmp_path / "q.json"), positives=2) if LATER in e.passage]
    assert [(text, p.relevant) for text, p in sayings(found)][:2] == [(SAYS, True), (LATER, False)]


def test_gold_citations_are_never_taken_for_silent_ones(tmp_path: Path) -> None:
    found = sayings(found_in(write(tmp_path / "q.json")))
    silent = {text for text, p in found if not p.relevant}
    assert silent >= {"Cats sleep.", "Dogs bark."}
    assert SAYS not in silent


def test_names_are_marked_where_a_list_or_factoid_question_has_them(tmp_path: Path) -> None:
    row = {"type": "factoid", "exact_answer": [["aspirin", "acetylsalicylic acid"]]}
    found = found_in(write(tmp_path / "q.json", **row))
    for example in found:
        at = example.passage.find("Aspirin")
        assert [(m.begin, m.end) for m in example.names] == ([(at, at + 7)] if at >= 0 else [])
    assert all(p.stance is None for _, p in sayings(found))


def test_a_name_that_a_gold_citation_does_not_spell_is_not_known(tmp_path: Path) -> None:
    row = {"type": "factoid", "exact_answer": [["ibuprofen"]]}
    found = found_in(write(tmp_path / "q.json", **row))
    assert {e.names for e in found if any(p.relevant for p in e.parts)} == {None}


def test_a_close_citation_with_the_answers_name_may_answer_all_the_same(tmp_path: Path) -> None:
    row = {"type": "factoid", "exact_answer": [["cats"]]}
    found = sayings(found_in(write(tmp_path / "q.json", **row), negatives=2))
    assert {p.relevant for text, p in found if text == "Cats sleep."} == {None}


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
    parts = [p for e in made for p in e.parts]
    assert {p.stance for p in parts} == {YES, NO, SILENT}
    assert all(p.relevant == (p.stance != SILENT) for p in parts)
    assert not any("{" in e.question + e.passage for e in made)
    assert [e.question for e in made] == [
        e.question for e in make_propositions(300, random.Random(1))
    ]


def test_sentences_of_another_subject_or_question_leave_a_proposition_open() -> None:
    silent = [
        e.passage
        for e in make_propositions(6000, random.Random(1))
        if e.question.startswith("Is ") and " effective for " in e.question
        if len(e.parts) == 1 and not e.parts[0].relevant
    ]
    told = [text for text in silent if "superior to placebo" in text]
    assert told
    # Of another row on the same drug or disease.
    assert any("half-life" in text or "curable" in text or "cure" in text for text in silent)


def test_attributes_mark_what_was_asked_for_and_nothing_else() -> None:
    made = list(make_attributes(400, random.Random(1)))
    assert not any("{" in e.question + e.passage for e in made)
    answered = [e for e in made if any(p.relevant for p in e.parts)]
    assert 200 < len(answered) < 360
    for example in made:
        [*answers] = [p for p in example.parts if p.relevant]
        assert bool(answers) == bool(example.names)
        assert all(answers[0].begin <= m.begin < m.end <= answers[0].end for m in example.names)
    gene = next(e for e in answered if e.question.startswith("Which gene is mutated"))
    assert {gene.passage[m.begin : m.end].isupper() for m in gene.names} == {True}


@pytest.mark.parametrize("row", [{"exact_answer": "perhaps"}, {"documents": ["x"]}])
def test_a_question_without_its_gold_is_refused_by_its_place(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="question 0: not a gold question"):
        read_answered([write(tmp_path / "q.json", **row)])
