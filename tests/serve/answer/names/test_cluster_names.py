"""Mentions of one thing are joined, and those of things that are only alike never are."""

from __future__ import annotations

import pytest

from cluster.records import Entity
from serve.answer.names.cluster_names import cluster_names, spelling
from serve.answer.names.group_names import usual_first

Name = tuple[str, str]


def mention(text: str, concept: str = "") -> Name:
    return text, concept


def clusters(*names: Name, definitions: tuple[tuple[str, str], ...] = ()) -> list[int]:
    known = dict(names)

    def recognise(text: str) -> list[Entity]:
        return [Entity(text, 0, len(text), known[text], "thing")] if known[text] else []

    return cluster_names([text for text, _ in names], definitions, recognise)


def joined(*names: Name, definitions: tuple[tuple[str, str], ...] = ()) -> bool:
    """Whether all are in one cluster; they are in as many as there are, or in one."""
    count = len(set(clusters(*names, definitions=definitions)))
    assert count in (1, len(names))
    return count == 1


def test_mentions_of_one_concept_are_one() -> None:
    assert joined(mention("heart attack", "mesh:1"), mention("myocardial infarction", "mesh:1"))


def test_spellings_of_one_name_are_one_without_any_vocabulary(subtests: pytest.Subtests) -> None:
    for one, other in [
        ("IL-6", "IL6"),
        ("IL\u20116", "il 6"),
        ("TNF-\u03b1", "TNF alpha"),
        ("TNF\u03b1", "TNFalpha"),
        ("statin", "Statins"),
        ("Crohn's disease", "Crohn disease"),
    ]:
        with subtests.test(one=one, other=other):
            assert joined(mention(one), mention(other))


def test_a_number_or_letter_keeps_apart_even_what_is_linked_to_one_concept(
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
            assert not joined(mention(one), mention(other))
            assert not joined(mention(one, "mesh:1"), mention(other, "mesh:1"))


def test_what_is_kept_apart_is_not_joined_by_way_of_a_third_name() -> None:
    family = [mention(name, "mesh:1") for name in ("alpha-tubulin", "TUB", "beta-tubulin")]
    alpha, third, beta = clusters(*family)
    assert alpha != beta
    assert third in (alpha, beta)


def test_other_numbers_in_other_names_of_one_concept_do_not_matter() -> None:
    assert joined(mention("PD-1", "mesh:1"), mention("CD279", "mesh:1"))


def test_roman_and_arabic_numbers_are_the_same_number() -> None:
    assert joined(mention("type II diabetes", "mesh:1"), mention("type 2 diabetes", "mesh:1"))


def test_two_concepts_of_one_spelling_stay_two() -> None:
    assert not joined(mention("CAT", "mesh:1"), mention("cat", "mesh:2"))


LONG = "epidermal growth factor receptor"


def test_a_short_form_is_its_long_form_wherever_they_stand() -> None:
    assert joined(mention("EGFR", "kw:1"), mention(LONG, "mesh:1"), definitions=(("EGFR", LONG),))


def test_a_short_form_of_two_long_forms_is_neither() -> None:
    two = (("ALS", "amyotrophic lateral sclerosis"), ("ALS", "advanced life support"))
    names = [mention("ALS"), *(mention(long) for _, long in two)]
    assert not joined(*names, definitions=two)


def test_a_long_form_defined_in_two_spellings_is_one_long_form() -> None:
    twice = (("EGFR", LONG), ("EGFR", LONG.title()))
    assert joined(mention("EGFR"), mention(LONG), definitions=twice)


def test_a_short_form_of_two_names_of_one_concept_is_that_concept() -> None:
    two = (("T2D", "type 2 diabetes"), ("T2D", "type 2 diabetes mellitus"))
    names = [mention(long, "mesh:1") for _, long in two]
    assert joined(mention("T2D"), *names, definitions=two)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("SARS-CoV", "severe acute respiratory syndrome coronavirus 2"),
        ("TNF", "tumor necrosis factor alpha"),
    ],
)
def test_a_short_form_that_lacks_the_number_or_letter_is_another_thing(
    short: str, long: str
) -> None:
    assert not joined(mention(short), mention(long), definitions=((short, long),))


def test_no_names_make_no_clusters() -> None:
    assert clusters() == []


def test_the_most_usual_name_comes_first_then_the_earlier() -> None:
    assert usual_first(["b", "a", "C", "c", "c"]) == ["C", "b", "a"]


def test_gaps_between_numbers_are_kept_in_a_spelling() -> None:
    assert spelling("IL-1 2") != spelling("IL-12")
