"""References between objects resolve, and Ray objects follow the values."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.k8s.chart import (
    CASES,
    all_pods,
    all_values,
    by_object,
    by_pod,
    cluster_spec,
    groups,
    matches,
    named,
    of_kind,
    render,
    rendered,
    values_for_key,
    values_of,
)

pytestmark = pytest.mark.process

RAY_FOLDERS = {"/models", "/cache", "/home/citeray", "/app/.citeray", "/dev/shm"}


def test_volumes_and_mounts_resolve() -> None:
    def problems(case: str, place: str, template: dict[str, Any]) -> list[str]:
        there = {f"{obj['kind']}/{obj['metadata']['name']}" for obj in rendered(case)}
        spec, found = template["spec"], []
        volumes = {volume["name"] for volume in spec["volumes"]}
        if place.startswith("StatefulSet"):
            obj = named(case, "StatefulSet", place.split("/")[1])
            volumes |= {c["metadata"]["name"] for c in obj["spec"]["volumeClaimTemplates"]}
        names = [f"ConfigMap/{m['name']}" for m in values_for_key(spec["volumes"], "configMap")]
        claims = values_for_key(spec["volumes"], "persistentVolumeClaim")
        names += [f"PersistentVolumeClaim/{claim['claimName']}" for claim in claims]
        found += [f"no {name}" for name in names if name not in there]
        for claim in claims:
            # Only the Job that fills the model cache may write to it; see values-kind.yaml.
            shared = all_values(case)["storage"]["models"]["readOnly"] and place[:4] != "Job/"
            wanted = shared and claim["claimName"] == "citeray-models"
            found += ["models not read-only"] if claim.get("readOnly", False) != wanted else []
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
            needed = {"/tmp"} | (RAY_FOLDERS if container["name"].startswith("ray-") else set())
            if not (needed <= set(mounts) and set(mounts.values()) <= volumes):
                found.append(f"{container['name']} mounts {mounts}")
        return found

    found = by_pod(problems)
    assert found == {key: [] for key in found}


def test_services_and_addresses_resolve() -> None:
    def ends(case: str, obj: dict[str, Any]) -> list[bool]:
        selector = obj["spec"]["selector"].items()
        pods = [p for p in all_pods(case).values() if selector <= p["metadata"]["labels"].items()]
        (port,) = obj["spec"]["ports"]
        return [port["targetPort"] in [p["name"] for p in pod["spec"]["containers"][0]["ports"]]
                for pod in pods]  # fmt: skip

    found = by_object(ends, "Service")
    assert found == {key: [True] for key in found}
    for case in CASES:
        services = {f"{o['metadata']['name']}:{o['spec']['ports'][0]['port']}"
                    for o in of_kind(case, "Service")}  # fmt: skip
        used = re.findall(r"\bciteray-(?:redis|object-store):\d+", json.dumps(rendered(case)))
        assert set(used) <= services, case
    (route,), (gateway,) = of_kind("gateway", "HTTPRoute"), of_kind("gateway", "Gateway")
    (ingress,) = of_kind("ingress", "Ingress")
    backend = {"name": "citeray-serve-svc", "port": 8000}
    assert values_for_key(route, "backendRefs") == [[backend]]
    assert values_for_key(ingress, "service") == [{**backend, "port": {"number": 8000}}]
    assert values_for_key(gateway, "certificateRefs")[0][0]["name"] == "citeray-tls"
    assert values_for_key(ingress, "secretName") == ["citeray-tls"]
    assert route["spec"]["hostnames"] == values_for_key(gateway, "hostname")
    assert values_for_key(ingress, "host") == route["spec"]["hostnames"] == ["citeray.example.org"]


def test_disruption_budgets_keep_all_but_one_pod() -> None:
    def given(case: str, obj: dict[str, Any]) -> tuple:
        selected = [place for place, pod in all_pods(case).items()
                    if matches(obj["spec"]["selector"], pod["metadata"]["labels"])]  # fmt: skip
        return selected, obj["spec"]["minAvailable"]

    wanted = {
        f"{case}: PodDisruptionBudget/citeray-{name}": (
            [f"RayService/citeray/{name}"],
            group["replicas"] - 1,
        )
        for case in CASES
        if all_values(case)["disruptions"]["enabled"]
        for service in of_kind(case, "RayService")
        for name, group in groups(service).items()
        if group["replicas"] > 1
    }
    assert wanted
    assert by_object(given, "PodDisruptionBudget") == wanted


def drains_in_time(group: dict[str, Any]) -> bool:
    """Return whether a pod hands over its replicas before it is killed."""
    spec = group["template"]["spec"]
    command = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
    drain = re.search(r"^ray drain-node .*--deadline-remaining-seconds (\d+)", command, re.M)
    sleep = re.search(r"^sleep (\d+)$", command, re.M)
    assert drain
    assert sleep
    return bool(int(drain[1]) <= int(sleep[1]) < spec["terminationGracePeriodSeconds"])


def test_worker_groups_scale_as_the_values_say() -> None:
    def given(_case: str, obj: dict[str, Any]) -> dict[str, tuple]:
        cluster, serves = cluster_spec(obj), obj["kind"] == "RayService"
        found: dict[str, Any] = {
            name: ([group[key] for key in ("minReplicas", "replicas", "maxReplicas")],
                   group.get("resources", {}), group.get("labels", {}),
                   drains_in_time(group) if serves else True)
            for name, group in groups(obj).items()
        }  # fmt: skip
        head = cluster["headGroupSpec"]["rayStartParams"]["num-cpus"]
        scales = bool(cluster.get("enableInTreeAutoscaling"))
        spec = obj["spec"]
        serve = (
            (spec["excludeHeadPodFromServeSvc"], spec["upgradeStrategy"]["type"]) if serves else ()
        )
        return {**found, "cluster": (head, scales, *serve)}

    def wanted(case: str, obj: dict[str, Any]) -> dict[str, tuple]:
        values, found = all_values(case), {}
        upgrade, scales = values["service"]["upgrade"]["type"], False
        serves = obj["kind"] == "RayService"
        names = ("retrieval", "models", "llm") if serves else (obj["metadata"]["name"][8:],)
        for name in names:
            size = values["sizes"][name]
            if size["replicas"] == 0:
                continue
            accelerator = size.get("accelerator")
            found[name] = ([size["replicas"]] * 2 + [size["maxReplicas"]],
                           {f"accelerator_type:{accelerator}": "1"} if accelerator else {},
                           {"citeray/pool": name} if serves else {}, True)  # fmt: skip
            scales |= serves and size["maxReplicas"] > size["replicas"]
        scales |= serves and upgrade == "NewClusterWithIncrementalUpgrade"
        return {**found, "cluster": ("0", scales, *((True, upgrade) if serves else ()))}

    assert by_object(given, "RayService", "RayJob") == by_object(wanted, "RayService", "RayJob")


def test_jobs_end_in_time_and_updates_never_overlap() -> None:
    def given(case: str, obj: dict[str, Any]) -> tuple:
        spec = obj["spec"]
        queue = obj["metadata"]["labels"].get("kueue.x-k8s.io/queue-name", "")
        limits = (spec["activeDeadlineSeconds"], spec["backoffLimit"])
        return *limits, spec["entrypoint"], spec["shutdownAfterJobFinishes"], queue

    def wanted(case: str, obj: dict[str, Any]) -> tuple:
        values, name = all_values(case), obj["metadata"]["name"].removeprefix("citeray-")
        assert f"{name}.sh" in named(case, "ConfigMap", "citeray-settings")["data"]
        limits = (values[name]["deadlineSeconds"], values[name]["retries"])
        return *limits, f"sh /etc/citeray/{name}.sh", True, values["kueue"]["buildQueue"]

    assert by_object(given, "RayJob") == by_object(wanted, "RayJob")
    for case in CASES:
        for spec in (obj["spec"] for obj in of_kind(case, "CronJob")):
            update, job = all_values(case)["update"], spec["jobTemplate"]["spec"]
            assert (spec["schedule"], spec["timeZone"]) == (update["schedule"], "Etc/UTC")
            assert (spec["concurrencyPolicy"], job["backoffLimit"]) == ("Forbid", 0)
            assert job["activeDeadlineSeconds"] > update["deadlineSeconds"]
        claim = named(case, "PersistentVolumeClaim", "citeray-batches")["metadata"]
        assert claim["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_only_changes_that_matter_restart_pods() -> None:
    def found(**more: Any) -> tuple[Any, str, set[str]]:
        objects = render(values_of("pubmed", **more))
        (job,) = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "Job"]
        (service,) = [obj for obj in objects if obj["kind"] == "RayService"]
        marks = set(re.findall(r"\.filled-[0-9a-f]{10}", json.dumps(objects)))
        assert len(marks) == 1
        return cluster_spec(service), job, marks

    cluster, job, marks = found()
    assert found(corpus={"citations": 5}) == (cluster, job, marks)
    assert found(settings={"serve": {"follow_s": 20}})[0] != cluster
    encoder = {"name": "org/other", "revision": "a" * 40}
    others = found(models={"encoder": encoder})
    assert all(one != other for one, other in zip(others, (cluster, job, marks), strict=True))
    # A Job cannot be changed, so more memory makes a new one; the models stay the same.
    _, other_job, other_marks = found(sizes={"fillModels": {"memory": "6Gi"}})
    assert (other_job != job, other_marks) == (True, marks)
    labels = by_pod(lambda _case, _place, pod: pod["metadata"]["labels"]).values()
    assert {"helm.sh/chart", "app.kubernetes.io/version"}.isdisjoint(set().union(*labels))
    assert of_kind("gateway", "Job") == []
