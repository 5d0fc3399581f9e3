"""What the manifests name is there, and each pod has what it may have and no more."""

from __future__ import annotations

import re
from typing import Any

import pytest

from serve.http.header_limits import INSTALL, PROXY_CALLBACK
from tests.k8s.overlays import APPLIED, K8S, OVERLAYS, all_pods, of_kind, rendered

WALK_THROUGH = (K8S / "README.md").read_text(encoding="utf-8")
VERSION = re.search(
    r'^fallback_version = "(.+)"', (K8S.parent / "pyproject.toml").read_text(encoding="utf-8"), re.M
)
READ_ONLY_SECRETS = {"citeray-ray-token", "citeray-redis", "citeray-api-keys", "citeray-stores"}


def containers(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{place}/{container['name']}", container)
        for place, template in all_pods(name).items()
        for container in template["spec"]["containers"]
    ]


def values_of(node: Any, key: str) -> list[Any]:
    """Every value of that key, however deep."""
    if isinstance(node, dict):
        own = [node[key]] if key in node else []
        return own + [found for value in node.values() for found in values_of(value, key)]
    if isinstance(node, list):
        return [found for value in node for found in values_of(value, key)]
    return []


@pytest.mark.parametrize("name", APPLIED)
def test_every_configmap_claim_and_account_that_is_named_is_there(name: str) -> None:
    there = {(obj["kind"], obj["metadata"]["name"]) for obj in rendered(name)}
    for place, template in all_pods(name).items():
        spec = template["spec"]
        for volume in spec["volumes"]:
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in there, place
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in there, place
        if "serviceAccountName" in spec:
            assert ("ServiceAccount", spec["serviceAccountName"]) in there, place


@pytest.mark.parametrize("name", APPLIED)
def test_every_secret_is_a_reference_that_the_walk_through_makes(name: str) -> None:
    named = {ref["name"] for obj in rendered(name) for ref in values_of(obj, "secretKeyRef")}
    named |= {ref["name"] for obj in rendered(name) for ref in values_of(obj, "secretRef")}
    named |= {secret for obj in rendered(name) for secret in values_of(obj, "secretName")}
    assert named
    assert named <= READ_ONLY_SECRETS
    for secret in named:
        assert f"kubectl -n citeray create secret generic {secret}" in WALK_THROUGH
    assert of_kind(name, "Secret") == []


