"""Pods of the chart: security, secrets, images, resources, placement and probes."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.k8s.chart import (
    DIGESTS,
    IDENTITY,
    SECRETS,
    all_values,
    by_container,
    by_object,
    by_pod,
    cluster_spec,
    cores,
    gibibytes,
    matches,
    named,
    of_kind,
    pod_templates,
    rendered,
    values_for_key,
)
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

NO_RIGHTS = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
# Keys in `sizes` of pods whose name differs from that of their worker group.
SIZE_OF = {
    "RayService/citeray/head": "head",
    "RayJob/citeray-build/head": "buildHead",
    "RayJob/citeray-update/head": "updateHead",
    "Job/citeray-models/pod": "fillModels",
    "StatefulSet/citeray-redis/replica": "redis",
    "StatefulSet/citeray-object-store/replica": "objectStore",
}
WORKERS = ("retrieval", "models", "llm", "build", "update")
ACCOUNTS = {
    "RayService/citeray/head": "citeray-head",
    "CronJob/citeray-update/job": "citeray-update",
    "StatefulSet/citeray-redis/replica": None,
    "StatefulSet/citeray-object-store/replica": None,
}
OURS = "registry.example/citeray"


def size_of(where: str) -> str:
    return SIZE_OF.get(where, where.rpartition("/")[2])


def test_pods_and_containers_have_no_rights() -> None:
    found = by_container(lambda container: container["securityContext"])
    assert found == dict.fromkeys(found, NO_RIGHTS)
    scaled = by_object(lambda _, obj: values_for_key(obj, "autoscalerOptions"), "RayService")
    contexts = [options["securityContext"] for found in scaled.values() for options in found]
    assert contexts
    assert all(context == NO_RIGHTS for context in contexts)

    def security(_case: str, _place: str, template: dict[str, Any]) -> tuple:
        spec = template["spec"]
        user = spec["securityContext"]
        shared = {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        shared |= {"hostPath" for volume in spec["volumes"] if "hostPath" in volume}
        return user["runAsNonRoot"], user["runAsUser"] > 0, user["seccompProfile"], shared

    found = by_pod(security)
    assert found == dict.fromkeys(found, (True, True, {"type": "RuntimeDefault"}, set()))


def test_service_accounts_exist_and_only_api_clients_get_a_token() -> None:
    def account(case: str, _place: str, template: dict[str, Any]) -> tuple:
        name = template["spec"].get("serviceAccountName")
        there = {obj["metadata"]["name"] for obj in of_kind(case, "ServiceAccount")} | {None}
        return name, name in there, template["spec"]["automountServiceAccountToken"]

    def wanted(case: str, where: str, template: dict[str, Any]) -> tuple:
        token = "citeray/asks-api-server" in template["metadata"]["labels"]
        if where == "RayService/citeray/head":
            (service,) = of_kind(case, "RayService")
            assert token == bool(cluster_spec(service).get("enableInTreeAutoscaling")), case
        return ACCOUNTS.get(where, "citeray-worker"), True, token

    assert by_pod(account) == by_pod(wanted)
    made = [obj["metadata"] for obj in of_kind("gateway", "ServiceAccount")]
    identified = {own["name"] for own in made if own.get("annotations") == IDENTITY}
    assert identified == {"citeray-head", "citeray-worker"}
    (role,), (binding,) = of_kind("pubmed", "Role"), of_kind("pubmed", "RoleBinding")
    ray_jobs = {"apiGroups": ["ray.io"], "resources": ["rayjobs"]}
    own = {"resourceNames": ["citeray-update"], "verbs": ["get", "delete"]}
    assert role["rules"] == [{**ray_jobs, "verbs": ["create"]}, {**ray_jobs, **own}]
    user = {"kind": "ServiceAccount", "name": "citeray-update", "namespace": "citeray"}
    assert (binding["subjects"], binding["roleRef"]["name"]) == ([user], "citeray-update")


def test_secrets_are_references_that_the_guide_creates() -> None:
    def values(container: dict[str, Any]) -> list[str]:
        arguments = " ".join([*container.get("command", []), *container.get("args", [])])
        secret = re.compile("KEY|TOKEN|PASSWORD|SECRET")
        return re.findall(r"--requirepass|redis-cli .*-a ", arguments) + [
            entry["name"]
            for entry in container.get("env", [])
            if secret.search(entry["name"]) and "secretKeyRef" not in entry.get("valueFrom", {})
        ]

    def names(_case: str, obj: dict[str, Any]) -> set[str]:
        found = values_for_key(obj, "secretKeyRef") + values_for_key(obj, "secretRef")
        options = values_for_key(obj, "authOptions")
        return {ref["name"] for ref in found} | {option["secretName"] for option in options}

    found = by_container(values)
    assert found == {key: [] for key in found}
    kinds = ("RayService", "RayJob", "Job", "CronJob", "StatefulSet")
    assert set().union(*by_object(names, *kinds).values()) == set(SECRETS)
    assert by_object(names, "Secret") == {}
    guide = (K8S / "README.md").read_text(encoding="utf-8")
    made = {obj["spec"]["target"]["name"] for obj in of_kind("gateway", "ExternalSecret")}
    for name in SECRETS:
        assert f"kubectl create secret generic {name}" in guide
        assert name in made


def test_images_are_pinned_and_gpu_images_run_only_on_gpus() -> None:
    project = (K8S.parent / "pyproject.toml").read_text(encoding="utf-8")
    (version,) = re.findall(r'^fallback_version = "(.+)"', project, re.M)
    ours = {kind: {f"{OURS}:{version}-{kind}", f"{OURS}@{DIGESTS[kind]}"} for kind in DIGESTS}
    pinned = re.compile(r":[\w.-]*\d+\.\d+[\w.-]*$|:RELEASE\.[\w-]+$")

    def is_right(container: dict[str, Any]) -> bool:
        kind = "gpu" if "nvidia.com/gpu" in container["resources"]["limits"] else "cpu"
        image = container["image"]
        return image in ours[kind] if image.startswith(OURS) else bool(pinned.search(image))

    assert [name for name, right in by_container(is_right, init=False).items() if not right] == []
    secrets = by_pod(lambda _case, _place, pod: pod["spec"].get("imagePullSecrets"))
    assert {str(s) for name, s in secrets.items() if "gateway:" in name} == {
        "[{'name': 'registry'}]"
    }


def test_resources_are_bounded() -> None:
    def is_bounded(container: dict[str, Any]) -> bool:
        resources = container["resources"]
        requests, limits = dict(resources["requests"]), dict(resources["limits"])
        # Cores may be overcommitted; memory, disk and GPUs may not.
        assert cores(requests.pop("cpu")) <= cores(limits.pop("cpu"))
        return requests == limits and {"memory", "ephemeral-storage"} <= set(limits)

    def too_large(_case: str, _place: str, template: dict[str, Any]) -> list[str]:
        limits = template["spec"]["containers"][0]["resources"]["limits"]
        return [
            volume["name"]
            for volume in template["spec"]["volumes"]
            if (folder := volume.get("emptyDir"))
            and gibibytes(folder["sizeLimit"])
            > gibibytes(limits["memory" if folder.get("medium") else "ephemeral-storage"])
        ]

    def fits_shared_memory(_case: str, obj: dict[str, Any]) -> bool:
        cluster, found = cluster_spec(obj), []
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
            volumes = {v["name"]: v for v in group["template"]["spec"]["volumes"]}
            size = gibibytes(volumes["shared-memory"]["emptyDir"]["sizeLimit"]) * 2**30
            found.append(int(group["rayStartParams"]["object-store-memory"]) < size)
        return all(found)

    assert [name for name, right in by_container(is_bounded).items() if not right] == []
    assert {name: found for name, found in by_pod(too_large).items() if found} == {}
    stores = by_object(fits_shared_memory, "RayService", "RayJob")
    assert stores == dict.fromkeys(stores, True)


def test_resources_match_the_values() -> None:
    def given(_case: str, _place: str, template: dict[str, Any]) -> tuple:
        resources = template["spec"]["containers"][0]["resources"]
        limits = resources["limits"]
        cpu = (cores(resources["requests"]["cpu"]), cores(limits["cpu"]))
        disk = gibibytes(limits["ephemeral-storage"])
        return *cpu, limits["memory"], disk, limits.get("nvidia.com/gpu", "0")

    def wanted(case: str, where: str, template: dict[str, Any]) -> tuple:
        values = all_values(case)
        if where.startswith("CronJob"):
            return given(case, where, template)
        size = values["sizes"][size_of(where)]
        disk = gibibytes(size["disk"])
        if not values["storage"]["models"]["enabled"]:
            disk += gibibytes(size.get("modelDisk", "0Gi"))
        cpu = (size["cpu"], size.get("cores", size["cpu"]))
        return *cpu, size["memory"], disk, str(size.get("gpu", 0))

    assert by_pod(given) == by_pod(wanted)


def test_workers_without_the_shared_cache_have_their_own_model_folder() -> None:
    """Workers fetch models by name; heads run neither tasks nor stages that load one."""
    case = "gateway"
    values = all_values(case)
    assert not values["storage"]["models"]["enabled"]
    for obj in of_kind(case, "RayService", "RayJob"):
        assert cluster_spec(obj)["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        for place, template in pod_templates(obj).items():
            if place.endswith("/submitter"):
                continue
            mounts = template["spec"]["containers"][0]["volumeMounts"]
            own = {"name": "scratch", "mountPath": "/models", "subPath": "models"}
            assert [mount for mount in mounts if mount["mountPath"] == "/models"] == [own]
            room = gibibytes(values["sizes"][size_of(place)].get("modelDisk", "0Gi"))
            assert (room > 0) == (not place.endswith("/head")), place
    assert of_kind(case, "Job") == []
    assert "claimName: citeray-models" not in yaml.safe_dump_all(rendered(case))


def test_pods_are_placed_according_to_the_values() -> None:
    def given(case: str, where: str, template: dict[str, Any]) -> dict[str, Any]:
        spec = template["spec"]
        terms = values_for_key(spec.get("affinity", {}), "matchExpressions")
        return {
            "nodeSelector": spec.get("nodeSelector", {}),
            "tolerations": spec.get("tolerations", []),
            "nodeAffinity": terms[0] if terms else [],
            "priority": spec["priorityClassName"],
            "spread": values_for_key(spec, "matchLabelKeys") + [
                spread["labelSelector"]["matchLabels"]
                for spread in spec.get("topologySpreadConstraints", [])
            ],
        }  # fmt: skip

    def wanted(case: str, where: str, template: dict[str, Any]) -> dict[str, Any]:
        part = where.rpartition("/")[2]
        serves = where.startswith(("RayService", "StatefulSet"))
        spread = [["ray.io/cluster"], {"ray.io/group": part}]
        return {
            **all_values(case)["scheduling"][part if part in WORKERS else "system"],
            "priority": "citeray-service" if serves else "citeray-batch",
            "spread": spread if where.startswith("RayService") and part in WORKERS else [],
        }

    assert by_pod(given) == by_pod(wanted)
    classes = by_object(lambda _, obj: obj["value"], "PriorityClass")
    service = {name: value for name, value in classes.items() if name.endswith("citeray-service")}
    assert len(service) * 2 == len(classes)
    for name, value in service.items():
        assert value > classes[name.replace("-service", "-batch")], name


def test_stateful_sets_have_probes_and_services() -> None:
    def given(case: str, obj: dict[str, Any]) -> tuple:
        (container,) = obj["spec"]["template"]["spec"]["containers"]
        probes = {key: container[key] for key in container if key.endswith("Probe")}
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert set(values_for_key(probes, "port")) <= set(ports)
        assert matches(obj["spec"]["selector"], obj["spec"]["template"]["metadata"]["labels"])
        service = named(case, "Service", obj["spec"]["serviceName"])
        (port,) = service["spec"]["ports"]
        return sorted(probes), port["port"], ports[port["targetPort"]]

    found = by_object(given, "StatefulSet")
    redis = (["livenessProbe", "readinessProbe", "startupProbe"], 6379, 6379)
    store = (["readinessProbe"], 9000, 9000)
    assert found == {name: store if "object-store" in name else redis for name in found}
    assert set(map(str, found.values())) == {str(redis), str(store)}
