"""What a question asks for that is written in one of few ways."""

from __future__ import annotations

import re

import pytest

from cluster.models.readings import Reading, ScoredSpan
from serve.answer.names.find_values import asked_value, is_value, needs_a_value, rank_values
from serve.answer.read_evidence import ReadPassage
from tests.serve.answering import evidence


def read(*texts: str, names: str = "^$") -> list[ReadPassage]:
    """Passages of one sentence each, in which `names` may answer."""
    return [
        ReadPassage(item, rank, Reading(0.9, 0.0, 0.0, 1.0, spans, (whole,)))
        for rank, item in enumerate(evidence(*texts))
        for text in [item.passage.text]
        for whole in [ScoredSpan(0, len(text), 0.5)]
        for spans in [tuple(ScoredSpan(*m.span(), 0.8) for m in re.finditer(names, text))]
    ]


def values(body: str, *texts: str, names: str = "^$") -> list[str]:
    kind = asked_value(body)
    assert kind is not None
    return [text for text, _ in rank_values(kind, read(*texts, names=names), body)]


def test_the_kind_of_value_is_told_by_the_question(subtests: pytest.Subtests) -> None:
    for body, kind in [
        ("How is curevit administered?", "route"),
        ("What is the route of administration of curevit?", "route"),
        ("How often is curevit given?", None),
        ("What is the mode of inheritance of zelania?", "inheritance"),
        ("What is the inheritance of zelania?", "inheritance"),
        ("What is the molecular weight of the zelin protein?", "mass"),
        ("Which vitamin does curevit bind?", "numbered"),
        ("On which chromosome is the ZEL1 gene?", "numbered"),
        ("Which factor is inhibited by curevit?", "numbered"),
        ("Which factors contribute to zelania?", None),
        ("Which transcription factor binds it?", None),
    ]:
        with subtests.test(body=body, kind=kind):
            assert asked_value(body) == kind


def test_the_way_a_drug_is_taken_is_that_of_the_drug_that_is_asked_about() -> None:
    text = "Oral curevit was no worse than subcutaneous heparin in 400 adults."
    found = values("How is curevit administered?", text, names="subcutaneous")
    assert found == ["oral", "subcutaneous"]
    assert values("How is curevit given?", "Curevit is taken orally.") == ["oral"]


def test_a_molecules_weight_is_found_by_its_unit() -> None:
    body = "What is the molecular mass of zelin?"
    assert values(body, "Zelin, an X-linked gene, encodes an 80 kDa protein.") == ["80 kDa"]
    assert values(body, "Zelin is a 427-kilodalton protein.") == ["427-kilodalton"]
    assert values(body, "Zelin was given at 80 mg to 12 daughters.") == []


def test_a_mode_of_inheritance_is_found_by_its_words() -> None:
    text = "Zelania is an X-linked recessive disorder."
    found = values("What is the inheritance pattern of zelania?", text, names="disorder")
    assert found == ["X-linked recessive"]


def test_a_numbered_thing_is_one_of_the_noun_that_is_asked_for() -> None:
    text = "Curevit carries vitamin E in plasma; factor XIa and chromosome 7 play no part in that."
    assert values("Which vitamin does curevit carry?", text, names="plasma") == ["vitamin E"]
    assert values("Which factor is carried by curevit?", text) == ["factor XIa"]
    assert values("Which chromosome has curevit, vitamin E apart?", text) == ["chromosome 7"]


def test_a_chromosome_and_a_microrna_are_known_by_their_forms() -> None:
    text = "ZEL1 lies at 7q31.2, others on the X chromosome; miR-21-5p and let-7a hold it back."
    found = values("Which chromosome carries ZEL1?", text)
    assert sorted(found) == ["7q31.2", "X chromosome"]
    assert sorted(values("Which microRNAs hold ZEL1 back?", text)) == ["let-7a", "miR-21-5p"]


def test_a_value_that_the_question_names_is_no_answer() -> None:
    text = "Vitamin K and vitamin E are carried by curevit."
    assert values("Which vitamin is carried with vitamin K?", text) == ["vitamin E"]


def test_only_what_has_no_other_name_has_to_be_a_value() -> None:
    assert needs_a_value("How is curevit administered?")
    assert not needs_a_value("Which vitamin does curevit bind?")
    assert needs_a_value("Which chromosome carries the ZEL1 gene?")
    assert not needs_a_value("Which gene is it?")
    assert is_value("7q31.2", "Which chromosome carries the ZEL1 gene?")
    assert is_value("X chromosome", "Which chromosome carries the ZEL1 gene?")
    assert is_value("vitamin E", "Which vitamin does curevit bind?")
    assert not is_value("cobalamin", "Which vitamin does curevit bind?")
    assert not is_value("vitamin E", "Which gene is it?")
