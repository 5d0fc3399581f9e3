from __future__ import annotations

from dataclasses import replace
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


def vocabulary_of(folder: Path, *concepts: Concept) -> Vocabulary:
    write_each(concepts, folder / "vocabulary.arrow")
    return Vocabulary.open(folder / "vocabulary.arrow")


@pytest.fixture
def recogniser(tmp_path: Path) -> VocabularyRecogniser:
    vocabulary = vocabulary_of(
        tmp_path,
        concept("mesh:1", "Diabetes Mellitus"),
        concept("mesh:2", "Diabetes Mellitus, Type 2", "type 2 diabetes mellitus", "T2DM"),
        concept("mesh:3", "Role"),
        concept("mesh:4", "Alzheimer Disease", "AD"),
        concept("mesh:5", "Disease Progression"),
        concept("mesh:6", "What"),
        concept("abbr:x", "ankylosing spondylitis", "AS"),
        concept("kw:2", "2"),
    )
    return VocabularyRecogniser(vocabulary)


def found(recogniser: VocabularyRecogniser, text: str) -> list[tuple[str, str]]:
    return [(e.text, e.concept) for e in recogniser.entities(text)]


def test_vocabulary_names_are_recognised(recogniser: VocabularyRecogniser) -> None:
    progression = [("Alzheimer disease", "mesh:4"), ("diabetes mellitus", "mesh:1")]
    recognised: dict[str, list[tuple[str, str]]] = {
        # The longest name wins.
        "Is type-2 diabetes mellitus curable?": [("type-2 diabetes mellitus", "mesh:2")],
        # Names are found from left to right, without overlap.
        "Does Alzheimer disease progression follow diabetes mellitus?": progression,
        # A short form is not the everyday word.
        "Is AS as common as AD?": [("AS", "abbr:x"), ("AD", "mesh:4")],
        # Everyday words, numbers alone, and texts without words.
        "What is the role of roles, and WHAT is the ROLE?": [],
        "Which 2 are they?": [],
        "": [],
        "((((" * 500: [],
    }
    assert {text: found(recogniser, text) for text in recognised} == recognised


def test_entity_spans_are_code_points(recogniser: VocabularyRecogniser) -> None:
    text = "\U0001f9e0 e\u0301 in Alzheimer\u2019s disease?"
    (entity,) = recogniser.entities(text)
    assert text[entity.begin : entity.end] == entity.text == "Alzheimer\u2019s disease"


def test_synonyms_exclude_the_matched_name(recogniser: VocabularyRecogniser) -> None:
    (entity,) = recogniser.entities("T2DM")
    assert entity.synonyms == ("Diabetes Mellitus, Type 2", "type 2 diabetes mellitus")


def entity(text: str, *synonyms: str) -> Entity:
    return Entity(text, 0, len(text), "mesh:1", "mesh", synonyms)


def test_expansion_terms_skip_words_of_the_question() -> None:
    als, bronchial = "amyotrophic lateral sclerosis", "bronchial disease"
    diabetes, leukemia = "Type 2 diabetes mellitus", "acute lymphoblastic leukemia"
    for question, entities, terms in [
        ("ALS or asthma?", [entity("ALS", als), entity("asthma", bronchial)], [als, bronchial]),
        (f"{diabetes}?", [entity(diabetes, "Diabetes Mellitus, Type 2", "T2DM")], ["T2DM"]),
        ("Cereblon (CRBN)?", [entity("cereblon", "CRBN"), entity("CRBN", "cereblon")], []),
        # This short form is also an everyday word.
        (f"{leukemia}?", [entity(leukemia, "ALL")], []),
    ]:
        assert expansion_terms(question, entities) == terms, question


def test_expansion_terms_are_limited() -> None:
    entities = [entity("x", "alpha", "beta", "gamma"), entity("y", "delta", "kappa")]
    terms = expansion_terms("x y", entities, max_per_entity=2, max_terms=3)
    assert terms == ["alpha", "beta", "delta"]


def test_variants_replace_one_entity_by_a_synonym() -> None:
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
    # An entity without another name has no variant.
    assert variants_of("x and cereblon", [entity("x"), entity("x", "cereblon")], 4) == []


def rows(text: str, *tagged: tuple[str, str, float]) -> list[TaggedToken]:
    place, made = 0, []
    for token, label, score in tagged:
        begin = text.index(token.removeprefix("##"), place)
        place = begin + len(token.removeprefix("##"))
        made.append(TaggedToken(token, begin, place, label, score))
    return made


