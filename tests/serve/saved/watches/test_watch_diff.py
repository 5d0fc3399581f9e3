from __future__ import annotations

from dataclasses import replace

import pytest

from cluster.answers import Answer, RankedCitation
from cluster.exposure import ExposedSource
from cluster.records import RETRACTED_TYPE, Citation, Link, Section
from cluster.study_design.designs import Design
from serve.saved.compare_answers import Change, Cited
from serve.saved.watches.source_records import (
    CITES_DOUBT,
    ChangeKind,
    SourceChange,
    SourceRecord,
    changed_sources,
)
from serve.saved.watches.watch_diff import (
    WatchDiff,
    change_summary,
    diff_words,
    source_summary,
    watch_diff,
)
from tests.serve.saved.watches.asking import made_answer
from tests.small_index import citation


def test_equal_answers_have_no_diff_and_a_new_wording_is_not_notable() -> None:
    diff = watch_diff(made_answer((1, 2)), made_answer((1, 2), version="v000002"), ())
    assert not diff.changed
    assert not diff.notable
    assert diff_words(diff) == ["Nothing changed."]
    displaced = watch_diff(made_answer((1, 2)), made_answer((1,), text="Yes, it helps."), ())
    assert displaced.changed
    assert displaced.supporting_removed
    assert not displaced.notable


def test_added_and_removed_citations_are_listed_by_side() -> None:
    diff = watch_diff(made_answer((1,)), made_answer((1, 2), (3,)), ())
    assert diff.supporting_added == (Cited(2, "Paper 2", 2002),)
    assert diff.contradicting_added == (Cited(3, "Paper 3", 2003),)
    assert diff.supporting_removed == diff.contradicting_removed == ()
    assert diff.notable
    assert diff_words(diff) == [
        "New evidence against the answer: PMID 3, Paper 3 (2003).",
        "New evidence for the answer: PMID 2, Paper 2 (2002).",
    ]
    changed = watch_diff(made_answer((1, 2)), made_answer((1,), (2,)), ())
    assert [cited.pmid for cited in changed.contradicting_added] == [2]
    assert [cited.pmid for cited in changed.supporting_removed] == [2]
    # Citations of sentences count as well as evidence.
    now = made_answer((1,))
    against = replace(now.ideal[0], contradicted=(9,))
    diff = watch_diff(made_answer((1,)), replace(now, ideal=(against,)), ())
    assert diff.contradicting_added == (Cited(9),)
    unsupported = replace(now.ideal[0], pmids=(8,), unsupported=True)
    diff = watch_diff(made_answer(()), replace(made_answer(()), ideal=(unsupported,)), ())
    assert not diff.supporting_added


def listing(*pmids: int) -> Answer:
    """Return an answer without a statement that lists the articles `pmids`."""
    citations = [RankedCitation.of(citation(pmid, "", f"Paper {pmid}"), 1.0, {}) for pmid in pmids]
    return made_answer((), citations=tuple(citations))


def test_new_articles_among_the_first_are_notable() -> None:
    before = listing(1, 2, 3, 4, 5, 6)
    diff = watch_diff(before, listing(9, 1, 2, 3, 4, 5), ())
    assert diff.listed_added == (Cited(9, "Paper 9"),)
    assert diff.order == Change("1, 2, 3, 4, 5", "9, 1, 2, 3, 4")
    assert diff.notable
    assert diff_words(diff) == ["New among the first articles listed: PMID 9, Paper 9."]
    # A new article that also supports the answer is named once.
    now = replace(made_answer((9,)), citations=listing(9, 1).citations)
    said = diff_words(watch_diff(before, now, ()))
    assert [line for line in said if "PMID 9" in line] == [
        "New evidence for the answer: PMID 9, Paper 9 (2009)."
    ]


def test_new_order_of_the_first_articles_is_reported_but_not_notable() -> None:
    diff = watch_diff(listing(1, 2, 3, 4, 5, 6), listing(6, 1, 2, 3, 4, 5), ())
    assert diff.changed
    assert not diff.notable
    assert diff_words(diff) == ["The first articles listed are now PMID 6, 1, 2, 3, 4."]
    later = watch_diff(listing(1, 2, 3, 4, 5, 6), listing(1, 2, 3, 4, 5, 7), ())
    assert not later.changed


