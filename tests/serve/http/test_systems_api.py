"""The presets as the page offers them."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from cluster.settings.presets import load_system, name_systems, system_names
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.http.workbench.systems_api import needs_of
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


@pytest.fixture
def client(service: SmallService) -> TestClient:
    service.models = {}
    return TestClient(create_api(service, load_settings().serve))


def systems(client: TestClient) -> dict[str, dict]:
    return {card["name"]: card for card in client.get("/v1/systems").json()["systems"]}


def test_every_preset_is_listed_once_and_the_default_is_recommended(client: TestClient) -> None:
    reply = client.get("/v1/systems").json()
    names = [card["name"] for card in reply["systems"]]
    assert sorted(names) == system_names()
    assert reply["recommended"] == names[0] == "citeray"
    groups = [card["group"] for card in reply["systems"]]
    assert list(dict.fromkeys(groups)) == ["ours", "ranking", "papers"]


def test_a_preset_of_the_operators_comes_last_under_its_own_name(client: TestClient) -> None:
    name_systems({"ward": load_system("citeray").model_copy(update={"name": "ward"})})
    try:
        last = client.get("/v1/systems").json()["systems"][-1]
    finally:
        name_systems({})
    assert (last["name"], last["title"], last["group"]) == ("ward", "ward", "own")


def test_what_a_preset_needs_is_read_from_it() -> None:
    needs = {
        "citeray": [],
        "huang": ["rewriter"],
        "udine-b": ["writer", "ranker"],
        "biorag-v6": ["writer"],
        "sinai": ["writer", "pubmed"],
    }
    assert {name: needs_of(load_system(name)) for name in needs} == needs


def test_presets_that_lack_a_model_say_why_they_cannot_run(
    client: TestClient, service: SmallService
) -> None:
    cards = systems(client)
    assert cards["citeray"]["available"]
    assert cards["sinai"]["missing"] == ["writer"]
    card = cards["citeray-model"]
    assert (card["available"], card["missing"]) == (False, ["writer"])
    assert card["reason"] == "It needs a language model that writes; this server has none."
    service.models = {"llm": "none", "rewriter-0": "small"}
    cards = systems(client)
    assert cards["huang"]["available"]
    assert cards["udine-b"]["missing"] == ["writer", "ranker"]
    service.models = {"llm": "qwen"}
    assert all(card["available"] for card in systems(client).values())


def test_records_come_in_the_order_asked_for_and_missing_ones_are_named(
    client: TestClient, service: SmallService, subtests: pytest.Subtests
) -> None:
    found = client.get("/v1/citations?pmids=2,1,9,2").json()
    assert [citation["pmid"] for citation in found["citations"]] == [2, 1]
    assert found["missing"] == [9]
    for pmids in ["", "x", "1,,2", "0", "1_0", ",".join(["1"] * 101)]:
        with subtests.test(pmids=pmids):
            reply = client.get("/v1/citations", params={"pmids": pmids})
            assert reply.status_code == 422
            assert "pmids" in reply.json()["detail"]
    service.state = "loading"
    reply = client.get("/v1/citations?pmids=1")
    assert (reply.status_code, bool(reply.headers["retry-after"])) == (503, True)
    service.state = "ready"
