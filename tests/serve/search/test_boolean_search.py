from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from cluster.errors import InputError
from cluster.index.boolean import match_segment
from cluster.index.boolean.expressions import EVERYTHING, And, Not, Term
from cluster.records import MeshHeading
from serve.pipeline.answer_question import QuestionAnswerer
from serve.question.understand_question import Heading
from serve.search import shard_stage
from serve.search.boolean_search import fetch_citations, match_all
from tests.serve.small_graph import make_answerer, parts_of, patient_settings
from tests.small_index import citation

FEVER = (MeshHeading("D005334", "Fever", False),)
CORPUS = [
    citation(1, "Fever in children.", mesh=FEVER, year=2001, month=3),
    citation(2, "Fever in adults.", year=2001, month=7),
    citation(3, "Pain.", mesh=FEVER, year=2020),
]


def answerer(until: str = "") -> QuestionAnswerer:
    serve = patient_settings().model_copy(update={"until": until})
    made = make_answerer(None, CORPUS, serve=serve)

    def headings(names: Sequence[str]) -> dict[str, Heading]:
        fever = Heading("D005334", "Fever")
        return {name: fever for name in names if name in ("Fever", "Pyrexia")}

    expander = parts_of(made)["expander"]
    expander.headings = headings
    expander.closest_headings = lambda name: ("Fever",)
    return made


def test_headings_are_found_by_name_and_entry_term() -> None:
    mapped = '"Pyrexia" is searched as the MeSH heading "Fever"'
    for name, notes in (("Fever", ()), ("Pyrexia", (mapped,)), ("d005334", ())):
        found = asyncio.run(match_all(answerer().calls(), Term("mh", name)))
        assert found.pmids.tolist() == [1, 3]
        assert found.newest_first().tolist() == [3, 1]
        assert (found.read.version, found.coverage, found.degraded) == ("v000001", "2/2", ())
        assert found.notes == notes
    refused = r"Fewer\[mh\]: not a MeSH heading that this index knows.*; did you mean 'Fever'\?"
    with pytest.raises(InputError, match=refused):
        asyncio.run(match_all(answerer().calls(), Not(Term("mh", "Fewer"))))


def test_citations_after_the_date_of_the_service_are_left_out() -> None:
    found = asyncio.run(match_all(answerer("2001-05-31").calls(), EVERYTHING))
    assert found.pmids.tolist() == [1]


def test_costly_queries_are_refused_and_not_counted_as_lost_shards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = And((Term("tiab", "fever"), EVERYTHING))
    monkeypatch.setattr(match_segment, "MOST_READ", 0)
    with pytest.raises(InputError, match="the limit is 0"):
        asyncio.run(match_all(answerer().calls(), asked))
    monkeypatch.setattr(shard_stage, "MOST_MATCHES", 0)
    with pytest.raises(InputError, match="over 0 citations"):
        asyncio.run(match_all(answerer().calls(), EVERYTHING))


def test_records_are_fetched_in_the_given_order_without_missing_ones() -> None:
    found = asyncio.run(fetch_citations(answerer().calls(), [3, 99, 1, 2]))
    assert [(c.pmid, c.abstract) for c in found] == [
        (3, "Pain."), (1, "Fever in children."), (2, "Fever in adults.")
    ]  # fmt: skip
