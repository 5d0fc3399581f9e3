from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.answers import Evidence
from serve.support.attribute_sentences import ReaderSupport, SimilaritySupport
from serve.support.ground_sentences import Grounds, contrary_query, ground_sentence
from serve.support.weigh_evidence import Thresholds
from tests.serve.answering import WordReader, encode, passage

CLAIM = "Aspirin is safe in pregnancy."
SAFE = "Aspirin was safe in pregnancy."
NOT_SAFE = "Aspirin was not safe in pregnancy."


def said(text: str, pmid: int) -> Evidence:
    return Evidence(passage(text, pmid))


MANY = [*(said(SAFE, n) for n in range(1, 6)), *(said(NOT_SAFE, n) for n in range(7, 11))]


@pytest.mark.parametrize(
    ("found", "by_words", "existing", "grounds"),
    [
        ((said(SAFE, 1), said("Cats sleep.", 2), said(NOT_SAFE, 3)), (), (), Grounds((1,), (3,))),
        # The contrary search finds more.
        ((said(SAFE, 1),), (said(NOT_SAFE, 4),), (), Grounds((1,), (4,))),
        ((said(SAFE, 1), said(SAFE, 2), said(NOT_SAFE, 3)), (), (1, 3), Grounds((2,), ())),
        (MANY, (), (), Grounds((1, 2, 3), (7, 8, 9))),
        ((said(SAFE, 1), Evidence(passage(NOT_SAFE, 1, begin=90))), (), (), Grounds((), ())),
    ],
    ids=["sides", "contrary search", "existing PMIDs", "three per side", "both sides"],
)
def test_sentence_is_grounded_by_sides(
    found: Sequence[Evidence],
    by_words: Sequence[Evidence],
    existing: Sequence[int],
    grounds: Grounds,
) -> None:
    scorer = ReaderSupport(SimilaritySupport(encode), WordReader().read)
    limits = Thresholds(0.5, 0.5)
    searches = (lambda _: found, lambda _: by_words)
    assert ground_sentence(CLAIM, existing, *searches, scorer, limits) == grounds


def test_contrary_query_is_searched_by_words() -> None:
    asked: list[str] = []

    def by_words(text: str) -> list[Evidence]:
        asked.append(text)
        return []

    scorer = SimilaritySupport(encode)
    ground_sentence(CLAIM, (), lambda _: [], by_words, scorer, Thresholds())
    assert asked == [contrary_query(CLAIM)]
    assert asked[0].startswith(f"{CLAIM.rstrip('.')} no effect")
