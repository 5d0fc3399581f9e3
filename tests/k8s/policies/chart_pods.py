"""The chart's pods and those around them, each with an address, as its policies see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.k8s.chart import NAMESPACE, all_pods
from tests.k8s.policies.nft_rules import PolicyCluster, PolicyPod

# Pods of other namespaces: namespace and labels.
AROUND: dict[str, tuple[str, dict[str, str]]] = {
    "operator": ("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}),
    "prometheus": ("monitoring", {"app.kubernetes.io/name": "prometheus"}),
    "grafana": ("monitoring", {"app.kubernetes.io/name": "grafana"}),
    "gateway": ("web", {}),
    "stranger": ("default", {"citeray/part": "serve", "ray.io/node-type": "head"}),
    "dns": ("kube-system", {"k8s-app": "kube-dns"}),
}
NAMESPACES = {"web": {"citeray/may-ask": "yes"}}
# What is no pod.
ADDRESSES = {
    "internet": "203.0.113.10",
    "load-balancer": "35.191.0.7",
    "gke-identity": "169.254.169.254",
    "gke-identity-calico": "169.254.169.252",
    "eks-identity": "169.254.170.23",
    "node-dns": "169.254.20.10",
}


def chart_pods(*cases: str) -> dict[str, PolicyPod]:
    """The pods of the cases by their names; the operator's clean-up job has the head's labels."""
    labels = {
        name: {**pod["metadata"]["labels"]}
        for case in cases
        for name, pod in all_pods(case).items()
    }
    if any(name.endswith("redis/replica") for name in labels):
        head = labels["RayService/citeray/head"]
        labels["redis-cleanup"] = {**head, "ray.io/node-type": "redis-cleanup"}
    return {
        name: PolicyPod(NAMESPACE, found, (f"10.77.0.{number}",))
        for number, (name, found) in enumerate(sorted(labels.items()), 1)
    }


def pods_around(first: int = 100) -> dict[str, PolicyPod]:
    """Pods of other namespaces, at addresses from 10.77.0.`first` on."""
    return {
        name: PolicyPod(namespace, labels, (f"10.77.0.{number}",))
        for number, (name, (namespace, labels)) in enumerate(AROUND.items(), first)
    }


def policy_cluster(
    objects: Sequence[Mapping[str, Any]], *groups: Mapping[str, PolicyPod]
) -> PolicyCluster:
    policies = [obj for obj in objects if obj["kind"] == "NetworkPolicy"]
    pods = [pod for group in groups for pod in group.values()]
    return PolicyCluster(policies, pods, NAMESPACES)
