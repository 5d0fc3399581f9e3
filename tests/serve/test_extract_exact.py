from __future__ import annotations

import re

import pytest

from cluster.records import Entity
from serve.extract_exact import (
    add_names,
    decide_yesno,
    extract_exact,
    group_names,
    rank_entities,
)
from tests.serve.answering import evidence

NAMES = {
    "epidermal growth factor receptor": "D1",
    "EGFR": "D1a",
    "BRCA1": "D2",
    "TP53": "D3",
    "cancer": "D4",
}


def recognise(text: str) -> list[Entity]:
    return [
        Entity(name, m.start(), m.end(), concept, "gene")
        for name, concept in NAMES.items()
        for m in re.finditer(re.escape(name), text)
    ]


@pytest.mark.parametrize(
    ("body", "says", "verdict"),
    [
        ("Does aspirin prevent stroke?", "Aspirin prevents stroke in adults.", "yes"),
        ("Does aspirin prevent stroke?", "Aspirin did not prevent stroke.", "no"),
        ("Does aspirin prevent stroke?", "There is no evidence of aspirin and stroke.", "no"),
        ("Does aspirin prevent stroke?", "Aspirin was ineffective against stroke.", "no"),
        ("Does TIAM1 promote tumour growth?", "TIAM1 suppresses tumour growth.", "no"),
        ("Does aspirin prevent stroke?", "Cats sleep most of the day.", "no"),
        ("Is a drug not safe?", "The drug is not safe.", "no"),
    ],
)
def test_verdict_follows_the_stance_of_the_evidence(body: str, says: str, verdict: str) -> None:
    assert decide_yesno(body, evidence(says)) == verdict


def test_no_evidence_is_a_no() -> None:
    assert decide_yesno("Does aspirin prevent stroke?", []) == "no"


def test_one_denial_outweighs_one_affirmation() -> None:
    says = ["Aspirin prevents stroke.", "Aspirin did not prevent stroke."]
    assert decide_yesno("Does aspirin prevent stroke?", evidence(*says)) == "no"


def test_three_affirmations_outweigh_one_denial() -> None:
    says = ["Aspirin prevents stroke."] * 3 + ["Aspirin did not prevent stroke."]
    assert decide_yesno("Does aspirin prevent stroke?", evidence(*says)) == "yes"


def test_entity_of_more_passages_comes_first() -> None:
    found = evidence("TP53 is here.", "BRCA1 is here.", "BRCA1 is there.")
    assert rank_entities("Which gene?", found, recognise, limit=5) == [["BRCA1"], ["TP53"]]


def test_entity_of_the_better_passage_comes_first() -> None:
    found = evidence("TP53 is here.", "BRCA1 is here.")
    assert rank_entities("Which gene?", found, recognise, limit=5) == [["TP53"], ["BRCA1"]]


def test_entity_in_the_sentence_that_answers_comes_first() -> None:
    found = evidence("TP53 sits here. Cystic fibrosis is caused by BRCA1.")
    ranked = rank_entities("Which gene causes cystic fibrosis?", found, recognise, limit=5)
    assert ranked[0] == ["BRCA1"]


def test_entity_of_the_question_is_no_answer() -> None:
    found = evidence("BRCA1 causes cancer.")
    assert rank_entities("Which gene causes cancer?", found, recognise, limit=5) == [["BRCA1"]]


def test_short_form_joins_its_long_form() -> None:
    found = evidence("The epidermal growth factor receptor (EGFR) is mutated.")
    assert rank_entities("Which gene?", found, recognise, limit=5) == [
        ["epidermal growth factor receptor", "EGFR"]
    ]


def test_a_short_form_of_another_passage_joins_the_long_form_and_counts_with_it() -> None:
    found = evidence(
        "TP53 is here.",
        "The epidermal growth factor receptor (EGFR) is mutated.",
        "EGFR is mutated.",
    )
    assert rank_entities("Which gene?", found, recognise, limit=5) == [
        ["EGFR", "epidermal growth factor receptor"],
        ["TP53"],
    ]


def test_a_thing_that_the_question_names_by_its_short_form_is_no_answer() -> None:
    found = evidence("The epidermal growth factor receptor (EGFR) binds BRCA1.")
    assert rank_entities("What binds EGFR?", found, recognise, limit=5) == [["BRCA1"]]


