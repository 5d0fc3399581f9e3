"""Sentences about retractions and corrections, made from the links of a record."""

from __future__ import annotations

import pytest

from cluster.notices import MOST_LINKS, has_erratum, notice_words, shown_links
from cluster.records import Citation, Link


def linked(*kinds: str, pmid: int | None = 42) -> Citation:
    return Citation(1, links=tuple(Link(kind, pmid, "J. 2020;1:2") for kind in kinds))


def test_notices_are_described_in_sentences(subtests: pytest.Subtests) -> None:
    for kind, said in [
        ("RetractionIn", "Retracted: see PMID 42."),
        ("RetractedandRepublishedIn", "Retracted: see PMID 42."),
        (
            "ExpressionOfConcernIn",
            "The journal has published an expression of concern: see PMID 42.",
        ),
        ("ErratumIn", "Corrected or updated since: see PMID 42."),
        ("PartialRetractionIn", "Corrected or updated since: see PMID 42."),
        ("RetractionOf", "It is the notice that retracts PMID 42."),
        ("ErratumFor", "It is a correction of PMID 42."),
        ("CommentIn", ""),
        ("Cites", ""),
    ]:
        with subtests.test(kind=kind, said=said):
            assert notice_words(linked(kind)) == said
            assert has_erratum(linked(kind)) == said.startswith("Corrected")


def test_most_severe_notice_comes_first() -> None:
    both = linked("ErratumIn", "RetractionIn", pmid=None)
    assert notice_words(both) == "Retracted. Corrected or updated since."
    retracted = Citation(1, publication_types=("Retracted Publication",))
    assert notice_words(retracted) == "Retracted."


def test_shown_links_are_sorted_and_limited() -> None:
    record = linked("Cites", "CommentIn", "ErratumIn")
    assert [link.kind for link in shown_links(record)] == ["ErratumIn", "CommentIn"]
    assert len(shown_links(linked(*["CommentIn"] * 99))) == MOST_LINKS
