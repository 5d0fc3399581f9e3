"""The local PubMed finds what a query asks for, through the product's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from tests.serve.corpus_pubmed import CorpusPubMed
from tests.serve.eutils_server import eutils
from tests.serve.pubmed_online import fetch, make, search
from tests.small_index import citation

CORPUS = [
    citation(11, "Metformin lowers glucose in patients.", "Diabetes"),
    citation(12, "Metformin activates AMPK. AMPK inhibits mTOR in the liver."),
    citation(13, "AMPK senses energy.", "Metformin and the cell"),
    citation(14, "Warfarin inhibits VKORC1."),
]


@pytest.fixture(scope="module")
def server() -> Iterator[CorpusPubMed]:
    with eutils(CorpusPubMed(citations=CORPUS)) as running:
        yield running


def found(server: CorpusPubMed, folder: Path, query: str, **options: Any) -> list[int]:
    return search(make(server, folder), query=query, **options)


def test_every_word_must_stand_in_title_or_abstract(server: CorpusPubMed, tmp_path: Path) -> None:
    assert set(found(server, tmp_path, "metformin AMPK")) == {12, 13}


def test_and_between_entities_is_no_word(server: CorpusPubMed, tmp_path: Path) -> None:
    assert found(server, tmp_path, "metformin AND mTOR") == [12]


def test_words_that_every_text_has_are_not_searched(server: CorpusPubMed, tmp_path: Path) -> None:
    assert found(server, tmp_path, "is the warfarin in") == [14]


def test_the_record_that_says_it_more_often_comes_first(tmp_path: Path) -> None:
    corpus = [citation(1, "Ampk and liver cells."), citation(2, "Ampk, ampk liver.")]
    with eutils(CorpusPubMed(citations=corpus)) as running:
        assert found(running, tmp_path, "ampk liver") == [2, 1]


def test_no_more_than_asked_for_are_given(server: CorpusPubMed, tmp_path: Path) -> None:
    assert len(found(server, tmp_path, "metformin", limit=1)) == 1


def test_where_none_has_all_words_any_will_do(server: CorpusPubMed, tmp_path: Path) -> None:
    assert set(found(server, tmp_path, "warfarin diabetes")) == {11, 14}


def test_an_unknown_word_is_left_out_and_told(server: CorpusPubMed, tmp_path: Path) -> None:
    told: list[str] = []
    assert found(server, tmp_path, "warfarin zzyzx", tell=told.append) == [14]
    assert told == ["PubMed searched without 'zzyzx', which it does not know"]


def test_a_query_of_unknown_words_is_refused_as_by_pubmed(
    server: CorpusPubMed, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"finds nothing, and does not know 'zzyzx'"):
        found(server, tmp_path, "zzyzx")


def test_records_come_with_their_texts(server: CorpusPubMed, tmp_path: Path) -> None:
    (one, other) = asyncio.run(make(server, tmp_path).fetch([13, 11]))
    assert (one.pmid, one.title, one.abstract) == (13, CORPUS[2].title, CORPUS[2].abstract)
    assert other.pmid == 11


def test_a_record_outside_the_corpus_is_not_given(server: CorpusPubMed, tmp_path: Path) -> None:
    assert fetch(make(server, tmp_path), 99, 14) == [14]
