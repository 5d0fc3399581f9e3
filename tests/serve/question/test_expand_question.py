from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.models.tag_entities import TaggedToken, merge_subwords
from cluster.records import Entity
from cluster.text.vocabulary import Concept, Vocabulary
from serve.question.expand_question import (
    LinkedRecogniser,
    TransformerRecogniser,
    VocabularyRecogniser,
    expansion_terms,
    variants_of,
)
from tests.tiny_models import make_tiny_tagger
from tests.vocabulary_file import write_each

pytestmark = pytest.mark.model


def concept(ident: str, *names: str) -> Concept:
    return Concept(ident, "mesh", names[0], names, (1,) * len(names), 1)


@pytest.fixture
def recogniser(tmp_path: Path) -> VocabularyRecogniser:
    concepts = [
        concept("mesh:1", "Diabetes Mellitus"),
        concept("mesh:2", "Diabetes Mellitus, Type 2", "type 2 diabetes mellitus", "T2DM"),
        concept("mesh:3", "Role"),
        concept("mesh:4", "Alzheimer Disease", "AD"),
        concept("mesh:5", "Disease Progression"),
        concept("mesh:6", "What"),
        concept("abbr:x", "ankylosing spondylitis", "AS"),
        concept("kw:2", "2"),
    ]
    write_each(concepts, tmp_path / "vocabulary.arrow")
    return VocabularyRecogniser(Vocabulary.open(tmp_path / "vocabulary.arrow"))


def found(recogniser: VocabularyRecogniser, text: str) -> list[tuple[str, str]]:
    return [(e.text, e.concept) for e in recogniser.entities(text)]


def test_longest_name_wins(recogniser: VocabularyRecogniser) -> None:
    text = "Is type-2 diabetes mellitus curable?"
    assert found(recogniser, text) == [("type-2 diabetes mellitus", "mesh:2")]


def test_names_are_found_left_to_right_without_overlap(recogniser: VocabularyRecogniser) -> None:
    text = "Does Alzheimer disease progression follow diabetes mellitus?"
    assert found(recogniser, text) == [
        ("Alzheimer disease", "mesh:4"),
        ("diabetes mellitus", "mesh:1"),
    ]


def test_everyday_and_question_words_are_no_entities(recogniser: VocabularyRecogniser) -> None:
    assert found(recogniser, "What is the role of roles, and WHAT is the ROLE?") == []


def test_numbers_alone_are_no_entities(recogniser: VocabularyRecogniser) -> None:
    assert found(recogniser, "Which 2 are they?") == []


def test_short_form_is_not_the_everyday_word(recogniser: VocabularyRecogniser) -> None:
    assert found(recogniser, "Is AS as common as AD?") == [("AS", "abbr:x"), ("AD", "mesh:4")]


def test_spans_are_code_points(recogniser: VocabularyRecogniser) -> None:
    text = "\U0001f9e0 e\u0301 in Alzheimer\u2019s disease?"
    (entity,) = recogniser.entities(text)
    assert text[entity.begin : entity.end] == entity.text == "Alzheimer\u2019s disease"


def test_synonyms_leave_out_the_name_that_was_used(recogniser: VocabularyRecogniser) -> None:
    (entity,) = recogniser.entities("T2DM")
    assert entity.synonyms == ("Diabetes Mellitus, Type 2", "type 2 diabetes mellitus")


@pytest.mark.parametrize("text", ["", "   ", "?!", "((((" * 500])
def test_text_without_words_has_no_entities(recogniser: VocabularyRecogniser, text: str) -> None:
    assert recogniser.entities(text) == []


def entity(text: str, *synonyms: str) -> Entity:
    return Entity(text, 0, len(text), "mesh:1", "mesh", synonyms)


def test_synonyms_are_added_in_order_of_the_entities() -> None:
    entities = [
        entity("ALS", "amyotrophic lateral sclerosis"),
        entity("asthma", "bronchial disease"),
    ]
    assert expansion_terms("ALS or asthma?", entities) == [
        "amyotrophic lateral sclerosis",
        "bronchial disease",
    ]


