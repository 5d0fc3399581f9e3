from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question, SearchResult
from cluster.index.filters.filters import Filters
from cluster.records import Passage
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve.eutils_server import EUtils, eutils
from tests.serve.pubmed_online import QuickOnline
from tests.serve.small_graph import make_answerer, reply_of
from tests.small_index import citation

pytestmark = pytest.mark.slow

REVIEW = ("Review",)
TEXT = "Metformin lowers glucose."
CORPUS = [
    citation(1, TEXT, "Metformin in 1999", year=1999, month=3),
    citation(2, TEXT, "Metformin in May", year=2024, month=5),
    citation(3, TEXT, "Metformin, a review", year=2010, publication_types=REVIEW),
    citation(4, TEXT, "Metformin without a year", year=None),
    citation(5, "Cats sleep.", "Cats", year=2010, publication_types=REVIEW),
]


def find(answerer: QuestionAnswerer, filters: Filters, system: str, **asked: Any) -> SearchResult:
    question = Question("q", "Does metformin lower glucose?", "yesno", **asked)
    return reply_of(answerer.search, question, system, filters=filters)


def pmids(found: SearchResult) -> set[int]:
    return {c.pmid for c in found.citations}


def test_filters_apply_to_every_system(subtests: pytest.Subtests) -> None:
    for system in ["citeray", "bm25", "dense", "auto", "biorag-v3"]:
        with subtests.test(system=system):
            answerer = make_answerer(None, CORPUS)
            review = find(answerer, Filters(publication_types=REVIEW), system)
            assert 3 in pmids(review) <= {3, 5}
            assert {e.passage.pmid for e in review.evidence} <= {3, 5}
            until = find(answerer, Filters(until="2024-05-30"), system)
            assert {1, 3} <= pmids(until) <= {1, 3, 5}
            later = find(answerer, Filters(until="2024-05-31"), system)
            assert 2 in pmids(later)


def test_until_in_the_settings_limits_every_question() -> None:
    answerer = make_answerer(None, CORPUS)
    answerer._settings = answerer._settings.model_copy(update={"until": "2009-12-31"})
    found = find(answerer, Filters(), "bm25")
    assert (pmids(found), found.filters) == ({1}, Filters(until="2009-12-31"))
    narrowed = find(answerer, Filters(until="2024-12-31", year_from=1990), "bm25")
    assert pmids(narrowed) == {1}
    assert narrowed.filters == Filters(until="2009-12-31", year_from=1990)


def test_given_evidence_is_not_filtered() -> None:
    given = (Passage(2, "abstract", 0, 25, "Metformin lowers glucose."),)
    found = find(make_answerer(None, CORPUS), Filters(year_to=2000), "bm25", given=given)
    assert [e.passage.pmid for e in found.evidence] == [2]


@pytest.mark.parametrize("system", ["sinai", "aqams"])
def test_filters_limit_pubmed_queries_and_their_results(tmp_path: Path, system: str) -> None:
    # The test server ignores the dates of a query.
    with eutils(EUtils()) as server:
        server.start_over(dict.fromkeys((1, 2, 3, 4), date(2020, 1, 1)))
        answerer = make_answerer(None, CORPUS, online=QuickOnline(server, tmp_path))
        filters = Filters(year_from=2000, until="2015-06-30")
        found = find(answerer, filters, system)
        searches = [sent for sent in server.requests if "mindate" in sent]
    assert pmids(found) == {3} if system == "sinai" else 3 in pmids(found) <= {3, 5}
    assert {(s["mindate"], s["maxdate"]) for s in searches} == {("2000/01/01", "2015/06/30")}
