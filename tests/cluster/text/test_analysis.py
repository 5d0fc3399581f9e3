"""BM25 terms: cached words must give the terms of the analyser for the whole text."""

import random

from cluster.text import analysis
from cluster.text.analysis import analyse, analyse_joined

SCRIPTS = ((32, 127), (0x80, 0x3000), (0x3000, 0xD7FF), (0x10000, 0x1F000))
GAPS = (0x20, 0x09, 0x1C, 0x85, 0xA0, 0x200B)


def whole(text: str) -> list[str]:
    return list(analysis._analyser().analyze(text))


def random_text(rng: random.Random) -> str:
    return "".join(
        chr(rng.randrange(*rng.choice(SCRIPTS)) if rng.random() < 0.8 else rng.choice(GAPS))
        for _ in range(rng.randrange(60))
    )


def test_analyser_lowers_stems_and_filters() -> None:
    text = f"The Cells, inhibiting IL-6 in \u03b2-Catenin {'acgt' * 20}"
    assert analyse(text) == ["cell", "inhibit", "il", "6", "\u03b2", "catenin"]
    assert analyse_joined(text) == " cell inhibit il 6 \u03b2 catenin"


def test_cached_words_equal_analysis_of_the_whole_text() -> None:
    rng = random.Random(0)
    for _ in range(2000):
        text = random_text(rng)
        assert analyse(text) == whole(text)


def test_full_word_cache_changes_nothing(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(analysis, "_CACHED_WORDS", 3)
    text = "one gene, two cells, three genes, four tumours and one cell more"
    assert [analyse(text), analyse(text)] == [whole(text)] * 2