def test_synonym_of_words_in_the_question_is_not_added() -> None:
    found = entity("Type 2 diabetes mellitus", "Diabetes Mellitus, Type 2", "T2DM")
    assert expansion_terms("Type 2 diabetes mellitus?", [found]) == ["T2DM"]


def test_synonym_said_in_another_entity_is_not_added() -> None:
    entities = [entity("cereblon", "CRBN"), entity("CRBN", "cereblon")]
    assert expansion_terms("Cereblon (CRBN)?", entities) == []


def test_short_form_that_reads_as_an_everyday_word_is_not_added() -> None:
    found = entity("acute lymphoblastic leukemia", "ALL")
    assert expansion_terms("acute lymphoblastic leukemia?", [found]) == []


def test_expansion_is_bounded_by_entity_and_in_all() -> None:
    entities = [entity("x", "alpha", "beta", "gamma"), entity("y", "delta", "kappa")]
    terms = expansion_terms("x y", entities, max_per_entity=2, max_terms=3)
    assert terms == ["alpha", "beta", "delta"]


def test_a_variant_has_one_entity_by_another_of_its_names() -> None:
    question = "Does Tylenol help in ALS?"
    entities = [
        Entity("Tylenol", 5, 12, "mesh:1", "mesh", ("tylenol", "acetaminophen", "paracetamol")),
        Entity("ALS", 21, 24, "mesh:2", "mesh", ("amyotrophic lateral sclerosis",)),
    ]
    assert variants_of(question, entities, 2) == [
        "Does acetaminophen help in ALS?",
        "Does Tylenol help in amyotrophic lateral sclerosis?",
    ]
    assert len(variants_of(question, entities, 1)) == 1


def test_an_entity_without_another_name_gives_no_variant() -> None:
    assert variants_of("x and cereblon", [entity("x"), entity("x", "cereblon")], 4) == []


def rows(text: str, *tagged: tuple[str, str, float]) -> list[TaggedToken]:
    place, made = 0, []
    for token, label, score in tagged:
        begin = text.index(token.removeprefix("##"), place)
        place = begin + len(token.removeprefix("##"))
        made.append(TaggedToken(token, begin, place, label, score))
    return made


def test_subwords_of_one_label_make_one_word_with_the_mean_score() -> None:
    # The example of paper 000, section 3.2.1.
    text = "treat trypanosomiases"
    tagged = rows(
        text,
        ("treat", "O", 0.9),
        ("trypa", "B-Disease_disorder", 0.8),
        ("##nosomiases", "I-Disease_disorder", 0.6),
    )
    (merged,) = merge_subwords(text, tagged)
    assert (merged.text, merged.begin, merged.end) == ("trypanosomiases", 6, 21)
    assert merged.kind == "Disease_disorder"
    assert merged.score == pytest.approx(0.7)


@pytest.mark.parametrize(("head", "tail"), [("B-D", "O"), ("O", "B-D"), ("B-D", "B-D")])
def test_partly_labelled_word_is_taken_whole(head: str, tail: str) -> None:
    text = "trypanosomiases"
    tagged = rows(text, ("trypa", head, 0.8), ("##nosomiases", tail, 0.6))
    assert [e.text for e in merge_subwords(text, tagged)] == ["trypanosomiases"]


def test_words_that_go_on_make_one_entity() -> None:
    text = "chagas heart disease"
    tagged = rows(text, ("chagas", "B-D", 0.9), ("heart", "I-D", 0.9), ("disease", "I-D", 0.6))
    (merged,) = merge_subwords(text, tagged)
    assert merged.text == "chagas heart disease"
    assert merged.score == pytest.approx(0.8)


