import asyncio
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest

from cluster.records import Citation, Entity, Section
from cluster.settings.settings import load_settings
from serve.contracts.backend import IndexFacts, LocalBackend
from serve.contracts.stage_calls import StageCalls
from serve.contracts.stage_watch import StageWatch
from serve.search.pubmed.search_online import (
    entities_query,
    find_online,
    plain_query,
    whole_abstract,
)
from tests.serve.eutils_server import EUtils, Reply, eutils
from tests.serve.pubmed_online import QuickOnline

QUESTION = "Does metformin activate AMPK?"
ENTITIES = [Entity("metformin", 5, 14, "D008687", "mesh"), Entity("AMPK", 24, 28, "", "abbr")]


@pytest.fixture(scope="module")
def running() -> Iterator[EUtils]:
    with eutils(EUtils()) as running:
        yield running


@pytest.fixture
def server(running: EUtils) -> EUtils:
    running.start_over(dict.fromkeys((31, 7, 12), date(2020, 1, 1)))
    return running


def find(
    server: EUtils, folder: Path, entities: Sequence[Entity] = ENTITIES
) -> tuple[list[int], list[str]]:
    backend = LocalBackend(IndexFacts(0, 0.9, 0.4), pubmed=QuickOnline(server, folder))
    stages = StageCalls(backend, load_settings().serve, StageWatch(30), 2000)
    found = asyncio.run(find_online(QUESTION, entities, stages, limit=5))
    return found, stages.watch.degraded


def answer(*pmids: int) -> Reply:
    ids = ",".join(f'"{pmid}"' for pmid in pmids)
    return Reply(f'{{"esearchresult": {{"count": "{len(pmids)}", "idlist": [{ids}]}}}}')


def test_question_and_entity_searches_are_merged(server: EUtils, tmp_path: Path) -> None:
    server.script = [answer(4, 9), answer(9, 2)]
    found, losses = find(server, tmp_path)
    assert (sorted(found), losses) == ([2, 4, 9], [])
    terms = {form["term"] for form in server.requests}
    assert terms == {"Does metformin activate AMPK", "metformin AND AMPK"}
    assert {form["retmax"] for form in server.requests} == {"5"}


def test_one_failed_search_is_reported_and_the_other_kept(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"error": "API key invalid"}', 400)]
    found, losses = find(server, tmp_path)
    assert found == [31, 7, 12]
    assert len(losses) == 1
    assert losses[0].startswith("pubmed: failed, ")


def test_unavailable_server_is_reported_as_two_losses(server: EUtils, tmp_path: Path) -> None:
    server.script, server.for_ever = [Reply("", 500)], True
    found, losses = find(server, tmp_path)
    assert found == []
    assert sorted(losses) == [
        "pubmed: failed, entities not searched online",
        "pubmed: failed, question not searched online",
    ]


def test_query_syntax_in_questions_is_removed() -> None:
    queries = {
        'Is "IL-6"[ti] (high) AND low?': "Is IL-6 ti high and low",
        "NOT a test: x*": "not a test x",
        "???": "",
    }
    assert {text: plain_query(text) for text in queries} == queries
    # A repeated entity is searched once.
    again = Entity("Metformin", 40, 49, "", "mesh")
    assert entities_query([*ENTITIES, again]) == "metformin AND AMPK"


def test_whole_abstract_falls_back_to_the_title() -> None:
    with_abstract = Citation(1, title="T", sections=(Section("", " An abstract. "),))
    found = whole_abstract(with_abstract)
    assert found is not None
    assert with_abstract.abstract[found.begin : found.end] == found.text == "An abstract."
    title_only = whole_abstract(Citation(2, title="T"))
    assert title_only is not None
    assert title_only.section == "title"
    assert whole_abstract(Citation(3)) is None
