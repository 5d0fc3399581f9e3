"""What a sentence claims of a treatment needs a word of that kind in a source."""

from __future__ import annotations

import pytest

from serve.support.check_claims import added_claims

TRIAL = "Tolvexan: a phase 2 trial. Tolvexan lowered migraine days in 212 adults over 12 weeks."
MICE = "Tolvexan in migraine models. Tolvexan reduced CGRP release in mice by 40%."
LINK = "Coffee and gout. Coffee intake was inversely associated with gout in a cohort of nurses."


def test_a_claim_that_no_source_makes_is_told(subtests: pytest.Subtests) -> None:
    for said, source, kind in [
        ("Tolvexan is approved for migraine.", TRIAL, "approval"),
        ("Tolvexan is licensed in Europe for migraine.", TRIAL, "approval"),
        ("Tolvexan is recommended for adults with migraine.", TRIAL, "advice"),
        ("Tolvexan is a first-line treatment of migraine.", TRIAL, "advice"),
        ("Tolvexan should be used for migraine.", TRIAL, "advice"),
        ("Tolvexan is safe and lowers migraine days.", TRIAL, "safety"),
        ("Tolvexan was well tolerated.", TRIAL, "safety"),
        ("Tolvexan is contraindicated in migraine.", TRIAL, "ban"),
        ("Tolvexan cures migraine.", TRIAL, "cure"),
        ("Tolvexan is proven to lower migraine days.", TRIAL, "proof"),
        ("Tolvexan always lowers migraine days.", TRIAL, "without exception"),
        ("Coffee causes less gout.", LINK, "cause"),
        ("Tolvexan reduced CGRP release in patients.", MICE, "people"),
        ("Tolvexan reduced CGRP release in humans by 40%.", MICE, "people"),
    ]:
        with subtests.test(said=said, source=source):
            assert added_claims(said, [source]) == [kind]


def test_a_claim_in_other_words_of_its_kind_is_borne(subtests: pytest.Subtests) -> None:
    for said, source in [
        ("Tolvexan is approved for migraine.", "The FDA's approval of tolvexan came in 2031."),
        ("Tolvexan is a first-line treatment.", "Guidelines recommend tolvexan first."),
        ("Tolvexan is safe.", "No adverse events occurred with tolvexan."),
        ("Tolvexan lowered migraine days in patients.", TRIAL),
        ("Mutations of ABC1 cause gout.", "Pathogenic variants of ABC1 were found in gout."),
        ("Tolvexan reduced CGRP release in mice.", MICE),
    ]:
        with subtests.test(said=said, source=source):
            assert added_claims(said, [source]) == []


def test_what_a_source_only_asks_bears_no_claim() -> None:
    source = "We asked whether tolvexan is safe. Migraine days fell."

    assert added_claims("Tolvexan is safe.", [source]) == ["safety"]
