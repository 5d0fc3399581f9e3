from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cluster.answers import Question, SearchResult
from cluster.errors import InputError
from cluster.index.filters.filters import Filters
from cluster.index.filters.inspect_filters import closest_values
from serve.http.answer_words import search_words
from serve.pipeline.answer_question import QuestionAnswerer
from serve.pipeline.boolean_reply import match_query
from tests.serve.small_graph import make_answerer, reply_of
from tests.small_index import citation

TRIAL, REVIEW = "Randomized Controlled Trial", "Review"
TEXT = "Metformin lowers glucose."
CORPUS = [
    citation(
        1, TEXT, "One", year=1999, languages=("eng",), journal="BMJ", publication_types=(TRIAL,)
    ),
    citation(
        2, TEXT, "Two", year=2020, month=5, languages=("fre",), journal="The Lancet",
        publication_types=(REVIEW,),
    ),
    citation(
        3, "Cats sleep.", "Cats", year=2010, languages=("eng", "fre"), publication_types=(REVIEW,)
    ),
]  # fmt: skip


@pytest.fixture
def answerer() -> QuestionAnswerer:
    return make_answerer(None, CORPUS)


QUESTION = Question("q", "Does metformin lower glucose?", "yesno")


def find(answerer: QuestionAnswerer, **filters: Any) -> SearchResult:
    return reply_of(answerer.search, QUESTION, filters=Filters(**filters))


def test_unknown_filter_values_are_rejected_with_suggestions(
    answerer: QuestionAnswerer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"languages": ["engl"]}, r"^filters\.languages: .* has 'engl'; did you mean 'eng'.*\?$"),
        ({"languages": ["German"]}, "has 'ger'; did you mean 'eng'"),
        ({"publication_types": ["RCT"]}, "'rct'; did you mean 'randomized controlled trial'"),
        ({"publication_types": [REVIEW, "Reviw"]}, r"has 'reviw'; did you mean 'review'\?$"),
        ({"mesh": ["D999999"]}, r"has 'd999999'.*check it, or leave it out$"),
        ({"journals": [f"J {n}" for n in range(9)]}, r"filters\.journals: nor 6 other values$"),
        ({"languages": ["xyz"], "journals": ["Lancet"]}, "'lancet'.*; filters.languages: .*'xyz'"),
    ]
    for filters, pattern in cases:
        with subtests.test(filters=filters), pytest.raises(InputError, match=pattern):
            find(answerer, **filters)


def test_unknown_values_in_answers_and_field_tags_are_rejected(answerer: QuestionAnswerer) -> None:
    with pytest.raises(InputError, match="did you mean 'the lancet'"):
        reply_of(answerer.answer, QUESTION, filters=Filters(journals=["Lancet"]))
    with pytest.raises(InputError, match="did you mean 'the lancet'"):
        reply_of(answerer.search, Question("q", "glucose AND Lancet[ta]", "summary"))


def test_unknown_journals_of_boolean_searches_are_rejected(answerer: QuestionAnswerer) -> None:
    found = asyncio.run(match_query(answerer, '"The  Lancet"[ta] OR bmj[ta] OR metformin[ti]'))
    assert sorted(found.pmids) == [1, 2]
    said = r"^query, \[ta\]: no article in this index has 'lancet'; did you mean 'the lancet'\?$"
    with pytest.raises(InputError, match=said):
        asyncio.run(match_query(answerer, "glucose[tiab] NOT (Lancet[ta] OR BMJ[ta])"))


def test_language_names_are_accepted_as_codes(answerer: QuestionAnswerer) -> None:
    found = find(answerer, languages=["English"])
    assert {c.pmid for c in found.citations} <= {1, 3}
    assert found.citations
    assert found.filters == Filters(languages=["eng"])


def test_filters_without_a_match_are_explained_with_counts(
    answerer: QuestionAnswerer, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"year_from": 2030}, "Articles without year_from (2030): 3."),

        ({"year_from": 2015, "until": "2020-05-30"}, "without year_from (2015): 2; "
         "without until (2020-05-30): 1."),

        (
            {"year_from": 2030, "journals": ["The Lancet"], "publication_types": [TRIAL]},
            "Articles with year_from (2030) alone: 0; with journals (the lancet) alone: 1; "
            "with publication_types (randomized controlled trial) alone: 1.",
        ),
    ]  # fmt: skip
    for filters, said in cases:
        with subtests.test(filters=filters):
            found = find(answerer, **filters)
            assert found.citations == ()
            assert found.filtered_out.startswith("No article in this index passes the filters.")
            assert found.filtered_out.endswith(said)
            assert found.filtered_out in search_words(found)


def test_values_are_not_rejected_while_a_shard_is_lost() -> None:
    answerer = make_answerer(None, CORPUS, broken=["shard-0001 inspect_filters"])
    found = find(answerer, journals=["Lancet"])
    assert (found.citations, found.filtered_out) == ((), "")


def test_closest_values_lists_all_if_there_are_few() -> None:
    assert closest_values("qqqq", [f"review {n}" for n in range(50)]) == ()
    assert closest_values("qqqq", ["eng", "fre"]) == ("eng", "fre")
