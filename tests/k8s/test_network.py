"""Who may talk to whom by the network policies: exactly what is named here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.k8s.overlays import all_pods, of_kind

OUTSIDE = {
    "operator": ("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}, {}),
    "prometheus": ("monitoring", {"app.kubernetes.io/name": "prometheus"}, {}),
    "gateway": ("web", {}, {"citeray/may-ask": "yes"}),
    "stranger": ("default", {}, {}),
    "dns": ("kube-system", {"k8s-app": "kube-dns"}, {}),
}
PORTS = (53, 443, 6379, 6443, 8000, 8080, 8265, 10001)
SERVE, INDEX = "RayService/citeray", "RayJob/citeray-update"


class Pod:
    def __init__(self, namespace: str, labels: dict[str, str], of_namespace: dict[str, str]):
        self.namespace = {"kubernetes.io/metadata.name": namespace, **of_namespace}
        self.labels = labels
        self.ours = namespace == "citeray"


def pods() -> dict[str, Pod]:
    found = {n: Pod("citeray", p["metadata"]["labels"], {}) for n, p in all_pods("pubmed").items()}
    cleanup = {**found[f"{SERVE}/head"].labels, "ray.io/node-type": "redis-cleanup"}
    found["redis-cleanup"] = Pod("citeray", cleanup, {})
    return found | {name: Pod(*facts) for name, facts in OUTSIDE.items()}


def matches(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    selector = selector or {}
    for wanted in selector.get("matchExpressions", []):
        there = wanted["key"] in labels
        if wanted["operator"] == "Exists":
            if not there:
                return False
        elif wanted["operator"] == "In":
            if labels.get(wanted["key"]) not in wanted["values"]:
                return False
        else:
            raise ValueError(wanted)
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def peer_matches(peer: dict[str, Any], pod: Pod) -> bool:
    assert set(peer) <= {"namespaceSelector", "podSelector"}
    if "namespaceSelector" in peer:
        inside = matches(peer["namespaceSelector"], pod.namespace)
    else:
        inside = pod.ours
    return inside and matches(peer.get("podSelector"), pod.labels)


def lets(pod: Pod, other: Pod, port: int, way: str) -> bool:
    """Whether the policies of `pod` let it talk that way ("ingress", "egress") with `other`."""
    if not pod.ours:
        return True
    for policy in of_kind("pubmed", "NetworkPolicy"):
        spec = policy["spec"]
        if way.capitalize() not in spec["policyTypes"] or not matches(
            spec["podSelector"], pod.labels
        ):
            continue
        for rule in spec.get(way, []):
            ports = [p["port"] for p in rule.get("ports", [])]
            peers = rule.get("from" if way == "ingress" else "to")
            if (not ports or port in ports) and (
                peers is None or any(peer_matches(peer, other) for peer in peers)
            ):
                return True
    return False


def may_talk(one: Pod, other: Pod, port: int) -> bool:
    return lets(one, other, port, "egress") and lets(other, one, port, "ingress")


def all_ways() -> dict[tuple[str, str], set[int]]:
    """The ports on which the first may call the second, where there is any."""
    everyone = pods()
    found = {
        (a, b): {p for p in PORTS if may_talk(one, other, p)}
        for a, one in everyone.items()
        for b, other in everyone.items()
        if a != b and (one.ours or other.ours)
    }
    return {pair: ports for pair, ports in found.items() if ports}


def test_exactly_what_is_needed_is_let_through() -> None:
    ways = all_ways()
    workers = [f"{SERVE}/{name}" for name in ("retrieval", "models", "llm")]
    serving = [f"{SERVE}/head", *workers]
    indexing = [f"{INDEX}/head", f"{INDEX}/build"]
    wanted: dict[tuple[str, str], set[int]] = {}

    def allow(ones: list[str], others: list[str], *ports: int) -> None:
        for one in ones:
            for other in others:
                if one != other:
                    wanted.setdefault((one, other), set()).update(ports)

    # The operator's cleaning job has the labels of the head that it cleans up after.
    allow([*serving, "redis-cleanup"], [*serving, "redis-cleanup"], *PORTS)
    allow(indexing, indexing, *PORTS)
    allow(["operator", "RayJob/citeray-update/submitter"], [serving[0], indexing[0]], 8265)
    allow(["operator", "gateway"], [*serving, "redis-cleanup"], 8000)
    allow(["prometheus"], [*serving, "redis-cleanup"], 8080)
    allow([serving[0], "redis-cleanup"], ["StatefulSet/redis/replica"], 6379)
    asking = [name for name, pod in pods().items() if pod.ours]
    allow(asking, ["dns"], 53)
    for name in (*serving, "redis-cleanup", *indexing):
        allow([name], list(OUTSIDE), 443)
    for name in (serving[0], "redis-cleanup", "CronJob/citeray-update/job"):
        allow([name], list(OUTSIDE), 443, 6443)
    assert ways == wanted


@pytest.mark.parametrize("port", PORTS)
def test_a_stranger_reaches_nothing(port: int) -> None:
    everyone = pods()
    assert not any(may_talk(everyone["stranger"], p, port) for p in everyone.values() if p.ours)


def test_only_gateways_that_are_labelled_may_ask() -> None:
    everyone = pods()
    models = everyone[f"{SERVE}/models"]
    assert may_talk(everyone["gateway"], models, 8000)
    assert not may_talk(everyone["gateway"], models, 8265)
    assert not may_talk(everyone["gateway"], everyone[f"{SERVE}/head"], 6379)
