"""What became of a citation is told in a sentence, from the links of its record."""

from __future__ import annotations

import pytest

from cluster.notices import MOST_LINKS, has_erratum, notice_words, shown_links
from cluster.records import Citation, Link


def linked(*kinds: str, pmid: int | None = 42) -> Citation:
    return Citation(1, links=tuple(Link(kind, pmid, "J. 2020;1:2") for kind in kinds))


def test_each_kind_of_notice_has_its_sentence(subtests: pytest.Subtests) -> None:
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


def test_the_worst_comes_first_and_a_notice_without_a_pmid_is_told_too() -> None:
    both = linked("ErratumIn", "RetractionIn", pmid=None)
    assert notice_words(both) == "Retracted. Corrected or updated since."
    retracted = Citation(1, publication_types=("Retracted Publication",))
    assert notice_words(retracted) == "Retracted."


def test_links_are_shown_notices_first_without_references_and_bounded() -> None:
    record = linked("Cites", "CommentIn", "ErratumIn")
    assert [link.kind for link in shown_links(record)] == ["ErratumIn", "CommentIn"]
    assert len(shown_links(linked(*["CommentIn"] * 99))) == MOST_LINKS