def test_subwords_are_merged_with_the_mean_score() -> None:
    # The example of paper 000, section 3.2.1.
    tagged = [("treat", "O", 0.9), ("trypa", "B-Disease", 0.8), ("##nosomiases", "I-Disease", 0.6)]
    text = "treat trypanosomiases"
    (merged,) = merge_subwords(text, rows(text, *tagged))
    assert (merged.text, merged.begin, merged.end) == ("trypanosomiases", 6, 21)
    assert merged.kind == "Disease"
    assert merged.score == pytest.approx(0.7)


def test_words_are_merged_into_entities_by_label() -> None:
    long = [("trypa", 0.8), ("##nosomiases", 0.6)]
    heart = [("chagas", 0.9), ("heart", 0.9), ("disease", 0.6)]
    for text, tokens, labels, entities in [
        # If one part of a word is labelled, the whole word is taken.
        ("trypanosomiases", long, ["B-D", "O"], ["trypanosomiases"]),
        ("trypanosomiases", long, ["O", "B-D"], ["trypanosomiases"]),
        ("trypanosomiases", long, ["B-D", "B-D"], ["trypanosomiases"]),
        # Continued words form one entity; a new beginning or another type starts a new entity.
        ("chagas heart disease", heart, ["B-D", "I-D", "I-D"], ["chagas heart disease"]),
        ("chagas heart disease", heart, ["B-D", "B-D", "I-C"], ["chagas", "heart", "disease"]),
    ]:
        tagged = [(token, label, s) for (token, s), label in zip(tokens, labels, strict=True)]
        merged = [e.text for e in merge_subwords(text, rows(text, *tagged))]
        assert merged == entities, (text, labels)
    assert merge_subwords("x", [TaggedToken("[CLS]", 0, 0, "B-D", 0.9)]) == []


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    return make_tiny_tagger(tmp_path, ["trypa", "##nosomiases", "hurt"])


def test_tagger_returns_whole_words(model_dir: Path) -> None:
    text = "\U0001f9e0 trypanosomiases hurt"
    entities = TransformerRecogniser(model_dir, ["Disease"]).entities(text)
    spans = [(e.text, e.begin, e.end) for e in entities[-2:]]
    assert spans == [("trypanosomiases", 2, 17), ("hurt", 18, 22)]
    assert entities[-1].score == pytest.approx(1.0)


def test_tagger_reads_text_beyond_its_positions(model_dir: Path) -> None:
    """The tagger has 16 positions."""
    recogniser = TransformerRecogniser(model_dir)
    entities = recogniser.entities("hurt " * 100)
    assert [(e.begin, e.end) for e in entities] == [(n * 5, n * 5 + 4) for n in range(100)]
    assert recogniser.entities("") == []


def test_tagger_rejects_unknown_labels(model_dir: Path) -> None:
    with pytest.raises(InputError, match=r"no entity label Chemical; choose from Disease"):
        TransformerRecogniser(model_dir, ["Chemical", "Disease"])


class Finding:
    """Recogniser that finds `names` anywhere in a text, without concepts."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def entities(self, text: str) -> list[Entity]:
        places = [(text.index(name), name) for name in self._names]
        return [Entity(n, at, at + len(n), "", "Disease", score=0.7) for at, n in places]


@pytest.fixture
def vocabulary(tmp_path: Path) -> Vocabulary:
    return vocabulary_of(tmp_path, concept("mesh:1", "Heart Attack", "myocardial infarction"))


@pytest.mark.parametrize(
    ("said", "concept", "synonyms"),
    [
        ("heart attack", "mesh:1", ("myocardial infarction",)),
        ("heart attacks", "mesh:1", ("myocardial infarction",)),
        ("the heart attack", "mesh:1", ("myocardial infarction",)),
        ("A heart-attack", "mesh:1", ("myocardial infarction",)),
        ("heart attack of the mind", "", ()),
    ],
)
def test_mention_is_linked_despite_articles_and_plurals(
    vocabulary: Vocabulary, said: str, concept: str, synonyms: tuple[str, ...]
) -> None:
    text = f"After {said}?"
    (mention,) = Finding(said).entities(text)
    (entity,) = LinkedRecogniser(Finding(said), vocabulary).entities(text)
    # The span, kind and score of the mention are kept.
    assert entity == replace(mention, concept=concept, synonyms=synonyms)
