"""What the manifests name is there, and each pod has what it may have and no more."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from serve.graph.run_graph import PROXY_ENVIRONMENT
from tests.k8s.chart import (
    APPLIED,
    K8S,
    SECRETS,
    SERVING,
    all_pods,
    all_values,
    cluster_spec,
    cores,
    gibibytes,
    of_kind,
    render,
    rendered,
)
from tests.k8s.chart import values_of as chart_values

WALK_THROUGH = (K8S / "README.md").read_text(encoding="utf-8")
VERSION = re.search(
    r'^fallback_version = "(.+)"', (K8S.parent / "pyproject.toml").read_text(encoding="utf-8"), re.M
)


def containers(name: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{place}/{container['name']}", container)
        for place, template in all_pods(name).items()
        for container in [
            *template["spec"].get("initContainers", []),
            *template["spec"]["containers"],
        ]
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
            if "persistentVolumeClaim" in volume and volume["name"] == "models":
                # Those that use models do not change them; see values-kind.yaml.
                filling = place.startswith("Job/citeray-models")
                read_only = all_values(name)["storage"]["models"]["readOnly"]
                claim = volume["persistentVolumeClaim"]
                assert claim.get("readOnly", False) == (read_only and not filling), place
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
    rays = of_kind(name, "RayService", "RayJob")
    named |= {secret for obj in rays for secret in values_of(obj, "secretName")}
    assert named
    assert named <= set(SECRETS)
    for secret in named:
        assert f"kubectl create secret generic {secret}" in WALK_THROUGH
    assert of_kind(name, "Secret") == []


@pytest.mark.parametrize("name", APPLIED)
def test_no_secret_is_a_value(name: str) -> None:
    for place, container in containers(name):
        for entry in container.get("env", []):
            secret = re.search(r"KEY|TOKEN|PASSWORD|SECRET", entry["name"])
            assert not (secret and "value" in entry), (place, entry["name"])


@pytest.mark.parametrize("name", SERVING)
def test_every_ray_node_that_can_have_a_proxy_has_its_environment(name: str) -> None:
    [service] = of_kind(name, "RayService")
    cluster = service["spec"]["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        [container] = group["template"]["spec"]["containers"]
        given = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert given | PROXY_ENVIRONMENT == given, container["name"]


@pytest.mark.parametrize("name", APPLIED)
def test_every_image_is_of_one_version(name: str) -> None:
    assert VERSION is not None
    for place, container in containers(name):
        image, _, tag = container["image"].rpartition(":")
        assert tag not in ("", "latest"), place
        if image == "registry.example/citeray":
            assert tag in (f"{VERSION[1]}-cpu", f"{VERSION[1]}-gpu"), place
            assert tag in WALK_THROUGH, place


def test_images_are_named_by_their_digests_where_these_are_given() -> None:
    found = {c["image"].rpartition("@")[2] for _, c in containers("gateway") if "@" in c["image"]}
    assert found == {f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"}
    for place, template in all_pods("gateway").items():
        assert template["spec"]["imagePullSecrets"] == [{"name": "registry"}], place


def test_the_redis_is_one_without_known_holes() -> None:
    # CVE-2025-49844 and those before it were mended in 7.2.11.
    (redis,) = of_kind("pubmed", "StatefulSet")
    (container,) = redis["spec"]["template"]["spec"]["containers"]
    found = re.search(r"redis:(\d+)\.(\d+)\.(\d+)", container["image"])
    assert found
    assert tuple(map(int, found.groups())) >= (7, 2, 11)


@pytest.mark.parametrize("name", APPLIED)
def test_the_gpu_image_runs_where_gpus_are_asked_for_and_nowhere_else(name: str) -> None:
    # Under NVIDIA's legacy runtime it would get every GPU of a node without asking for one.
    for place, container in containers(name):
        if "/wait-" in place or "/write-" in place:
            continue
        asks = "nvidia.com/gpu" in container["resources"]["limits"]
        digest = container["image"].endswith("b" * 64)
        assert (container["image"].endswith("-gpu") or digest) == asks, place


@pytest.mark.parametrize("name", APPLIED)
def test_a_pod_that_claims_an_accelerator_is_kept_to_nodes_that_have_it(name: str) -> None:
    for service in of_kind(name, "RayService"):
        for group in cluster_spec(service)["workerGroupSpecs"]:
            if group.get("resources"):
                pod = group["template"]["spec"]
                affinity = pod.get("affinity", {}).get("nodeAffinity", {})
                required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
                assert pod.get("nodeSelector") or required, group["groupName"]


@pytest.mark.parametrize("name", APPLIED)
def test_every_container_has_bounds_and_no_rights(name: str) -> None:
    for place, container in containers(name):
        resources = container["resources"]
        for what, asked in resources["requests"].items():
            if what == "cpu":
                assert cores(asked) <= cores(resources["limits"][what]), place
            else:
                # What is not asked for is not there when it is needed.
                assert asked == resources["limits"][what], place
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
            assert len({m["mountPath"] for m in container["volumeMounts"]}) == len(
                container["volumeMounts"]
            ), place
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


@pytest.mark.parametrize("name", SERVING)
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


@pytest.mark.parametrize("name", SERVING)
def test_grafana_gets_the_dashboard_as_it_is(name: str) -> None:
    maps = [o for o in of_kind(name, "ConfigMap") if "citeray.json" in o["data"]]
    if not all_values(name)["monitoring"]["enabled"]:
        assert maps == []
        return
    (found,) = maps
    shipped = (K8S.parent / "configs/grafana/citeray.json").read_text(encoding="utf-8")
    assert found["data"]["citeray.json"].strip() == shipped.strip()
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"


@pytest.mark.parametrize("name", SERVING)
def test_a_pod_that_is_to_end_hands_over_before_it_is_killed(name: str) -> None:
    (service,) = of_kind(name, "RayService")
    for group in cluster_spec(service)["workerGroupSpecs"]:
        spec = group["template"]["spec"]
        command = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
        waits = re.search(r"^sleep (\d+)$", command, re.M)
        drains = re.search(r"^ray drain-node .*--deadline-remaining-seconds (\d+)", command, re.M)
        assert waits
        assert drains
        assert int(drains[1]) <= int(waits[1]) < spec["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", SERVING)
def test_pods_of_one_cluster_are_spread_whatever_another_has(name: str) -> None:
    (service,) = of_kind(name, "RayService")
    for group in cluster_spec(service)["workerGroupSpecs"]:
        (spread,) = group["template"]["spec"]["topologySpreadConstraints"]
        assert spread["matchLabelKeys"] == ["ray.io/cluster"]
        assert spread["labelSelector"]["matchLabels"] == {"ray.io/group": group["groupName"]}


@pytest.mark.parametrize("name", APPLIED)
def test_builds_and_updates_make_room_for_the_service(name: str) -> None:
    values = {p["metadata"]["name"]: p["value"] for p in of_kind(name, "PriorityClass")}
    for place, template in all_pods(name).items():
        serves = place.startswith(("RayService", "StatefulSet"))
        wanted = "citeray-service" if serves else "citeray-batch"
        assert template["spec"]["priorityClassName"] == wanted, place
    assert values["citeray-service"] > values["citeray-batch"]


def test_a_new_version_of_the_chart_makes_no_new_ray_cluster() -> None:
    for place, template in all_pods("pubmed").items():
        labels = template["metadata"]["labels"]
        assert {"helm.sh/chart", "app.kubernetes.io/version"}.isdisjoint(labels), place


@pytest.mark.parametrize(
    ("more", "changes"),
    [({"settings": {"serve": {"follow_s": 20}}}, True), ({"corpus": {"citations": 5}}, False)],
)
def test_other_settings_make_another_ray_cluster(more: dict[str, Any], changes: bool) -> None:
    def cluster(objects: list[dict[str, Any]]) -> Any:
        return next(cluster_spec(o) for o in objects if o["kind"] == "RayService")

    before = cluster(list(rendered("pubmed")))
    assert (cluster(render(chart_values("pubmed", **more))) != before) == changes


def test_other_models_are_fetched_by_another_job_and_waited_for() -> None:
    def found(objects: list[dict[str, Any]]) -> tuple[str, set[str]]:
        (job,) = [o for o in objects if o["kind"] == "Job"]
        waits = set(re.findall(r"\.filled-[0-9a-f]{10}", json.dumps(objects)))
        return job["metadata"]["name"], waits

    name, (mark,) = found(list(rendered("pubmed")))
    model = {"encoder": {"name": "org/other", "revision": "a" * 40}}
    other, (other_mark,) = found(render(chart_values("pubmed", models=model)))
    assert (other, other_mark) != (name, mark)
    assert other != name
    assert other_mark != mark
    # More memory for the Job is another Job, but the models that pods wait for are the same.
    sizes = {"fillModels": {"memory": "6Gi"}}
    other, (other_mark,) = found(render(chart_values("pubmed", sizes=sizes)))
    assert other != name
    assert other_mark == mark


def test_without_the_cache_each_pod_has_disk_for_its_models() -> None:
    sizes = all_values("gateway")["sizes"]
    (service,) = of_kind("gateway", "RayService")
    for group in cluster_spec(service)["workerGroupSpecs"]:
        pod = group["template"]["spec"]
        size = sizes[group["groupName"]]
        asked = pod["containers"][0]["resources"]["requests"]["ephemeral-storage"]
        assert gibibytes(asked) == gibibytes(size["disk"]) + gibibytes(size["modelDisk"])
        assert "initContainers" not in pod
    assert of_kind("gateway", "Job") == []


@pytest.mark.parametrize(("name", "backend"), [("gateway", "HTTPRoute"), ("ingress", "Ingress")])
def test_what_is_exposed_is_the_operators_service_over_tls(name: str, backend: str) -> None:
    (route,) = of_kind(name, backend)
    assert "citeray-serve-svc" in json.dumps(route["spec"])
    assert "citeray.example.org" in json.dumps(route["spec"])
    ending = route if backend == "Ingress" else of_kind(name, "Gateway")[0]
    assert "citeray-tls" in json.dumps(ending["spec"])


def test_every_secret_can_come_from_elsewhere() -> None:
    made = {o["spec"]["target"]["name"] for o in of_kind("gateway", "ExternalSecret")}
    assert made == set(SECRETS)


def test_a_queue_is_named_by_builds_and_by_every_update() -> None:
    for job in of_kind("gateway", "RayJob"):
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "batch"
    for job in of_kind("pubmed/build", "RayJob"):
        assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]
