"""Tests of clustering: synonyms are joined, similar names of different things are not."""

from __future__ import annotations

import pytest

from cluster.records import Entity
from serve.answer.names.cluster_names import cluster_names

Name = tuple[str, str]


def clusters(*names: Name, definitions: tuple[tuple[str, str], ...] = ()) -> list[int]:
    known = dict(names)

    def recognise(text: str) -> list[Entity]:
        return [Entity(text, 0, len(text), known[text], "thing")] if known[text] else []

    return cluster_names([text for text, _ in names], definitions, recognise)


def joined(*names: Name, definitions: tuple[tuple[str, str], ...] = ()) -> bool:
    """Return whether all names are in one cluster; otherwise each must be in its own."""
    count = len(set(clusters(*names, definitions=definitions)))
    assert count in (1, len(names))
    return count == 1


def test_mentions_of_a_concept_are_joined() -> None:
    assert joined(("heart attack", "mesh:1"), ("myocardial infarction", "mesh:1"))


def test_spellings_of_a_name_are_joined(subtests: pytest.Subtests) -> None:
    for one, other in [
        ("IL-6", "IL6"),
        ("IL\u20116", "il 6"),
        ("TNF-\u03b1", "TNF alpha"),
        ("TNF\u03b1", "TNFalpha"),
        ("statin", "Statins"),
        ("Crohn's disease", "Crohn disease"),
    ]:
        with subtests.test(one=one, other=other):
            assert joined((one, ""), (other, ""))


def test_different_numbers_or_letters_are_not_joined(
    subtests: pytest.Subtests,
) -> None:
    for one, other in [
        ("IL-6", "IL-8"),
        ("interleukin 1 2", "interleukin 12"),
        ("type 1 diabetes", "type 2 diabetes"),
        ("type II diabetes", "diabetes type I"),
        ("\u03b1-tubulin", "\u03b2-tubulin"),
        ("TNF", "TNFalpha"),
        ("hepatitis B", "hepatitis C"),
        ("PD-1", "PD-L1"),
        ("T1D", "T2D"),
        ("factor VIII", "factor IX"),
    ]:
        with subtests.test(one=one, other=other):
            assert not joined((one, ""), (other, ""))
            assert not joined((one, "mesh:1"), (other, "mesh:1"))


def test_third_name_does_not_join_different_letters() -> None:
    family = [(name, "mesh:1") for name in ("alpha-tubulin", "TUB", "beta-tubulin")]
    alpha, third, beta = clusters(*family)
    assert alpha != beta
    assert third in (alpha, beta)


def test_unrelated_names_of_a_concept_are_joined_despite_numbers() -> None:
    assert joined(("PD-1", "mesh:1"), ("CD279", "mesh:1"))


def test_roman_and_arabic_numbers_are_equal() -> None:
    assert joined(("type II diabetes", "mesh:1"), ("type 2 diabetes", "mesh:1"))


def test_concepts_with_equal_spelling_are_not_joined() -> None:
    assert not joined(("CAT", "mesh:1"), ("cat", "mesh:2"))


LONG = "epidermal growth factor receptor"


def test_abbreviation_is_joined_to_its_long_form() -> None:
    assert joined(("EGFR", "kw:1"), (LONG, "mesh:1"), definitions=(("EGFR", LONG),))


def test_ambiguous_abbreviation_is_not_joined() -> None:
    two = (("ALS", "amyotrophic lateral sclerosis"), ("ALS", "advanced life support"))
    names = [("ALS", ""), *((long, "") for _, long in two)]
    assert not joined(*names, definitions=two)


def test_spellings_of_a_long_form_are_not_ambiguous() -> None:
    twice = (("EGFR", LONG), ("EGFR", LONG.title()))
    assert joined(("EGFR", ""), (LONG, ""), definitions=twice)


def test_abbreviation_of_synonyms_is_joined() -> None:
    two = (("T2D", "type 2 diabetes"), ("T2D", "type 2 diabetes mellitus"))
    names = [(long, "mesh:1") for _, long in two]
    assert joined(("T2D", ""), *names, definitions=two)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("SARS-CoV", "severe acute respiratory syndrome coronavirus 2"),
        ("TNF", "tumor necrosis factor alpha"),
    ],
)
def test_abbreviation_without_the_number_is_not_joined(short: str, long: str) -> None:
    assert not joined((short, ""), (long, ""), definitions=((short, long),))
