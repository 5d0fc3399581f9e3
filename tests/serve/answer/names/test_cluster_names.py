from __future__ import annotations

from cluster.records import Entity
from serve.answer.names.cluster_names import cluster_names

Name = tuple[str, str]


def clusters(*names: Name, known: tuple[Name, ...] = ()) -> list[int]:
    concepts = dict(names)

    def recognise(text: str) -> list[Entity]:
        return [Entity(text, 0, len(text), concepts[text], "thing")] if concepts[text] else []

    return cluster_names([text for text, _ in names], known, recognise)


def joined(*names: Name, known: tuple[Name, ...] = ()) -> bool:
    """Return whether all names are in one cluster; otherwise each must be in its own."""
    count = len(set(clusters(*names, known=known)))
    assert count in (1, len(names))
    return count == 1


LONG = "epidermal growth factor receptor"
T2D, T2DM = "type 2 diabetes", "type 2 diabetes mellitus"
SARS = ("SARS-CoV", "severe acute respiratory syndrome coronavirus 2")
TNF = ("TNF", "tumor necrosis factor alpha")
ALS = (("ALS", "amyotrophic lateral sclerosis"), ("ALS", "advanced life support"))
# Names with their concepts, and abbreviations with their long forms.
JOINED: dict[str, tuple[list[Name], tuple[Name, ...]]] = {
    "mentions of a concept": ([("heart attack", "m:1"), ("myocardial infarction", "m:1")], ()),
    "unrelated names, despite a number": ([("PD-1", "m:1"), ("CD279", "m:1")], ()),
    "roman and arabic numbers": ([("type II diabetes", "m:1"), (T2D, "m:1")], ()),
    "a long form": ([("EGFR", "kw:1"), (LONG, "m:1")], (("EGFR", LONG),)),
    "spellings of it": ([("EGFR", ""), (LONG, "")], (("EGFR", LONG), ("EGFR", LONG.title()))),
    "synonyms": ([("T2D", ""), (T2D, "m:1"), (T2DM, "m:1")], (("T2D", T2D), ("T2D", T2DM))),
}
APART: dict[str, tuple[list[Name], tuple[Name, ...]]] = {
    "concepts with equal spelling": ([("CAT", "m:1"), ("cat", "m:2")], ()),
    "an ambiguous abbreviation": ([("ALS", ""), *((long, "") for _, long in ALS)], ALS),
    "an abbreviation without the number": ([(SARS[0], ""), (SARS[1], "")], (SARS,)),
    "an abbreviation without the letter": ([(TNF[0], ""), (TNF[1], "")], (TNF,)),
}


def test_names_are_joined_only_if_they_mean_the_same_concept() -> None:
    assert [why for why, (names, known) in JOINED.items() if not joined(*names, known=known)] == []
    assert [why for why, (names, known) in APART.items() if joined(*names, known=known)] == []


def test_spellings_of_a_name_are_joined() -> None:
    for one, other in [
        ("IL-6", "IL6"),
        ("IL\u20116", "il 6"),
        ("TNF-\u03b1", "TNF alpha"),
        ("TNF\u03b1", "TNFalpha"),
        ("statin", "Statins"),
        ("Crohn's disease", "Crohn disease"),
    ]:
        assert joined((one, ""), (other, "")), (one, other)


def test_different_numbers_or_letters_are_not_joined() -> None:
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
        for concept in ("", "mesh:1"):
            assert not joined((one, concept), (other, concept)), (one, other)


def test_third_name_does_not_join_different_letters() -> None:
    family = [(name, "mesh:1") for name in ("alpha-tubulin", "TUB", "beta-tubulin")]
    alpha, third, beta = clusters(*family)
    assert alpha != beta
    assert third in (alpha, beta)
