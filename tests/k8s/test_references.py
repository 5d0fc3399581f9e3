"""References between objects resolve; Ray's workers, jobs and updates end as they should."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

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
    def problems(case: str, where: str, template: dict[str, Any]) -> list[str]:
        there = {f"{obj['kind']}/{obj['metadata']['name']}" for obj in rendered(case)}
        spec, found = template["spec"], []
        volumes = {volume["name"] for volume in spec["volumes"]}
        if where.startswith("StatefulSet"):
            obj = named(case, "StatefulSet", where.split("/")[1])
            volumes |= {c["metadata"]["name"] for c in obj["spec"]["volumeClaimTemplates"]}
        names = [f"ConfigMap/{m['name']}" for m in values_for_key(spec["volumes"], "configMap")]
        claims = values_for_key(spec["volumes"], "persistentVolumeClaim")
        names += [f"PersistentVolumeClaim/{claim['claimName']}" for claim in claims]
        found += [f"no {name}" for name in names if name not in there]
        for claim in claims:
            # Only the Job that fills the model cache may write to it, as values-kind.yaml explains.
            shared = all_values(case)["storage"]["models"]["readOnly"] and where[:4] != "Job/"
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
    (service,) = of_kind("pubmed", "RayService")
    for name, group in groups(service).items():
        if group["replicas"] > 1:
            spec = named("pubmed", "PodDisruptionBudget", f"citeray-{name}")["spec"]
            selected = [place for place, pod in all_pods("pubmed").items()
                        if matches(spec["selector"], pod["metadata"]["labels"])]  # fmt: skip
            assert selected == [f"RayService/citeray/{name}"]
            assert spec["minAvailable"] == group["replicas"] - 1


def test_workers_hand_over_their_replicas_before_they_are_killed() -> None:
    for case in CASES:
        for service in of_kind(case, "RayService"):
            # No replica runs on the head, which is never drained.
            assert cluster_spec(service)["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
            for group in groups(service).values():
                spec = group["template"]["spec"]
                hook = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1]
                pattern = r"^ray drain-node .*--deadline-remaining-seconds (\d+)"
                (drain,) = re.findall(pattern, hook, re.M)
                (sleep,) = re.findall(r"^sleep (\d+)$", hook, re.M)
                assert int(drain) <= int(sleep) < spec["terminationGracePeriodSeconds"], case


def test_updates_never_overlap_and_volumes_outlive_the_chart() -> None:
    for case in CASES:
        for spec in (obj["spec"] for obj in of_kind(case, "CronJob")):
            update, job = all_values(case)["update"], spec["jobTemplate"]["spec"]
            assert (spec["concurrencyPolicy"], job["backoffLimit"]) == ("Forbid", 0)
            assert job["activeDeadlineSeconds"] > update["deadlineSeconds"]
        claim = named(case, "PersistentVolumeClaim", "citeray-batches")["metadata"]
        assert claim["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_only_relevant_changes_restart_pods() -> None:
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
    # Jobs are immutable, so more memory makes a new Job; the models stay the same.
    _, other_job, other_marks = found(sizes={"fillModels": {"memory": "6Gi"}})
    assert (other_job != job, other_marks) == (True, marks)


def test_shards_run_on_retrieval_pods_if_there_are_any() -> None:
    for replicas, pool in ((0, "models"), (1, "retrieval")):
        sizes = {"retrieval": {"replicas": replicas, "maxReplicas": replicas}}
        objects = render(values_of("pubmed", sizes=sizes))
        (settings,) = [o for o in objects if o["metadata"]["name"] == "citeray-settings"]
        stages = yaml.safe_load(settings["data"]["settings.yaml"])["serve"]
        assert stages["shard"] == {"pool": pool}


def test_compaction_runs_on_the_nodes_of_an_update() -> None:
    values = {**values_of("pubmed"), "compact": {"enabled": True, "options": ["--json"]}}
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in render(values)}
    job, update = (objects["RayJob", f"citeray-{name}"]["spec"] for name in ("compact", "update"))
    assert job["entrypoint"] == "sh /etc/citeray/compact.sh"
    assert job["rayClusterSpec"] == update["rayClusterSpec"]
    script = objects["ConfigMap", "citeray-settings"]["data"]["compact.sh"]
    assert script.splitlines()[-1] == (
        "citeray index compact --prune --config /etc/citeray/settings.yaml --json"
    )
    assert ("RayJob", "citeray-compact") not in {
        (obj["kind"], obj["metadata"]["name"]) for obj in render(values_of("pubmed"))
    }
