"""What a node has for pods: its own, less what is kept for the kubelet, the system and eviction.

GKE: "Plan GKE Standard node sizes" (memory and CPU reservations, local ephemeral storage
reservation). EKS: the AMI's bootstrap script (kube-reserved), and the kubelet's own thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.k8s.chart import Object, cluster_spec, cores, gibibytes, groups, pod_templates

# What is kept of each further slice of memory (GiB) and of cores.
GKE_MEMORY = ((4, 0.25), (4, 0.20), (8, 0.10), (112, 0.06), (float("inf"), 0.02))
CPU = ((1, 0.06), (1, 0.01), (2, 0.005), (float("inf"), 0.0025))
EVICTION_MEMORY = 100 / 1024
EVICTION_DISK = 0.10
EKS_PODS = 110
# DaemonSets of a usual cluster: network, DNS cache, storage drivers, logs, figures, GPU plugin.
DAEMONS = (0.6, 1.0, 1.0)
# Images of CiteRay and of the daemons, which count against the threshold of eviction.
IMAGES = 25.0


@dataclass
class Room:
    """What is free on a node, or asked for by a pod: cores, memory and disk in GiB, GPUs."""

    cpu: float
    memory: float
    disk: float
    gpu: float

    def fits(self, asked: Room) -> bool:
        slack = 1e-6
        return (
            asked.cpu <= self.cpu + slack
            and asked.memory <= self.memory + slack
            and asked.disk <= self.disk + slack
            and asked.gpu <= self.gpu
        )

    def take(self, asked: Room) -> None:
        self.cpu -= asked.cpu
        self.memory -= asked.memory
        self.disk -= asked.disk
        self.gpu -= asked.gpu


def _kept(slices: tuple[tuple[float, float], ...], whole: float) -> float:
    kept = 0.0
    for size, share in slices:
        kept += min(whole, size) * share
        whole = max(whole - size, 0)
    return kept


def allocatable(node: dict[str, Any], cloud: str) -> Room:
    """What the scheduler of `cloud` ("gke", "eks") gives pods of a node, daemons taken off."""
    cpu, memory, disk = node["cpu"], gibibytes(node["memory"]), gibibytes(node["disk"])
    threshold = EVICTION_DISK * disk
    if cloud == "gke":
        memory_kept = _kept(GKE_MEMORY, memory)
        disk_kept = min(0.5 * disk, 6 + 0.35 * disk, 100)
    else:
        memory_kept = (255 + 11 * EKS_PODS) / 1024
        disk_kept = 1
    room = disk - threshold - max(disk_kept, IMAGES)
    return Room(
        cpu - _kept(CPU, cpu) - DAEMONS[0],
        memory - memory_kept - EVICTION_MEMORY - DAEMONS[1],
        room - DAEMONS[2],
        node["gpu"],
    )


def asked_by(pod: dict[str, Any], beside: dict[str, Any] | None = None) -> Room:
    """What the scheduler counts of a pod's requests; `beside` are those of a further container."""

    def total(what: str, of: Any) -> float:
        containers = [c["resources"]["requests"] for c in pod["containers"]]
        containers += [beside] if beside else []
        running = sum(of(r[what]) for r in containers if what in r)
        starting = [c["resources"]["requests"] for c in pod.get("initContainers", [])]
        return max([running, *(of(r[what]) for r in starting if what in r)])

    return Room(
        total("cpu", cores),
        total("memory", gibibytes),
        total("ephemeral-storage", gibibytes),
        total("nvidia.com/gpu", float),
    )


# Kinds of `sizes` by the place of a pod template.
KINDS = {
    "RayService/citeray/head": "head",
    "RayJob/citeray-build/head": "buildHead",
    "RayJob/citeray-update/head": "updateHead",
    "Job/citeray-models/pod": "fillModels",
    "StatefulSet/citeray-redis/replica": "redis",
    "StatefulSet/citeray-object-store/replica": "objectStore",
    "CronJob/citeray-update/job": "submitter",
}


def pods_of(obj: Object) -> list[tuple[str, Room]]:
    """Each pod that an object leads to, by its kind of `sizes`."""
    found = []
    for place, template in pod_templates(obj).items():
        part = place.rpartition("/")[2]
        kind = KINDS.get(place, part)
        count, beside = 1, None
        if obj["kind"] in ("RayService", "RayJob"):
            if part in groups(obj):
                count = groups(obj)[part]["replicas"]
            elif part == "head" and cluster_spec(obj).get("enableInTreeAutoscaling"):
                beside = cluster_spec(obj)["autoscalerOptions"]["resources"]["requests"]
        found += [(kind, asked_by(template["spec"], beside))] * count
    return found


def without_a_node(
    nodes: list[dict[str, Any]], pods: list[tuple[str, Room]], cloud: str
) -> list[tuple[str, Room]]:
    """The pods that find no node, the largest placed first."""
    rooms = [
        (set(node["for"]), allocatable(node, cloud)) for node in nodes for _ in range(node["count"])
    ]
    left = []
    for kind, asked in sorted(pods, key=lambda p: (-p[1].gpu, -p[1].cpu, -p[1].memory)):
        for kinds, room in rooms:
            if kind in kinds and room.fits(asked):
                room.take(asked)
                break
        else:
            left.append((kind, asked))
    return left
