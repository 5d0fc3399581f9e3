import asyncio
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest

from cluster.records import Citation, Entity, Section
from serve.graph.watch_stages import StageWatch
from serve.search.pubmed.search_online import (
    entities_query,
    find_online,
    finds_too_little,
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
    watch = StageWatch(30)
    stage = QuickOnline(server, folder)
    found = asyncio.run(find_online(QUESTION, entities, stage, watch, limit=5, deadline_s=10))
    return found, watch.degraded


def answer(*pmids: int) -> Reply:
    ids = ",".join(f'"{pmid}"' for pmid in pmids)
    return Reply(f'{{"esearchresult": {{"count": "{len(pmids)}", "idlist": [{ids}]}}}}')


def test_searches_for_the_question_and_for_its_entities_are_united(
    server: EUtils, tmp_path: Path
) -> None:
    server.script = [answer(4, 9), answer(9, 2)]
    found, losses = find(server, tmp_path)
    assert (sorted(found), losses) == ([2, 4, 9], [])
    terms = {form["term"] for form in server.requests}
    assert terms == {"Does metformin activate AMPK", "metformin AND AMPK"}
    assert {form["retmax"] for form in server.requests} == {"5"}


def test_one_lost_search_leaves_the_other_and_is_stated(server: EUtils, tmp_path: Path) -> None:
    server.script = [Reply('{"error": "API key invalid"}', 400)]
    found, losses = find(server, tmp_path)
    assert found == [31, 7, 12]
    assert len(losses) == 1
    assert losses[0].startswith("pubmed: failed, ")


def test_a_dead_server_is_two_stated_losses_and_no_error(server: EUtils, tmp_path: Path) -> None:
    server.script, server.for_ever = [Reply("", 500)], True
    found, losses = find(server, tmp_path)
    assert found == []
    assert sorted(losses) == [
        "pubmed: failed, entities not searched online",
        "pubmed: failed, question not searched online",
    ]


def test_a_question_is_words_to_pubmed_and_no_query_language() -> None:
    queries = {
        'Is "IL-6"[ti] (high) AND low?': "Is IL-6 ti high and low",
        "NOT a test: x*": "not a test x",
        "???": "",
    }
    assert {text: plain_query(text) for text in queries} == queries
    # An entity named twice is asked for once.
    again = Entity("Metformin", 40, 49, "", "mesh")
    assert entities_query([*ENTITIES, again]) == "metformin AND AMPK"


def test_too_little_is_fewer_near_finds_than_asked() -> None:
    found = [
        finds_too_little(similarities, 2, 0.5) for similarities in ((), (0.9, 0.4), (0.9, 0.5))
    ]
    assert found == [True, True, False]


def test_an_article_is_its_whole_abstract_or_else_its_title() -> None:
    with_abstract = Citation(1, title="T", sections=(Section("", " An abstract. "),))
    found = whole_abstract(with_abstract)
    assert found is not None
    assert with_abstract.abstract[found.begin : found.end] == found.text == "An abstract."
    title_only = whole_abstract(Citation(2, title="T"))
    assert title_only is not None
    assert title_only.section == "title"
    assert whole_abstract(Citation(3)) is None