@pytest.mark.parametrize("name", APPLIED)
def test_no_secret_is_a_value(name: str) -> None:
    for place, container in containers(name):
        for entry in container.get("env", []):
            secret = re.search(r"KEY|TOKEN|PASSWORD|SECRET", entry["name"])
            assert not (secret and "value" in entry), (place, entry["name"])


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_ray_node_that_can_have_a_proxy_limits_headers(name: str) -> None:
    [service] = of_kind(name, "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        [container] = group["template"]["spec"]["containers"]
        given = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert given.get(PROXY_CALLBACK) == INSTALL, container["name"]


@pytest.mark.parametrize("name", APPLIED)
def test_every_image_is_of_one_version(name: str) -> None:
    assert VERSION is not None
    for place, container in containers(name):
        image, _, tag = container["image"].rpartition(":")
        assert tag not in ("", "latest"), place
        if image == "registry.example/citeray":
            assert tag in (f"{VERSION[1]}-cpu", f"{VERSION[1]}-gpu"), place
        assert container["image"].split(":")[1] in WALK_THROUGH or "citeray" not in image, place


@pytest.mark.parametrize("name", APPLIED)
def test_gpus_are_asked_for_by_the_image_that_can_use_them_only(name: str) -> None:
    for place, container in containers(name):
        if "nvidia.com/gpu" in container["resources"]["limits"]:
            assert container["image"].endswith("-gpu"), place


@pytest.mark.parametrize("name", APPLIED)
def test_every_container_has_bounds_and_no_rights(name: str) -> None:
    for place, container in containers(name):
        resources = container["resources"]
        wanted = {"cpu", "memory", "ephemeral-storage"}
        assert wanted <= set(resources["requests"]) & set(resources["limits"]), place
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, place


@pytest.mark.parametrize("name", APPLIED)
def test_every_pod_runs_as_a_user_without_rights(name: str) -> None:
    for place, template in all_pods(name).items():
        security = template["spec"]["securityContext"]
        assert security["runAsNonRoot"], place
        assert security["runAsUser"] > 0, place
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, place


@pytest.mark.parametrize("name", APPLIED)
def test_only_what_asks_the_api_server_holds_a_token_for_it(name: str) -> None:
    for place, template in all_pods(name).items():
        asks = "citeray/asks-api-server" in template["metadata"]["labels"]
        assert template["spec"]["automountServiceAccountToken"] == asks, place


@pytest.mark.parametrize("name", APPLIED)
def test_every_mount_has_its_volume_and_what_is_written_a_place(name: str) -> None:
    sets = of_kind(name, "StatefulSet")
    claims = {c["metadata"]["name"] for o in sets for c in o["spec"]["volumeClaimTemplates"]}
    for place, template in all_pods(name).items():
        volumes = claims | {volume["name"] for volume in template["spec"]["volumes"]}
        for container in template["spec"]["containers"]:
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            assert set(mounts.values()) <= volumes, place
            assert "/tmp" in mounts, place
            if "/ray-" in f"/{container['name']}":
                written = {"/models", "/cache", "/home/citeray", "/app/.citeray", "/dev/shm"}
                assert written <= set(mounts), place


@pytest.mark.parametrize("name", APPLIED)
def test_no_folder_may_outgrow_what_its_pod_asked_of_the_disk(name: str) -> None:
    for place, template in all_pods(name).items():
        (container,) = template["spec"]["containers"]
        asked = gibibytes(container["resources"]["limits"]["ephemeral-storage"])
        memory = gibibytes(container["resources"]["limits"]["memory"])
        for volume in template["spec"]["volumes"]:
            if "emptyDir" in volume:
                bound = memory if volume["emptyDir"].get("medium") else asked
                assert gibibytes(volume["emptyDir"]["sizeLimit"]) <= bound, place


def gibibytes(quantity: str) -> float:
    number, unit = float(quantity[:-2]), quantity[-2:]
    return number / {"Gi": 1, "Mi": 1024}[unit]


@pytest.mark.parametrize("name", APPLIED)
def test_rays_objects_fit_the_shared_memory_of_their_pod(name: str) -> None:
    for obj in of_kind(name, "RayService", "RayJob"):
        for group in values_of(obj, "rayStartParams"):
            assert "object-store-memory" in group
        spec = obj["spec"].get("rayClusterConfig") or obj["spec"]["rayClusterSpec"]
        for group in [spec["headGroupSpec"], *spec["workerGroupSpecs"]]:
            pod = group["template"]["spec"]
            (shared,) = [v for v in pod["volumes"] if v["name"] == "shared-memory"]
            store = int(group["rayStartParams"]["object-store-memory"]) / 2**30
            assert store < gibibytes(shared["emptyDir"]["sizeLimit"])


@pytest.mark.parametrize("name", OVERLAYS)
def test_services_and_budgets_select_pods_that_are_there(name: str) -> None:
    pods = list(all_pods(name).values())
    for obj in of_kind(name, "Service", "PodDisruptionBudget"):
        selector = obj["spec"]["selector"]
        wanted = selector.get("matchLabels", selector)
        chosen = [p for p in pods if wanted.items() <= p["metadata"]["labels"].items()]
        assert chosen, obj["metadata"]["name"]
        for port in obj["spec"].get("ports", []):
            for pod in chosen:
                names = {p["name"] for c in pod["spec"]["containers"] for p in c["ports"]}
                assert port["targetPort"] in names


def test_a_drain_of_nodes_leaves_whole_numbers_of_pods_that_are_fewer_than_there_are() -> None:
    (service,) = of_kind("pubmed", "RayService")
    groups = service["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    replicas = {group["groupName"]: group["minReplicas"] for group in groups}
    budgets = of_kind("pubmed", "PodDisruptionBudget")
    assert budgets
    for budget in budgets:
        spec = budget["spec"]
        left = spec["minAvailable"]
        assert isinstance(left, int)
        assert 0 < left < replicas[spec["selector"]["matchLabels"]["ray.io/group"]]


@pytest.mark.parametrize("name", OVERLAYS)
def test_prometheus_finds_the_service_that_it_monitors(name: str) -> None:
    (monitor,) = of_kind(name, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = [
        obj
        for obj in of_kind(name, "Service")
        if wanted.items() <= obj["metadata"].get("labels", {}).items()
    ]
    (service,) = services
    ports = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports


@pytest.mark.parametrize("name", OVERLAYS)
def test_grafana_gets_the_dashboard_as_it_is(name: str) -> None:
    (found,) = [o for o in of_kind(name, "ConfigMap") if "citeray.json" in o["data"]]
    shipped = (K8S.parent / "configs/grafana/citeray.json").read_text(encoding="utf-8")
    assert found["data"]["citeray.json"] == shipped
    assert found["metadata"]["labels"] == {"grafana_dashboard": "1"}
