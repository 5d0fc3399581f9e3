"""Who may talk to whom by the network policies: exactly what is named here."""

from __future__ import annotations

from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.k8s.chart import SERVING, all_pods, of_kind

OUTSIDE = {
    "operator": ("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}, {}),
    "prometheus": ("monitoring", {"app.kubernetes.io/name": "prometheus"}, {}),
    "gateway": ("web", {}, {"citeray/may-ask": "yes"}),
    "stranger": ("default", {}, {}),
    "dns": ("kube-system", {"k8s-app": "kube-dns"}, {}),
}
# What is no pod, by its address.
ADDRESSES = {
    "node-local-dns": "169.254.20.10",
    "metadata": "169.254.169.254",
    "gke-metadata": "169.254.169.252",
    "eks-identity": "169.254.170.23",
    "google-load-balancer": "35.191.3.4",
    "internet": "203.0.113.7",
}
FIGURES = (8080, 44217, 44227)
PORTS = (53, 80, 443, 988, 5432, 6379, 6443, 8000, 8265, 9000, 10001, 26379, *FIGURES)
SERVE, INDEX = "RayService/citeray", "RayJob/citeray-update"


class Pod:
    def __init__(self, namespace: str, labels: dict[str, str], of_namespace: dict[str, str]):
        self.namespace = {"kubernetes.io/metadata.name": namespace, **of_namespace}
        self.labels = labels
        self.ours = namespace == "citeray"
        self.address = ""


def address(ip: str) -> Pod:
    found = Pod("", {}, {})
    found.address = ip
    return found


@cache
def pods(name: str) -> dict[str, Pod]:
    found = {n: Pod("citeray", p["metadata"]["labels"], {}) for n, p in all_pods(name).items()}
    if f"{SERVE}/head" in found:
        cleanup = {**found[f"{SERVE}/head"].labels, "ray.io/node-type": "redis-cleanup"}
        found["redis-cleanup"] = Pod("citeray", cleanup, {})
    found |= {name: Pod(*facts) for name, facts in OUTSIDE.items()}
    return found | {name: address(ip) for name, ip in ADDRESSES.items()}


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
    if "ipBlock" in peer:
        return bool(pod.address) and ip_address(pod.address) in ip_network(peer["ipBlock"]["cidr"])
    if pod.address:
        return False
    assert set(peer) <= {"namespaceSelector", "podSelector"}
    if "namespaceSelector" in peer:
        inside = matches(peer["namespaceSelector"], pod.namespace)
    else:
        inside = pod.ours
    return inside and matches(peer.get("podSelector"), pod.labels)


def lets(name: str, pod: Pod, other: Pod, port: int, way: str) -> bool:
    """Whether the policies of `pod` let it talk that way ("ingress", "egress") with `other`."""
    if not pod.ours:
        return True
    for policy in of_kind(name, "NetworkPolicy"):
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


def may_talk(name: str, one: Pod, other: Pod, port: int) -> bool:
    return lets(name, one, other, port, "egress") and lets(name, other, one, port, "ingress")


def all_ways(name: str) -> dict[tuple[str, str], set[int]]:
    """The ports on which the first may call the second, where there is any."""
    everyone = pods(name)
    found = {
        (a, b): {p for p in PORTS if may_talk(name, one, other, p)}
        for a, one in everyone.items()
        for b, other in everyone.items()
        if a != b and (one.ours or other.ours)
    }
    return {pair: ports for pair, ports in found.items() if ports}


class Ways:
    """The ways that are wanted, told pair by pair."""

    def __init__(self) -> None:
        self.wanted: dict[tuple[str, str], set[int]] = {}

    def allow(self, ones: list[str], others: list[str], *ports: int) -> None:
        for one in ones:
            for other in others:
                if one != other:
                    self.wanted.setdefault((one, other), set()).update(ports)


def common(name: str, workers: list[str]) -> Ways:
    """What is let through with the defaults of the chart."""
    ways = Ways()
    serving = [f"{SERVE}/head", *(f"{SERVE}/{worker}" for worker in workers)]
    indexing = [f"{INDEX}/head", f"{INDEX}/update"]
    # The operator's cleaning job has the labels of the head that it cleans up after.
    ways.allow([*serving, "redis-cleanup"], [*serving, "redis-cleanup"], *PORTS)
    ways.allow(indexing, indexing, *PORTS)
    ways.allow(["operator", f"{INDEX}/submitter"], [serving[0], indexing[0]], 8265)
    ways.allow(["operator", "gateway"], [*serving, "redis-cleanup"], 8000)
    ways.allow(["prometheus"], [*serving, "redis-cleanup", *indexing], *FIGURES)
    ways.allow([serving[0], "redis-cleanup"], ["StatefulSet/citeray-redis/replica"], 6379)
    ours = [n for n, pod in pods(name).items() if pod.ours]
    ways.allow(ours, ["dns", "node-local-dns"], 53)
    fetching = [*serving, "redis-cleanup", *indexing, "Job/citeray-models/pod"]
    ways.allow(fetching, [*OUTSIDE, *ADDRESSES], 443)
    ways.allow(["CronJob/citeray-update/job"], [*OUTSIDE, *ADDRESSES], 443, 6443)
    return ways


def test_exactly_what_is_needed_is_let_through() -> None:
    ways = common("pubmed", ["retrieval", "models", "llm"])
    # The autoscaler beside the head asks the API server.
    head = [f"{SERVE}/head", "redis-cleanup"]
    ways.allow(head, [*OUTSIDE, *ADDRESSES], 443, 6443)
    assert all_ways("pubmed") == ways.wanted


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("pubmed-gke", {("metadata", 80), ("gke-metadata", 988), ("metadata", 53)}),
        ("pubmed-eks", {("eks-identity", 80)}),
    ],
)
@pytest.mark.parametrize("pod", [f"{SERVE}/retrieval", "RayJob/citeray-build/build"])
def test_pods_reach_where_their_cloud_gives_them_an_identity(
    name: str, reached: set[tuple[str, int]], pod: str
) -> None:
    everyone = pods(name)
    found = {
        (to, port)
        for to in ("metadata", "gke-metadata", "eks-identity")
        for port in (53, 80, 988)
        if may_talk(name, everyone[pod], everyone[to], port)
    }
    assert found == reached


