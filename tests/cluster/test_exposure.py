"""Exposure of sources to retractions, and the articles in doubt of a segment."""

from __future__ import annotations

import numpy as np
import pytest

from cluster.arrow_records import citations_to_table
from cluster.exposure import (
    ExposedSource,
    Exposure,
    Knockout,
    exposure_words,
    find_exposure,
    join_exposures,
    source_words,
)
from cluster.index.filters.find_doubts import find_doubts
from cluster.records import Link
from tests.small_index import citation

R, D = "retracted", "expression of concern"


def test_own_state_and_cited_articles_expose_a_source() -> None:
    cited = {1: (7, 8, 9), 2: (2, 5), 3: None, 4: ()}
    found = find_exposure([1, 2, 3, 4, 1], cited, {7: R, 9: D, 2: D})
    assert (found.sources, found.unknown) == ((1, 2, 3, 4), (3,))
    assert found.exposed == (ExposedSource(1, "", (7,), (9,)), ExposedSource(2, D))


@pytest.mark.parametrize(
    ("exposure", "said"),
    [
        (None, ""),
        (Exposure((1, 2)), ""),
        (Exposure((1,), (1,)), "Exposure to retractions is unknown: this index has no references"),
        (Exposure((1,), (), (ExposedSource(1, D),)), "The only source is under an expression of"),
        (
            Exposure((1, 2, 3), (), (ExposedSource(1, R), ExposedSource(2, R))),
            "2 of 3 sources are retracted (PMID 1, 2).",
        ),
        (
            Exposure(
                tuple(range(1, 7)),
                (),
                (ExposedSource(1, retracted=(9,)), ExposedSource(2, retracted=(9,))),
                Knockout("not enough evidence", "yes", False),
            ),
            "2 of 6 sources cite 1 retracted article (PMID 9). "
            "Without these sources, the answer changes to not enough evidence.",
        ),
        (
            Exposure(
                (1, 2), (2,), (ExposedSource(1, "", (), (8, 9)),), Knockout("yes", "yes", True)
            ),
            "1 of 2 sources cites 2 articles under an expression of concern (PMID 8, 9). Without "
            "this source, the answer is still yes. The references of 1 of 2 sources are unknown.",
        ),
    ],
)
def test_exposure_is_described_in_sentences(exposure: Exposure | None, said: str) -> None:
    assert " ".join(exposure_words(exposure)).startswith(said)
    assert bool(exposure_words(exposure)) == bool(said)


def test_mark_of_a_source_names_a_few_articles() -> None:
    source = ExposedSource(1, R, tuple(range(10, 17)))
    said = "Cites 7 retracted articles (PMID 10, 11, 12, 13, 14 and 2 more)."
    assert source_words(source) == f"Is retracted. {said}"


def test_parts_are_joined_without_a_decision() -> None:
    source = ExposedSource(1, R)
    one = Exposure((1, 2), (2,), (source,), Knockout("yes", "yes", True))
    assert join_exposures([one, None, Exposure((3, 1), (), (source,))]) == Exposure(
        (1, 2, 3), (2,), (source,)
    )
    assert join_exposures([None]) is None


def test_articles_in_doubt_are_those_of_live_records() -> None:
    kinds = ("RetractionOf", "RetractedandRepublishedFrom", "ExpressionOfConcernFor", "ErratumFor")
    notices = [Link(kind, 50 + n, "") for n, kind in enumerate(kinds)]
    records = [
        citation(1, "Retracted.", links=(Link("RetractionIn", 2, ""),)),
        citation(2, "Notice.", links=(*notices, Link("RetractionOf", None, "A book"))),
        citation(3, "Doubted.", links=(Link("ExpressionOfConcernIn", None, ""),)),
        citation(4, "Notice.", links=(Link("ExpressionOfConcernFor", 50, ""),)),
    ]
    table = citations_to_table(records)
    found = find_doubts(
        np.array([1, 2, 3, 4]), np.array([True, False, False, False]), table.column("links")
    )
    asked = np.arange(60)
    assert found.among(asked) == {1: True, 3: False, 50: True, 51: True, 52: False}
    assert found.among(np.array([51, 4])) == {51: True}
    # A newer segment has the records of PMIDs 1 and 2.
    assert found.without(np.array([0, 1])).among(asked) == {3: False, 50: False}
