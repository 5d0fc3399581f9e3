"""Random citations with characters and values that are difficult in reference formats."""

from __future__ import annotations

import random

from cluster.records import Author, Chemical, Citation, Link, MeshHeading, OtherAbstract, Section

WORDS = [
    "metformin", "AMPK", "β-amyloid", "Ångström", "naïve", "β₂", "p<0.05", "5%", "A&B", "{curly",
    "brace}", "{both}", "x_y", "#1", "$5", "~7", "2^3", "back\\slash", '"quoted"', "''twice''",
    "`tick`", "--", "---", "TY  - JOUR", "ER  -", "@article{x,", "糖尿病", "Здоровье", "سكر", "😀",
    "and", "others", "=SUM(1)", "mRNA", "a;b", "1,274", "[in", "brackets].", "é",
]  # fmt: skip
LASTS = ["Halpern", "van der Berg", "O'Neill", "Müller-Łukasz", "de la Cruz", "王", "Smith & Co"]
FORES = ["Scott D", "Éva", "Wei-Min", "Martin Luther", "J Robert", "Anna and Maria"]
SUFFIXES = ["", "", "", "Jr", "3rd"]
GROUPS = [
    "WHO, Geneva", "Diabetes Prevention Program and Friends", "{Braced} & Group 5%", "ATTR-ACT",
]  # fmt: skip
PAGES = [
    "123-8", "e1001", "284-287", "S93-9", "iii-v", "1-10", "", "17", "1151-68; discussion 1149-50",
]  # fmt: skip
KINDS = ["RetractionIn", "ErratumIn", "CommentOn", "ExpressionOfConcernIn", "AssociatedDataset"]


def generated_citations(count: int = 1000) -> list[Citation]:
    rng = random.Random(24)
    return [_citation(rng, 10_000_000 + number) for number in range(count)]


def _text(rng: random.Random, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, most)))


def _maybe(rng: random.Random, text: str) -> str:
    return text if rng.random() < 0.8 else ""


def _author(rng: random.Random) -> Author:
    kind = rng.random()
    if kind < 0.15:
        return Author(collective=rng.choice(GROUPS))
    if kind < 0.2:
        return Author(last="Plato")
    if kind < 0.25:
        return Author(last="Doe", initials="JB")
    fore, suffix = rng.choice(FORES), rng.choice(SUFFIXES)
    initials = "".join(word[0] for word in fore.split())
    return Author(rng.choice(LASTS), f"{fore} {suffix}".strip(), f"{initials} {suffix}".strip())


def _citation(rng: random.Random, pmid: int) -> Citation:
    labels = rng.choice([[""], ["BACKGROUND", "METHODS"], []])
    year = rng.choice([None, 1999, 2024])
    return Citation(
        pmid=pmid,
        title=_text(rng, 9) if rng.random() < 0.95 else "",
        sections=tuple(Section(label, _text(rng, 14)) for label in labels),
        other_abstracts=(OtherAbstract("spa", "Publisher", (Section("", _text(rng, 9)),)),)
        if rng.random() < 0.2
        else (),
        authors=tuple(_author(rng) for _ in range(rng.choice([0, 1, 3, 7]))),
        journal=_maybe(rng, "The Journal of " + _text(rng, 3)),
        journal_abbreviation=_maybe(rng, "J. " + _text(rng, 2)),
        volume=_maybe(rng, rng.choice(["12", "42 Suppl 2", "(5)", "12_A"])),
        issue=_maybe(rng, rng.choice(["3", "1-2", "12 Suppl 7"])),
        pages=rng.choice(PAGES),
        year=year,
        month=rng.choice([None, 1, 12]) if year else None,
        languages=tuple(rng.choice([["eng"], ["fre", "eng"], []])),
        publication_types=tuple(rng.sample(["Review", "Journal Article", "Letter"], 2)),
        mesh=tuple(
            MeshHeading(f"D{n}", f"{_text(rng, 2)} {n}, Type 2", rng.random() < 0.5)
            for n in range(rng.randint(0, 4))
        ),
        chemicals=(Chemical("D1", "Metformin"),) if rng.random() < 0.3 else (),
        keywords=tuple(f"{_text(rng, 2)} k{n}" for n in range(rng.randint(0, 3))),
        doi=_maybe(rng, f"10.1002/(SICI)1097_{pmid}<1::AID-X>3.0.CO;2-#"),
        pmcid=_maybe(rng, f"PMC{pmid}"),
        links=tuple(Link(kind, pmid + 1, _text(rng, 4)) for kind in rng.sample(KINDS, 1))
        if rng.random() < 0.3
        else (),
    )  # fmt: skip