@pytest.mark.parametrize("name", SERVING)
def test_every_pod_reaches_the_clusters_dns_and_its_cache_on_the_node(name: str) -> None:
    everyone = pods(name)
    for pod in everyone.values():
        if pod.ours:
            assert may_talk(name, pod, everyone["dns"], 53)
            assert may_talk(name, pod, everyone["node-local-dns"], 53)


def test_googles_load_balancers_reach_the_proxies_alone() -> None:
    everyone = pods("pubmed-gke")
    balancer = everyone["google-load-balancer"]
    found = {
        (name.partition("/")[0], port)
        for name, pod in everyone.items()
        for port in PORTS
        if pod.ours and may_talk("pubmed-gke", balancer, pod, port)
    }
    assert found == {("RayService", 8000), ("redis-cleanup", 8000)}
    assert not may_talk("pubmed-gke", everyone["internet"], everyone[f"{SERVE}/models"], 8000)


def test_a_redis_and_a_postgres_of_your_own_are_reached() -> None:
    everyone = pods("gateway")
    head, models = everyone[f"{SERVE}/head"], everyone[f"{SERVE}/models"]
    assert may_talk("gateway", head, everyone["internet"], 26379)
    assert not may_talk("gateway", models, everyone["internet"], 26379)
    assert may_talk("gateway", models, everyone["internet"], 5432)


def test_the_object_store_within_the_cluster_is_reached_by_what_reads_and_writes_it() -> None:
    everyone = pods("kind/build")
    store = everyone["StatefulSet/citeray-object-store/replica"]
    reaching = {
        n
        for n, pod in everyone.items()
        if pod is not store and may_talk("kind/build", pod, store, 9000)
    }
    assert reaching == {"RayJob/citeray-build/head", "RayJob/citeray-build/build"}


@pytest.mark.parametrize("port", PORTS)
def test_a_stranger_reaches_nothing(port: int) -> None:
    everyone = pods("pubmed")
    stranger = everyone["stranger"]
    assert not any(may_talk("pubmed", stranger, p, port) for p in everyone.values() if p.ours)


def test_only_gateways_that_are_labelled_may_ask() -> None:
    everyone = pods("pubmed")
    models = everyone[f"{SERVE}/models"]
    assert may_talk("pubmed", everyone["gateway"], models, 8000)
    assert not may_talk("pubmed", everyone["gateway"], models, 8265)
    assert not may_talk("pubmed", everyone["gateway"], everyone[f"{SERVE}/head"], 6379)
