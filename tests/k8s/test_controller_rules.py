"""What KubeRay's operator refuses although its CRDs let it through."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.k8s.chart import APPLIED, K8S, cluster_spec, of_kind
from tests.k8s.kuberay_rules import faults

HEAD = "rayClusterConfig.headGroupSpec"
GROUP = "rayClusterConfig.workerGroupSpecs.0"
JOB_HEAD = "rayClusterSpec.headGroupSpec"


@pytest.mark.parametrize("name", APPLIED)
def test_the_operator_would_refuse_nothing(name: str) -> None:
    for obj in of_kind(name, "RayJob", "RayService"):
        assert faults(obj) == []


def changed(kind: str, path: str, value: Any) -> dict[str, Any]:
    (original,) = of_kind("pubmed", kind)
    obj = copy.deepcopy(original)
    node: Any = obj["spec"]
    *above, last = path.split(".")
    for part in above:
        node = node[int(part)] if part.isdigit() else node.setdefault(part, {})
    node[last] = value
    return obj


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (f"{HEAD}.template.spec.containers", [], "head has no container"),
        (f"{HEAD}.template.spec.restartPolicy", "Always", "head restarts"),
        (f"{GROUP}.template.spec.restartPolicy", "OnFailure", "retrieval restarts"),
        (f"{HEAD}.rayStartParams", {"redis-password": "a"}, "redis-password"),
        (f"{HEAD}.rayStartParams", {"redis-username": "a"}, "Redis' user"),
        (f"{HEAD}.rayStartParams", {"labels": "a=b"}, "labels in rayStartParams"),
        (f"{HEAD}.resources", {"CPU": "0"}, "head has resources both"),
        (f"{HEAD}.template.spec.containers.0.env", [{"name": "REDIS_PASSWORD"}], "REDIS_PASSWORD"),
        (
            f"{HEAD}.template.spec.containers.0.env",
            [{"name": "RAY_enable_autoscaler_v2", "value": "1"}],
            "set twice",
        ),
        (f"{HEAD}.headService", {"metadata": {"name": "mine"}}, "named by the operator"),
        (f"{GROUP}.suspend", True, "suspended under an autoscaler"),
        (f"{GROUP}.replicas", 99, "outside its bounds"),
        ("rayClusterConfig.rayVersion", "", "2.52"),
        ("rayClusterConfig.rayVersion", "2.9.0", "2.52"),
        ("rayClusterConfig.authOptions.enableK8sTokenAuth", True, "Kubernetes' tokens"),
        ("rayClusterConfig.gcsFaultToleranceOptions.redisAddress", "", "no Redis"),
        ("rayClusterConfig.gcsFaultToleranceOptions.backend", "rocksdb", "feature gate"),
        ("upgradeStrategy.type", "Rolling", "unknown"),
        ("upgradeStrategy.type", "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions"),
        ("rayClusterDeletionDelaySeconds", -1, "negative"),
    ],
)
def test_a_broken_service_is_refused(path: str, value: Any, said: str) -> None:
    assert any(said in fault for fault in faults(changed("RayService", path, value)))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("shutdownAfterJobFinishes", False, "ttlSecondsAfterFinished without"),
        ("clusterSelector", {"ray.io/cluster": "a"}, "one of rayClusterSpec"),
        ("ttlSecondsAfterFinished", -1, "negative"),
        ("backoffLimit", -1, "negative"),
        ("activeDeadlineSeconds", 0, "must be positive"),
        ("deletionStrategy", {"deletionRules": [{"policy": "DeleteSelf"}]}, "deletionRules"),
        ("submissionMode", "InteractiveMode", "no retries"),
        ("submissionMode", "SidecarMode", "no submitter"),
        ("runtimeEnvYAML", "- a", "no mapping"),
        ("entrypoint", "citeray download a && citeray index build a", "shell"),
        (
            f"{JOB_HEAD}.template.spec.containers.0.env",
            [{"name": "RAY_REDIS_ADDRESS", "value": "redis:6379"}],
            "without gcsFaultToleranceOptions",
        ),
        (
            f"{JOB_HEAD}.template.spec.containers.0.env",
            [{"name": "RAY_enable_autoscaler_v2", "value": "1"}],
            "without enableInTreeAutoscaling",
        ),
    ],
)
def test_a_broken_job_is_refused(path: str, value: Any, said: str) -> None:
    assert any(said in fault for fault in faults(changed("RayJob", path, value)))


def test_a_suspended_job_that_keeps_its_cluster_is_refused() -> None:
    obj = changed("RayJob", "suspend", True)
    assert faults(obj) == []
    obj["spec"]["shutdownAfterJobFinishes"] = False
    assert any("cannot be suspended" in fault for fault in faults(obj))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("stepSizePercent", 101, "stepSizePercent"),
        ("maxSurgePercent", 10, "above maxSurgePercent"),
        ("gatewayClassName", "", "clusterUpgradeOptions"),
    ],
)
def test_a_broken_incremental_upgrade_is_refused(option: str, value: Any, said: str) -> None:
    obj = copy.deepcopy(of_kind("incremental", "RayService")[0])
    obj["spec"]["upgradeStrategy"]["clusterUpgradeOptions"][option] = value
    assert any(said in fault for fault in faults(obj))


@pytest.mark.parametrize(("name", "said"), [("a" * 48, "characters"), ("9lives", "DNS-1035")])
def test_a_name_that_no_service_may_have_is_refused(name: str, said: str) -> None:
    obj = copy.deepcopy(of_kind("pubmed", "RayService")[0])
    obj["metadata"]["name"] = name
    assert any(said in fault for fault in faults(obj))


@pytest.mark.parametrize("annotation", ["ray.io/ft-enabled", "ray.io/external-storage-namespace"])
def test_fault_tolerance_by_annotation_as_well_is_refused(annotation: str) -> None:
    obj = copy.deepcopy(of_kind("pubmed", "RayService")[0])
    obj["metadata"]["annotations"] = {annotation: "true"}
    assert len(faults(obj)) == 1


@pytest.mark.parametrize("name", APPLIED)
def test_every_cluster_runs_the_ray_of_the_lock(name: str) -> None:
    lock = (K8S.parent / "requirements/cpu.txt").read_text(encoding="utf-8")
    for obj in of_kind(name, "RayJob", "RayService"):
        assert f"ray=={cluster_spec(obj)['rayVersion']} " in lock
