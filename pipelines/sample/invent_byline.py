"""Invented authors and page numbers for citations that describe no real article."""

from __future__ import annotations

import random

from cluster.records import Author

_LAST_NAMES = (
    *("Abernethy", "Bellweather", "Castellane", "Dunmarrow", "Eskilden", "Farrowby", "Gullestad"),
    *("Hollowell", "Ibarrondo", "Jansoone", "Kirkwell", "Lindqvist-Moe", "Marchetto", "Nakagome"),
    *("O'Tarrow", "Pellegrain", "Quillfeather", "Rosenvinge", "Søndergård", "Tamburlane"),
    *("Uhlenbeck-Roy", "Van den Hoeve", "Wetherspoor", "Xanthakis", "Ystgård", "Zubizarra"),
)
_FORE_NAMES = (
    *("Ada", "Ben", "Carla", "David", "Esra", "Feng", "Greta", "Hana", "Ivo", "Jun", "Karin"),
    *("Léa", "Mei", "Noor", "Olga", "Pablo", "Quentin", "Rosa", "Samir", "Tomás", "Uma", "Yuki"),
)
_MIDDLE_INITIALS = "ABCDEFGHJKLMNPRSTW"
_FIRST_PAGES = 2000


def invent_authors(rng: random.Random, count: int) -> tuple[Author, ...]:
    """Return `count` different people (at most 26), about half of them with a middle initial."""
    return tuple(_author(rng, last) for last in rng.sample(_LAST_NAMES, count))


def _author(rng: random.Random, last: str) -> Author:
    fore = rng.choice(_FORE_NAMES)
    if rng.random() < 0.5:
        return Author(last, fore, fore[0])
    middle = rng.choice(_MIDDLE_INITIALS)
    return Author(last, f"{fore} {middle}", fore[0] + middle)


def invent_pages(rng: random.Random) -> str:
    """Return a range of 2 to 15 pages; the end omits leading digits shared with the start."""
    begin = rng.randint(1, _FIRST_PAGES)
    first, last = str(begin), str(begin + rng.randint(1, 14))
    if len(first) < len(last):
        return f"{first}-{last}"
    shared = next(at for at in range(len(first)) if first[at] != last[at])
    return f"{first}-{last[shared:]}"
