from __future__ import annotations

import pytest

from serve.support.compare_wording import coverage, numbers_agree, read_wording


def test_numbers_and_units_of_a_sentence_must_stand_in_its_source(
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


def test_coverage_counts_inflected_words_as_held() -> None:
    said, source = "Inhibitors reduce tumours.", "An inhibitor reduced the tumour."
    assert coverage(read_wording(said), read_wording(source)) == 1.0


def test_missing_name_weighs_double() -> None:
    # "BRCA1" (2), "causes" (1), "cancer" (1): the words alone are 2 of 4.
    said, source = "BRCA1 causes cancer.", "TP53 causes cancer."
    assert coverage(read_wording(said), read_wording(source)) == 0.5


def test_hyphenated_word_is_held_by_its_parts() -> None:
    assert coverage(read_wording("heart-failure"), read_wording("failure of the heart")) == 1.0


@pytest.mark.parametrize("long", ["amyotrophic lateral sclerosis", "chronic kidney disease"])
def test_an_abbreviation_is_held_by_its_words_and_the_other_way_round(long: str) -> None:
    short = "".join(word[0] for word in long.split()).upper()
    assert coverage(read_wording(long), read_wording(f"{short} was rare.")) == 1.0
    assert coverage(read_wording(short), read_wording(f"{long} was rare.")) == 1.0


def test_sentence_of_function_words_covers_nothing() -> None:
    assert coverage(read_wording("It is that."), read_wording("It is that.")) == 0.0


def test_a_text_without_a_word_has_no_wording(subtests: pytest.Subtests) -> None:
    for text in ["", "?!", "…", "\u200b"]:
        with subtests.test(text=text):
            assert read_wording(text).words == {}
