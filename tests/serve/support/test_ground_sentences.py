from __future__ import annotations

from collections.abc import Sequence

from cluster.answers import Evidence
from serve.support.attribute_sentences import ReaderSupport, SimilaritySupport
from serve.support.ground_sentences import Grounds, contrary_query, ground_sentence
from serve.support.weigh_evidence import Thresholds
from tests.serve.answering import WordReader, encode, passage

CLAIM = "Aspirin is safe in pregnancy."
SAFE = "Aspirin was safe in pregnancy."
NOT_SAFE = "Aspirin was not safe in pregnancy."


def ground(
    found: Sequence[Evidence], by_words: Sequence[Evidence] = (), existing: Sequence[int] = ()
) -> Grounds:
    return ground_sentence(
        CLAIM,
        existing,
        lambda _: found,
        lambda _: by_words,
        ReaderSupport(SimilaritySupport(encode), WordReader().read),
        Thresholds(0.5, 0.5),
    )


def said(text: str, pmid: int) -> Evidence:
    return Evidence(passage(text, pmid))


def test_ground_sentence_separates_sides() -> None:
    found = ground([said(SAFE, 1), said("Cats sleep all day.", 2), said(NOT_SAFE, 3)])
    assert found == Grounds((1,), (3,))


def test_ground_sentence_uses_the_contrary_search() -> None:
    assert ground([said(SAFE, 1)], [said(NOT_SAFE, 4)]) == Grounds((1,), (4,))


def test_contrary_query_is_searched_by_words() -> None:
    asked: list[str] = []

    def by_words(text: str) -> list[Evidence]:
        asked.append(text)
        return []

    scorer = SimilaritySupport(encode)
    ground_sentence(CLAIM, (), lambda _: [], by_words, scorer, Thresholds())
    assert asked == [contrary_query(CLAIM)]
    assert asked[0].startswith(f"{CLAIM.rstrip('.')} no effect")


def test_existing_pmids_are_left_out() -> None:
    items = [said(SAFE, 1), said(SAFE, 2), said(NOT_SAFE, 3)]
    assert ground(items, existing=(1, 3)) == Grounds((2,), ())


def test_at_most_three_pmids_per_side() -> None:
    found = ground(
        [said(SAFE, n) for n in range(1, 6)] + [said(NOT_SAFE, n) for n in (7, 8, 9, 10)]
    )
    assert found == Grounds((1, 2, 3), (7, 8, 9))


def test_citation_on_both_sides_is_left_out() -> None:
    assert ground([said(SAFE, 1), Evidence(passage(NOT_SAFE, 1, begin=90))]) == Grounds((), ())
