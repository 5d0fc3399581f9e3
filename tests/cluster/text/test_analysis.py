"""BM25 terms: cached words must give the terms of the analyser for the whole text."""

import random

import pytest

from cluster.text import analysis
from cluster.text.analysis import ANALYSER, Analyser, analyse
from cluster.text.folding import fold_letters

SCRIPTS = ((32, 127), (0x80, 0x3000), (0x3000, 0xD7FF), (0x10000, 0x1F000))
GAPS = (0x20, 0x09, 0x1C, 0x85, 0xA0, 0x200B)


def whole(text: str) -> list[str]:
    return list(analysis._stems().analyze(fold_letters(text)))


def random_text(rng: random.Random) -> str:
    return "".join(
        chr(rng.randrange(*rng.choice(SCRIPTS)) if rng.random() < 0.8 else rng.choice(GAPS))
        for _ in range(rng.randrange(60))
    )


def test_analyser_lowers_stems_and_filters() -> None:
    text = f"The Cells, inhibiting IL-6 in \u03b2-Catenin {'acgt' * 20}"
    assert analyse(text) == ["cell", "inhibit", "il", "6", "\u03b2", "catenin"]
    assert analyse("Xarelto\u2122, \uff24\uff2e\uff21\uff0c\uff32") == ["xarelto", "dna", "r"]
    assert ANALYSER.join_terms(text) == " cell inhibit il 6 \u03b2 catenin"


def test_cached_words_equal_analysis_of_the_whole_text() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        text = random_text(rng)
        assert analyse(text) == whole(text)


OLD = Analyser("simple-lower-english-stop-stem-1")


def test_old_analyser_keeps_the_forms_of_its_indexes() -> None:
    assert OLD.terms("Sj\u00f6gren Sjo\u0308gren \ufb01brin") == [
        "sj\u00f6gren",
        "sjo",
        "gren",
        "\ufb01brin",
    ]


def test_analysers_agree_on_ascii() -> None:
    rng = random.Random(1)
    for _ in range(500):
        text = "".join(chr(rng.randrange(128)) for _ in range(80))
        assert OLD.terms(text) == ANALYSER.terms(text)


def test_unknown_analyser_is_refused() -> None:
    with pytest.raises(ValueError, match="latin-0: no such analyser"):
        Analyser("latin-0")


def test_full_word_cache_changes_nothing(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(analysis, "_CACHED_WORDS", 3)
    text = "one gene, two cells, three genes, four tumours and one cell more"
    assert [analyse(text), analyse(text)] == [whole(text)] * 2


def test_letters_are_folded_to_one_form() -> None:
    for given, folded in {
        "S\u00f8rensen \u0141ucja \u0110or\u0111e": "sorensen lucja dorde",
        "\u00deo\u0301r\u00f0ur \u00c6 \u0153 \u0131\u0130 \u0126": "thordur ae oe ii h",
        "Sjo\u0308gren Sj\u00f6gren stra\u00dfe": "sjogren sjogren strasse",
        "5 \u00b5M 5 \u03bcM": "5 \u03bcm 5 \u03bcm",
        "\ufb01brin CO\u2082 \uff24\uff2e\uff21 \U0001d4b3": "fibrin co2 dna x",
        "Drug\u2122 1\u2103": "drug\u2122 1\u2103",
        "\u0645\u062b\u0627\u0644 \uac00": "\u0645\u062b\u0627\u0644 \uac00",
    }.items():
        assert fold_letters(given) == folded