def test_what_stands_in_brackets_is_no_synonym_unless_it_is_the_short_form() -> None:
    found = evidence("An epidermal growth factor receptor (BRCA1) is here.")
    assert sorted(rank_entities("Which gene?", found, recognise, limit=5)) == [
        ["BRCA1"],
        ["epidermal growth factor receptor"],
    ]


def test_names_that_a_model_gives_are_grouped_by_what_the_evidence_defines() -> None:
    found = evidence("The epidermal growth factor receptor (EGFR) is here, TP53 too.")
    names = ["EGFR", "TP53", "epidermal growth factor receptor", "tp53"]
    assert group_names(names, found, recognise) == [
        ["EGFR", "epidermal growth factor receptor"],
        ["TP53", "tp53"],
    ]


def test_one_name_in_two_cases_is_listed_once() -> None:
    def both_cases(text: str) -> list[Entity]:
        return [Entity(m[0], m.start(), m.end(), "D9", "g") for m in re.finditer("(?i)kras", text)]

    found = evidence("KRAS is mutated and Kras too.")
    assert rank_entities("Which gene?", found, both_cases, limit=5) == [["KRAS"]]


def test_overlong_entity_is_left_out() -> None:
    def whole(text: str) -> list[Entity]:
        return [Entity(text, 0, len(text), "D9", "g")]

    assert rank_entities("Which gene?", evidence("x" * 101), whole, limit=5) == []


def test_nothing_plausible_gives_an_empty_list() -> None:
    found = evidence("Cats sleep most of the day.")
    assert extract_exact("factoid", "Which gene?", found, recognise) == []


def test_factoid_gives_at_most_five() -> None:
    def every_word(text: str) -> list[Entity]:
        words = re.finditer(r"\w+", text)
        return [Entity(m[0], m.start(), m.end(), m[0], "w") for m in words]

    found = evidence("alpha beta gamma delta epsilon zeta eta theta")
    exact = extract_exact("factoid", "Which letter?", found, every_word)
    assert isinstance(exact, list)
    assert len(exact) == 5


def test_unlikely_items_of_a_list_are_left_out() -> None:
    found = evidence(*["BRCA1 is here."] * 6, "TP53 is here.")
    assert extract_exact("list", "Which genes?", found, recognise) == [["BRCA1"]]


def test_what_a_short_form_stands_for_is_the_first_answer_where_that_is_asked() -> None:
    says = "Epidermal growth factor receptor (EGFR) is mutated in cancer, as BRCA1 is."
    for body in ("What is EGFR?", "What does EGFR stand for?"):
        exact = extract_exact("factoid", body, evidence(says), recognise)
        assert isinstance(exact, list)
        assert exact[0] == ["Epidermal growth factor receptor"]
        assert ["BRCA1"] in exact[1:]
    other = extract_exact("factoid", "What is EGFR inhibited by?", evidence(says), recognise)
    assert other == [["BRCA1"], ["cancer"]] or other == [["cancer"], ["BRCA1"]]


def test_summary_has_no_exact_answer() -> None:
    assert extract_exact("summary", "What is BRCA1?", evidence("A gene."), recognise) is None


def test_what_is_written_like_a_name_is_a_candidate_without_any_vocabulary() -> None:
    text = "FunImageJ is a Lisp framework for image processing. Others use tables."
    body = "Which Lisp framework has been developed for image processing?"
    assert extract_exact("factoid", body, evidence(text), no_one) == [["FunImageJ"]]


def test_a_name_inside_an_entity_is_not_counted_again() -> None:
    entity = Entity("anti-CD19 antibody", 0, 18, "chem:1", "chemical")
    assert add_names("anti-CD19 antibody binds CD20.", [entity]) == [
        entity,
        Entity("CD20", 25, 29, "", "name"),
    ]


def test_a_section_label_and_a_bare_range_are_no_names() -> None:
    text = "RESULTS: Online counselling took 10-12 minutes less. METHODS: None."
    found = extract_exact("factoid", "What does online counselling save?", evidence(text), no_one)
    assert found == []


def no_one(text: str) -> list[Entity]:
    return []