def test_word_that_begins_anew_makes_another_entity() -> None:
    text = "malaria cholera"
    tagged = rows(text, ("malaria", "B-D", 0.9), ("cholera", "B-D", 0.9))
    assert [e.text for e in merge_subwords(text, tagged)] == ["malaria", "cholera"]


def test_words_of_two_types_are_two_entities() -> None:
    text = "aspirin stroke"
    tagged = rows(text, ("aspirin", "I-C", 0.9), ("stroke", "I-D", 0.9))
    assert [(e.text, e.kind) for e in merge_subwords(text, tagged)] == [
        ("aspirin", "C"),
        ("stroke", "D"),
    ]


def test_rows_of_empty_span_are_left_out() -> None:
    assert merge_subwords("x", [TaggedToken("[CLS]", 0, 0, "B-D", 0.9)]) == []


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    return make_tiny_tagger(tmp_path, ["trypa", "##nosomiases", "hurt"])


def test_model_names_whole_words_at_their_spans(model_dir: Path) -> None:
    text = "\U0001f9e0 trypanosomiases hurt"
    entities = TransformerRecogniser(model_dir, ["Disease"]).entities(text)
    assert [(e.text, e.begin, e.end) for e in entities[-2:]] == [
        ("trypanosomiases", 2, 17),
        ("hurt", 18, 22),
    ]
    assert entities[-1].score == pytest.approx(1.0)


def test_text_longer_than_the_model_is_read_to_its_end(model_dir: Path) -> None:
    """It has 16 positions."""
    entities = TransformerRecogniser(model_dir).entities("hurt " * 100)
    assert [(e.begin, e.end) for e in entities] == [(n * 5, n * 5 + 4) for n in range(100)]


def test_empty_text_has_no_entities_by_model(model_dir: Path) -> None:
    assert TransformerRecogniser(model_dir).entities("") == []


def test_label_that_the_model_lacks_is_refused(model_dir: Path) -> None:
    with pytest.raises(InputError, match=r"no entity label Chemical; choose from Disease"):
        TransformerRecogniser(model_dir, ["Chemical", "Disease"])


class Finding:
    """A recogniser that finds `names` wherever they stand, and knows no concept."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def entities(self, text: str) -> list[Entity]:
        places = [(text.index(name), name) for name in self._names]
        return [Entity(n, at, at + len(n), "", "Disease", score=0.7) for at, n in places]


@pytest.fixture
def vocabulary(tmp_path: Path) -> Vocabulary:
    concepts = [
        concept("mesh:1", "Heart Attack", "myocardial infarction"),
        concept("mesh:2", "Neoplasms", "tumour"),
    ]
    write_each(concepts, tmp_path / "linking.arrow")
    return Vocabulary.open(tmp_path / "linking.arrow")


def test_a_found_mention_is_linked_and_keeps_what_the_model_says(vocabulary: Vocabulary) -> None:
    linked = LinkedRecogniser(Finding("heart attack"), vocabulary)
    (entity,) = linked.entities("After a heart attack?")
    assert (entity.concept, entity.synonyms) == ("mesh:1", ("myocardial infarction",))
    assert (entity.text, entity.begin, entity.kind, entity.score) == (
        "heart attack",
        8,
        "Disease",
        0.7,
    )


@pytest.mark.parametrize("said", ["heart attacks", "the heart attack", "A heart-attack"])
def test_articles_and_plurals_hinder_no_link(vocabulary: Vocabulary, said: str) -> None:
    (entity,) = LinkedRecogniser(Finding(said), vocabulary).entities(said)
    assert (entity.text, entity.concept) == (said, "mesh:1")
    assert entity.synonyms == ("myocardial infarction",)


def test_a_mention_that_no_concept_bears_stays_as_it_was_found(vocabulary: Vocabulary) -> None:
    found = Finding("heart attack of the mind").entities("heart attack of the mind")
    linked = LinkedRecogniser(Finding("heart attack of the mind"), vocabulary)
    assert linked.entities("heart attack of the mind") == found
