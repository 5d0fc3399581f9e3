from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from cluster.settings.presets import name_systems, system_names
from cluster.settings.read_config import CONFIGS
from cluster.settings.settings import load_settings
from tests.serve.api import client_of
from tests.serve.problem import assert_refused
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow


def systems(http: TestClient) -> dict[str, dict]:
    return {card["name"]: card for card in http.get("/v1/systems").json()["systems"]}


@pytest.fixture
def ward(service: SmallService) -> Iterator[TestClient]:
    """API with the operator's own preset `ward`."""
    preset = "systems.ward={over: bm25, evidence: 1}"
    name_systems(load_settings(overrides=[f"serve.{preset}"]).serve.systems)
    yield client_of(service, preset)
    name_systems({})


def test_every_shipped_preset_has_a_title(http: TestClient) -> None:
    cards = systems(http)
    files = {path.stem for path in (CONFIGS / "systems").glob("*.yaml")}
    assert {name for name in files if cards[name]["title"] == name} == set()


def test_operators_preset_is_usable_and_listed_last(ward: TestClient) -> None:
    asked = {"question": "Does metformin activate AMPK?"}
    found = ward.post("/v1/search", json={**asked, "system": "ward"}).json()
    assert (found["system"], len(found["evidence"])) == ("ward", 1)
    assert "ward" in [model["id"] for model in ward.get("/v1/models").json()["data"]]
    for system in ("two", "ward.yaml", "/etc/passwd.yaml", "../ward"):
        reply = ward.post("/v1/search", json={**asked, "system": system})
        assert_refused(reply, "unknown; there are: aqams")
    reply = ward.get("/v1/systems").json()
    names = [card["name"] for card in reply["systems"]]
    assert names[:6] == ["citeray", "citeray-model", "citeray-ner", "auto", "auto-model", "hybrid"]
    assert sorted(names) == sorted(system_names())
    assert reply["recommended"] == names[0] == "citeray"
    last = reply["systems"][-1]
    assert (last["name"], last["title"], last["group"]) == ("ward", "ward", "own")


def test_presets_without_their_models_are_unavailable_with_a_reason(
    http: TestClient, service: SmallService
) -> None:
    service.models = {}
    cards = systems(http)
    assert cards["citeray"]["available"]
    assert (cards["sinai"]["missing"], cards["huang"]["missing"]) == (["writer"], ["rewriter"])
    card = cards["citeray-model"]
    assert (card["available"], card["missing"]) == (False, ["writer"])
    assert "needs a language model that writes" in card["reason"]
    service.models = {"llm": "none", "rewriter-0": "small"}
    cards = systems(http)
    assert cards["huang"]["available"]
    assert cards["udine-b"]["missing"] == ["writer", "ranker"]
    service.models = {"llm": "qwen"}
    assert all(card["available"] for card in systems(http).values())


def test_records_are_in_the_requested_order_and_missing_ones_listed(
    http: TestClient, service: SmallService
) -> None:
    found = http.get("/v1/citations?pmids=2,1,9,2").json()
    assert [citation["pmid"] for citation in found["citations"]] == [2, 1]
    assert found["missing"] == [9]
    for pmids in ["", "x", "1,,2", "0", "1_0", ",".join(["1"] * 101)]:
        assert_refused(http.get("/v1/citations", params={"pmids": pmids}), "pmids")
    service.state = "loading"
    reply = http.get("/v1/citations?pmids=1")
    assert (reply.status_code, bool(reply.headers["retry-after"])) == (503, True)
    service.state = "ready"
