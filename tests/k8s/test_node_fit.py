"""Every pod finds room on the nodes that the values name, less what clouds keep of each."""

from __future__ import annotations

import copy

import pytest

from tests.k8s.chart import APPLIED, all_values, rendered, values_of
from tests.k8s.nodes import Room, allocatable, asked_by, pods_of, without_a_node

CLOUDS = ("gke", "eks")
NODE = {"name": "all", "count": 1, "for": ["models"]}


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("name", APPLIED)
def test_service_build_and_update_find_room_together(name: str, cloud: str) -> None:
    if not all_values(name)["storage"]["models"]["enabled"]:
        pytest.skip("disks are stated with the shared cache of models")
    pods = [pod for obj in rendered(name) for pod in pods_of(obj)]
    kinds = {kind for kind, _ in pods}
    assert kinds & {"models", "build"}
    assert without_a_node(all_values(name)["nodes"], pods, cloud) == []


def test_what_a_values_file_has_no_room_for_together_it_refuses_together() -> None:
    # values-pubmed.yaml builds beside the service; the others take turns.
    assert all_values("pubmed/build")["service"]["enabled"]
    for name in ("small/build", "kind/build"):
        assert not all_values(name)["build"]["besideService"]


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_pod_that_asks_for_a_whole_node_is_found_out(cloud: str) -> None:
    node = {**NODE, "cpu": 8, "memory": "32Gi", "disk": "200Gi", "gpu": 1}
    for asked in (Room(8, 1, 1, 0), Room(1, 32, 1, 0), Room(1, 1, 200, 0), Room(1, 1, 1, 2)):
        assert without_a_node([node], [("models", asked)], cloud)
    assert not without_a_node([node], [("models", Room(7, 26, 80, 1))], cloud)
    assert without_a_node([node], [("llm", Room(1, 1, 1, 0))], cloud)
    assert len(without_a_node([node], [("models", Room(4, 8, 8, 0))] * 2, cloud)) == 1


def test_what_is_kept_of_a_node_is_as_published() -> None:
    # The examples of "Plan GKE Standard node sizes", before daemons: 32 GiB and 8 cores.
    node = {**NODE, "cpu": 8, "memory": "32Gi", "disk": "100Gi", "gpu": 0}
    room = allocatable(node, "gke")
    assert room.cpu + 0.6 == pytest.approx(7.91)
    assert room.memory + 1.0 == pytest.approx(32 - 3.56 - 100 / 1024)
    assert room.disk + 1.0 == pytest.approx(100 - 10 - 41)
    room = allocatable(node, "eks")
    assert room.memory + 1.0 == pytest.approx(32 - (255 + 1210) / 1024 - 100 / 1024)


def test_the_autoscaler_and_init_containers_are_counted() -> None:
    resources = {"requests": {"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"}}
    first = copy.deepcopy(resources)
    first["requests"]["memory"] = "4Gi"
    pod = {"containers": [{"resources": resources}], "initContainers": [{"resources": first}]}
    assert asked_by(pod) == Room(0.5, 4, 1, 0)
    assert asked_by(pod, {"cpu": "1", "memory": "3Gi"}) == Room(1.5, 5, 1, 0)
    (service,) = [o for o in rendered("pubmed") if o["kind"] == "RayService"]
    head = next(room for kind, room in pods_of(service) if kind == "head")
    sizes = all_values("pubmed")["sizes"]
    assert head.cpu == sizes["head"]["cpu"] + sizes["autoscaler"]["cpu"]


@pytest.mark.parametrize("name", ["small", "pubmed", "kind"])
def test_the_nodes_are_stated_for_every_kind_that_runs(name: str) -> None:
    values = values_of(name)
    stated = {kind for node in values["nodes"] for kind in node["for"]}
    running = {kind for obj in rendered(name) for kind, _ in pods_of(obj)}
    assert running <= stated
