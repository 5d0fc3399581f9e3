from __future__ import annotations

import pytest

from serve.support.compare_wording import coverage, numbers_agree, read_wording


def test_numbers_agree_compares_numbers_and_units(
    subtests: pytest.Subtests,
) -> None:
    for said, source, agree in [
        ("It fell by 30%.", "It fell by 30 percent.", True),
        ("It fell by 30%.", "It fell by 30 per cent.", True),
        ("It fell by 30%.", "It fell by 3%.", False),
        ("It fell by 30%.", "It fell by 30 mg.", False),
        ("It took 12 months.", "It took twelve months.", True),
        ("It took 12 months.", "It took 12 weeks.", False),
        ("A dose of 5 mg.", "A dose of 5 µg.", False),
        ("A dose of 5 ug.", "A dose of 5 μg.", True),
        ("In 1,250 patients.", "In 1250 patients.", True),
        ("A ratio of 0.5.", "A ratio of 0.55.", False),
        ("The 30 patients.", "A dose of 30 mg in 30 patients.", True),
        ("Found in 30.", "Found in 30 mg.", True),
        ("GLP-1 rises.", "It rises.", True),
        ("It rises.", "It rises by 5%.", True),
    ]:
        with subtests.test(said=said, source=source):
            assert numbers_agree(read_wording(said), read_wording(source)) is agree


def test_coverage_ignores_inflection() -> None:
    said, source = "Inhibitors reduce tumours.", "An inhibitor reduced the tumour."
    assert coverage(read_wording(said), read_wording(source)) == 1.0


def test_coverage_weights_names_double() -> None:
    # "BRCA1" counts 2, "causes" 1 and "cancer" 1, so the two words are 2 of 4.
    said, source = "BRCA1 causes cancer.", "TP53 causes cancer."
    assert coverage(read_wording(said), read_wording(source)) == 0.5


def test_coverage_accepts_parts_of_a_hyphenated_word() -> None:
    assert coverage(read_wording("heart-failure"), read_wording("failure of the heart")) == 1.0


@pytest.mark.parametrize("long", ["amyotrophic lateral sclerosis", "chronic kidney disease"])
def test_coverage_accepts_abbreviations_and_their_words(long: str) -> None:
    short = "".join(word[0] for word in long.split()).upper()
    assert coverage(read_wording(long), read_wording(f"{short} was rare.")) == 1.0
    assert coverage(read_wording(short), read_wording(f"{long} was rare.")) == 1.0


def test_coverage_of_function_words_is_zero() -> None:
    assert coverage(read_wording("It is that."), read_wording("It is that.")) == 0.0


def test_read_wording_of_text_without_words_is_empty(subtests: pytest.Subtests) -> None:
    for text in ["", "?!", "…", "\u200b"]:
        with subtests.test(text=text):
            assert read_wording(text).words == {}
