from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification, BertTokenizerFast

from cluster.errors import InputError
from cluster.index.vocabulary import Concept, Vocabulary
from cluster.records import Entity
from serve.expand_question import (
    TaggedToken,
    TransformerRecogniser,
    VocabularyRecogniser,
    expansion_terms,
    merge_subwords,
)
from tests.vocabulary_file import write_each


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
    """A tiny BERT that calls every token a disease with probability 1 - 2e-9."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "trypa", "##nosomiases", "hurt"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = BertTokenizerFast.from_pretrained(tmp_path)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
        id2label={0: "O", 1: "B-Disease", 2: "I-Disease"},
        label2id={"O": 0, "B-Disease": 1, "I-Disease": 2},
    )
    model = BertForTokenClassification(config)
    with torch.no_grad():
        model.classifier.weight.zero_()
        model.classifier.bias.copy_(torch.tensor([0.0, 20.0, 0.0]))
    tokenizer.save_pretrained(tmp_path / "model")
    model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_model_names_whole_words_at_their_spans(model_dir: Path) -> None:
    text = "\U0001f9e0 trypanosomiases hurt"
    entities = TransformerRecogniser(model_dir, ["Disease"]).entities(text)
    assert [(e.text, e.begin, e.end) for e in entities[-2:]] == [
        ("trypanosomiases", 2, 17),
        ("hurt", 18, 22),
    ]
    assert entities[-1].score == pytest.approx(1.0)


def test_text_longer_than_the_model_is_cut(model_dir: Path) -> None:
    # 16 positions, less [CLS] and [SEP].
    assert len(TransformerRecogniser(model_dir).entities("hurt " * 100)) == 14


def test_empty_text_has_no_entities_by_model(model_dir: Path) -> None:
    assert TransformerRecogniser(model_dir).entities("") == []


def test_label_that_the_model_lacks_is_refused(model_dir: Path) -> None:
    with pytest.raises(InputError, match=r"no entity label Chemical; choose from Disease"):
        TransformerRecogniser(model_dir, ["Chemical", "Disease"])
