"""What KubeRay 1.7's operator refuses beyond its CRDs: its validation.go and documentation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import yaml

from tests.k8s.kuberay_fields import (
    SPECS,
    Group,
    RayClusterSpec,
    RayJobSpec,
    RayServiceSpec,
    UpgradeStrategy,
)

MAX_NAME = {"RayService": 47, "RayJob": 47}
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
OWN_RESOURCES = {"num-cpus", "num-gpus", "memory", "resources"}


def faults(obj: dict[str, Any]) -> list[str]:
    """What the operator would refuse of a RayJob or RayService that its CRD lets through."""
    spec = SPECS[obj["kind"]].model_validate(obj["spec"])
    found = list(_of_name(obj))
    if isinstance(spec, RayServiceSpec):
        cluster: RayClusterSpec | None = spec.rayClusterConfig
        found += _of_service(spec)
    else:
        cluster = spec.rayClusterSpec
        found += _of_job(spec)
    if cluster:
        annotations = obj["metadata"].get("annotations", {})
        found += _of_cluster(cluster, annotations)
    return found


def _of_name(obj: dict[str, Any]) -> Iterator[str]:
    name = obj["metadata"]["name"]
    if len(name) > MAX_NAME[obj["kind"]]:
        yield f"the name has more than {MAX_NAME[obj['kind']]} characters"
    if not DNS_1035.fullmatch(name):
        yield "the name is no DNS-1035 label"


def _environment(group: Group) -> dict[str, str]:
    containers = group.template["spec"].get("containers") or [{}]
    return {entry["name"]: entry.get("value", "") for entry in containers[0].get("env", [])}


def _of_cluster(spec: RayClusterSpec, annotations: dict[str, str]) -> Iterator[str]:
    everyone: list[tuple[str, Group]] = [("head", spec.headGroupSpec)]
    everyone += [(group.groupName, group) for group in spec.workerGroupSpecs]
    for name, group in everyone:
        if not group.template["spec"].get("containers"):
            yield f"{name} has no container"
        if group.resources and OWN_RESOURCES & set(group.rayStartParams):
            yield f"{name} has resources both of its own and in rayStartParams"
        if "labels" in group.rayStartParams:
            yield f"{name} has labels in rayStartParams"
    yield from _of_fault_tolerance(spec, annotations)
    yield from _of_autoscaling(spec, everyone)
    yield from _of_authentication(spec)


def _of_fault_tolerance(spec: RayClusterSpec, annotations: dict[str, str]) -> Iterator[str]:
    options, environment = spec.gcsFaultToleranceOptions, _environment(spec.headGroupSpec)
    if options and annotations.get("ray.io/ft-enabled"):
        yield "fault tolerance is set by annotation and by gcsFaultToleranceOptions"
    if options and annotations.get("ray.io/external-storage-namespace"):
        yield "the storage's namespace is an annotation beside gcsFaultToleranceOptions"
    if not options and "RAY_REDIS_ADDRESS" in environment:
        yield "RAY_REDIS_ADDRESS without gcsFaultToleranceOptions"
    if options:
        for variable in {"REDIS_PASSWORD", "RAY_REDIS_ADDRESS"} & set(environment):
            yield f"{variable} beside gcsFaultToleranceOptions"
        if "redis-password" in spec.headGroupSpec.rayStartParams:
            yield "redis-password in rayStartParams"
        if options.backend == "redis" and not options.redisAddress:
            yield "gcsFaultToleranceOptions name no Redis"
        if options.backend == "rocksdb":
            yield "rocksdb needs a feature gate that is off by default"
    if "redis-username" in spec.headGroupSpec.rayStartParams or "REDIS_USERNAME" in environment:
        yield "Redis' user outside gcsFaultToleranceOptions"


def _of_autoscaling(spec: RayClusterSpec, everyone: list[tuple[str, Group]]) -> Iterator[str]:
    environment = _environment(spec.headGroupSpec)
    if not spec.enableInTreeAutoscaling:
        if environment.get("RAY_enable_autoscaler_v2") in {"1", "true"}:
            yield "RAY_enable_autoscaler_v2 without enableInTreeAutoscaling"
        return
    version = spec.autoscalerOptions.version if spec.autoscalerOptions else None
    if version and "RAY_enable_autoscaler_v2" in environment:
        yield "the autoscaler's version is set twice"
    for group in spec.workerGroupSpecs:
        if group.suspend:
            yield f"{group.groupName} is suspended under an autoscaler"
        if not group.minReplicas <= group.replicas <= group.maxReplicas:
            yield f"{group.groupName} begins with replicas outside its bounds"
    if version == "v2":
        for name, member in everyone:
            if member.template["spec"].get("restartPolicy", "Never") != "Never":
                yield f"{name} restarts its containers under autoscaler v2"


def _of_authentication(spec: RayClusterSpec) -> Iterator[str]:
    if spec.authOptions is None or spec.authOptions.mode != "token":
        return
    parts = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)?", spec.rayVersion)
    if parts is None or (int(parts[1]), int(parts[2])) < (2, 52):
        yield "token authentication needs a rayVersion from 2.52 on"
    if spec.authOptions.enableK8sTokenAuth:
        yield "Kubernetes' tokens are for a RayCluster alone"


def _of_job(spec: RayJobSpec) -> Iterator[str]:
    if (spec.rayClusterSpec is None) == (not spec.clusterSelector):
        yield "one of rayClusterSpec and clusterSelector must be there"
    if spec.suspend and not spec.shutdownAfterJobFinishes:
        yield "what keeps its cluster cannot be suspended"
    if spec.suspend and spec.clusterSelector:
        yield "what runs on a cluster of another cannot be suspended"
    if spec.ttlSecondsAfterFinished and not spec.shutdownAfterJobFinishes:
        yield "ttlSecondsAfterFinished without shutdownAfterJobFinishes"
    if spec.ttlSecondsAfterFinished < 0 or spec.backoffLimit < 0:
        yield "a limit is negative"
    if spec.activeDeadlineSeconds is not None and spec.activeDeadlineSeconds <= 0:
        yield "activeDeadlineSeconds must be positive"
    if (spec.deletionStrategy or {}).get("deletionRules") and spec.shutdownAfterJobFinishes:
        yield "deletionRules beside shutdownAfterJobFinishes"
    if spec.submissionMode == "InteractiveMode" and spec.backoffLimit:
        yield "InteractiveMode knows no retries"
    if spec.submissionMode == "SidecarMode" and (
        spec.submitterPodTemplate or spec.submitterConfig or spec.clusterSelector
    ):
        yield "SidecarMode has no submitter of its own"
    if spec.runtimeEnvYAML and not isinstance(yaml.safe_load(spec.runtimeEnvYAML), dict):
        yield "runtimeEnvYAML is no mapping"
    # The operator pastes it into a shell's line that goes on after it.
    if set(";&|<>$`") & set("".join(shlex.split(spec.entrypoint))):
        yield "the submitter's shell would take a part of the entrypoint for its own"


def _of_service(spec: RayServiceSpec) -> Iterator[str]:
    strategy = spec.upgradeStrategy or UpgradeStrategy()
    kinds = (None, "None", "NewCluster", "NewClusterWithIncrementalUpgrade")
    if strategy.type not in kinds:
        yield f"upgradeStrategy.type {strategy.type} is unknown"
    if strategy.type == kinds[-1]:
        options = {k: v for k, v in (strategy.clusterUpgradeOptions or {}).items() if v}
        if not {"gatewayClassName", "stepSizePercent", "intervalSeconds"} <= set(options):
            yield "an incremental upgrade needs clusterUpgradeOptions"
        step, surge = options.get("stepSizePercent", 0), options.get("maxSurgePercent", 100)
        if step > 100:
            yield "stepSizePercent is above 100"
        elif step > surge:
            yield "stepSizePercent is above maxSurgePercent"
        if not spec.rayClusterConfig.enableInTreeAutoscaling:
            yield "an incremental upgrade needs the autoscaler"
    if (spec.rayClusterDeletionDelaySeconds or 0) < 0:
        yield "rayClusterDeletionDelaySeconds is negative"
    service = spec.rayClusterConfig.headGroupSpec.headService or {}
    if service.get("metadata", {}).get("name"):
        yield "the head's service is named by the operator"
