from __future__ import annotations

import pytest

from serve.support.compare_wording import coverage, numbers_agree, read_wording


def test_numbers_agree_compares_numbers_and_units() -> None:
    agree = {
        ("It fell by 30%.", "It fell by 30 percent."): True,
        ("It fell by 30%.", "It fell by 30 per cent."): True,
        ("It fell by 30%.", "It fell by 3%."): False,
        ("It fell by 30%.", "It fell by 30 mg."): False,
        ("It took 12 months.", "It took twelve months."): True,
        ("It took 12 months.", "It took 12 weeks."): False,
        ("A dose of 5 mg.", "A dose of 5 µg."): False,
        ("A dose of 5 ug.", "A dose of 5 μg."): True,
        ("In 1,250 patients.", "In 1250 patients."): True,
        ("A ratio of 0.5.", "A ratio of 0.55."): False,
        ("The 30 patients.", "A dose of 30 mg in 30 patients."): True,
        ("Found in 30.", "Found in 30 mg."): True,
        ("GLP-1 rises.", "It rises."): True,
        ("It rises.", "It rises by 5%."): True,
    }
    found = {pair: numbers_agree(*map(read_wording, pair)) for pair in agree}
    assert found == agree


@pytest.mark.parametrize(
    ("said", "source", "share"),
    [
        ("Inhibitors reduce tumours.", "An inhibitor reduced the tumour.", 1.0),
        # "BRCA1" counts 2, "causes" 1 and "cancer" 1, so the two words are 2 of 4.
        ("BRCA1 causes cancer.", "TP53 causes cancer.", 0.5),
        ("heart-failure", "failure of the heart", 1.0),
        ("amyotrophic lateral sclerosis", "ALS was rare.", 1.0),
        ("CKD", "chronic kidney disease was rare.", 1.0),
        ("It is that.", "It is that.", 0.0),
    ],
)
def test_coverage_is_the_share_of_content_words(said: str, source: str, share: float) -> None:
    assert coverage(read_wording(said), read_wording(source)) == share


def test_read_wording_of_text_without_words_is_empty() -> None:
    assert [read_wording(text).words for text in ("", "?!", "…", "\u200b")] == [{}] * 4