def test_changes_of_verdict_exact_answer_and_text_are_reported() -> None:
    now = made_answer((1,), exact="no", text="It does not help.", verdict="mixed")
    diff = watch_diff(made_answer((1,)), now, ())
    assert diff.verdict == Change("answered", "mixed")
    assert diff.exact == Change("yes", "no")
    assert diff.text == Change("It helps.", "It does not help.")
    assert len(diff_words(diff)) == 3


def test_summary_counts_new_evidence_by_design_and_changed_sources() -> None:
    trial, review = (Cited(n, design=design) for n, design in enumerate(DESIGNS))
    sources = [SourceChange(n, "", kind) for n, kind in enumerate(KINDS)]
    diff = WatchDiff(
        verdict=Change("answered", "mixed"),
        supporting_added=(trial, review, Cited(8)),
        contradicting_added=(trial, Cited(9)),
        sources=tuple(sources),
    )
    assert change_summary(diff) == (
        "verdict changed, 2 new trials, 1 new review, 2 new studies, 1 retraction, "
        "2 expressions of concern"
    )
    assert change_summary(WatchDiff(exact=Change("yes", "no"))) == "answer changed"


DESIGNS: tuple[Design, Design] = ("randomised_trial", "meta_analysis")
KINDS: tuple[ChangeKind, ...] = ("retracted", "expression of concern", "expression of concern")
PAPER = citation(1, "It helps.", "Paper 1")
RETRACTION = Link("RetractionIn", 7, "Lancet 2026")
RETRACTED = replace(PAPER, links=(RETRACTION,), publication_types=(RETRACTED_TYPE,))
CONCERN = Link("ExpressionOfConcernIn", 8, "BMJ")
ERRATUM = Link("ErratumIn", None, "BMJ")
HARMS = (Section("", "It harms."),)
AFTER: list[tuple[Citation | None, str, str]] = [
    (RETRACTED, "retracted", "retraction notice in Lancet 2026 PMID 7"),
    (
        replace(PAPER, links=(CONCERN,)),
        "expression of concern",
        "expression of concern in BMJ PMID 8",
    ),
    (replace(PAPER, links=(ERRATUM,)), "corrected", "erratum in BMJ"),
    (replace(PAPER, version=2), "revised", "version 1 is now 2"),
    (replace(PAPER, sections=HARMS), "revised", "its title or abstract was changed"),
    (None, "deleted", ""),
]


def test_change_of_a_source_is_reported_once(subtests: pytest.Subtests) -> None:
    for after, kind, detail in AFTER:
        with subtests.test(kind=kind, detail=detail):
            before, now = {1: SourceRecord.of(1, PAPER)}, {1: SourceRecord.of(1, after)}
            (change,) = changed_sources(before, now)
            assert (change.pmid, change.title) == (1, "Paper 1")
            assert (change.kind, change.detail) == (kind, detail)
            assert changed_sources(now, now) == ()
            diff = watch_diff(made_answer(), made_answer(), [change])
            assert diff.notable
            assert diff_words(diff)[0].startswith(f"{kind.capitalize()}: PMID 1, Paper 1")
    # A source that cites a newly retracted article.
    source = ExposedSource(1, retracted=(7,), doubted=(9,))
    before = {1: SourceRecord.of(1, PAPER, replace(source, retracted=()))}
    (change,) = changed_sources(before, {1: SourceRecord.of(1, PAPER, source)})
    assert (change.kind, change.detail) == (CITES_DOUBT, "it cites PMID 7")
    assert source_summary([change]) == "1 source that cites an article in doubt"
    # Re-indexing and comments do not count as changes.
    anew = replace(PAPER, source="later.xml.gz", position=9, links=(Link("CommentIn", 5, "BMJ"),))
    before, now = {1: SourceRecord.of(1, PAPER)}, {1: SourceRecord.of(1, anew)}
    assert changed_sources(before, now) == ()
