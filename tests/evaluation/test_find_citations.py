from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import IndexFormatError
from cluster.settings.settings import Settings, load_settings
from evaluation.find_citations import CitationLookup
from tests.small_index import citation, make_index


def settings_of(index: Path) -> Settings:
    return load_settings(None, [f"index.path={index}"])


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> CitationLookup:
    index = tmp_path_factory.mktemp("find") / "index"
    citations = [citation(7, "Insulin lowers glucose.", "Insulin."), citation(11, "Iron.")]
    make_index(index, citations)
    return CitationLookup(settings_of(index))


def test_lookup_finds_citations_in_any_shard(lookup: CitationLookup) -> None:
    found = [lookup.find(7), lookup.find(11)]
    assert [c and c.abstract for c in found] == ["Insulin lowers glucose.", "Iron."]
    assert lookup.version == "v000001"


def test_lookup_of_unknown_pmid_returns_none(lookup: CitationLookup) -> None:
    assert [lookup.find(pmid) for pmid in (8, 0, -7, 2**70)] == [None] * 4


def test_lookup_texts_join_title_and_abstract(lookup: CitationLookup) -> None:
    assert lookup.texts([11, 8, 7]) == {11: "Iron.", 7: "Insulin. Insulin lowers glucose."}


def test_lookup_opens_each_shard_once_on_demand(tmp_path: Path) -> None:
    index = tmp_path / "index"
    make_index(index, [citation(7, "a b c."), citation(11, "d e f."), citation(12, "g.")], shards=1)
    opened, waiting = CitationLookup(settings_of(index)), CitationLookup(settings_of(index))
    assert opened.find(7)
    for path in (index / "segments").rglob("citations.arrow"):
        path.unlink()
    assert opened.find(11)
    with pytest.raises(IndexFormatError, match=r"citations\.arrow"):
        waiting.find(7)
