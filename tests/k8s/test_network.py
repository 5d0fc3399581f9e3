"""Network policies: which pods may open connections to which, computed for every pair.

The rules of NetworkPolicy are those of
https://kubernetes.io/docs/concepts/services-networking/network-policies/
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.k8s.chart import CASES, NAMESPACE, all_pods, all_values, matches, of_kind

pytestmark = pytest.mark.process

Pairs = dict[tuple[str, str], set[str]]
METRICS = ("8080", "44217", "44227")
# TCP ports, and DNS over UDP; the chart's policies name no other ports.
PORTS = frozenset({*METRICS, "53", "53/UDP", "80", "443", "988", "5432", "6379", "6443", "8000",
                   "8265", "9000", "10001", "26379"})  # fmt: skip


@dataclass(frozen=True)
class Peer:
    """A pod with its labels and those of its namespace, or a host outside with its address."""

    labels: dict[str, str] = field(default_factory=dict)
    namespace: dict[str, str] = field(default_factory=dict)
    address: str = ""

    @property
    def ours(self) -> bool:
        return self.namespace.get("kubernetes.io/metadata.name") == NAMESPACE


def pod(namespace: str, labels: dict[str, str], **more: str) -> Peer:
    return Peer(labels, {"kubernetes.io/metadata.name": namespace, **more})


OTHERS = {
    "operator": pod("kuberay-operator", {"app.kubernetes.io/name": "kuberay-operator"}),
    "prometheus": pod("monitoring", {"app.kubernetes.io/name": "prometheus"}),
    "grafana": pod("monitoring", {"app.kubernetes.io/name": "grafana"}),
    "gateway": pod("web", {}, **{"citeray/may-ask": "yes"}),
    "stranger": pod("default", {"citeray/part": "serve", "ray.io/node-type": "head"}),
    "dns": pod("kube-system", {"k8s-app": "kube-dns"}),
    "node-dns": Peer(address="169.254.20.10"),
    "metadata": Peer(address="169.254.169.254"),
    "gke-metadata": Peer(address="169.254.169.252"),
    "eks-identity": Peer(address="169.254.170.23"),
    "load-balancer": Peer(address="35.191.3.4"),
    "internet": Peer(address="203.0.113.7"),
}


@cache
def peers(case: str) -> dict[str, Peer]:
    """Return the pods of the case, KubeRay's job that clears Redis, and the peers outside."""
    found = {name: pod(NAMESPACE, p["metadata"]["labels"]) for name, p in all_pods(case).items()}
    if head := found.get("RayService/citeray/head"):
        found["redis-cleanup"] = pod(
            NAMESPACE, {**head.labels, "ray.io/node-type": "redis-cleanup"}
        )
    return found | OTHERS


def selects(rule: dict[str, Any], other: Peer) -> bool:
    if set(rule) == {"ipBlock"}:
        network = ip_network(rule["ipBlock"]["cidr"])
        return bool(other.address) and ip_address(other.address) in network
    assert set(rule) <= {"namespaceSelector", "podSelector"}
    if other.address:
        return False
    namespace = rule.get("namespaceSelector")
    inside = other.ours if namespace is None else matches(namespace, other.namespace)
    return inside and matches(rule.get("podSelector"), other.labels)


def port_name(port: dict[str, Any]) -> str:
    assert set(port) == {"protocol", "port"}
    assert isinstance(port["port"], int)
    return f"{port['port']}{'' if port['protocol'] == 'TCP' else '/' + port['protocol']}"


def allowed(case: str, one: Peer, other: Peer, way: str) -> set[str]:
    """Return the ports that the policies of `one` allow to or from `other`, by direction `way`."""
    specs = [
        policy["spec"]
        for policy in of_kind(case, "NetworkPolicy")
        if one.ours
        and way.capitalize() in policy["spec"]["policyTypes"]
        and matches(policy["spec"]["podSelector"], one.labels)
    ]
    if not specs:
        return set(PORTS)
    found: set[str] = set()
    for rule in (rule for spec in specs for rule in spec.get(way, [])):
        ends = rule.get("from" if way == "ingress" else "to")
        if not ends or any(selects(end, other) for end in ends):
            found |= {port_name(port) for port in rule.get("ports", [])} or PORTS
    return found


def connections(case: str) -> Pairs:
    """Return, for each pair of peers, the ports on which the first may call the second."""
    everyone = peers(case)
    found = {
        (a, b): allowed(case, one, other, "egress") & allowed(case, other, one, "ingress")
        for a, one in everyone.items()
        for b, other in everyone.items()
        if a != b and (one.ours or other.ours)
    }
    return {pair: ports for pair, ports in found.items() if ports}


def expected(case: str) -> Pairs:
    """Return the connections that the chart needs, and no others."""
    found: Pairs = {}
    values, names = all_values(case), sorted(set(peers(case)) - set(OTHERS))

    def named(*starts: str) -> list[str]:
        return [name for name in names if name.startswith(starts)]

    def allow(ones: list[str], others: list[str], *ports: str) -> None:
        for one in ones:
            for other in set(others) - {one}:
                found.setdefault((one, other), set()).update(ports)

    serve = named("RayService", "redis-cleanup")
    heads = named("RayService/citeray/head", "redis-cleanup")
    submitters = [name for name in named("RayJob") if name.endswith("submitter")]
    index = [name for name in named("RayJob") if name not in submitters]
    allow(serve, serve, *PORTS)
    allow(index, index, *PORTS)
    dashboards = [name for name in serve + index if name.endswith("/head")]
    allow(["operator", *submitters], dashboards, "8265")
    allow(["operator", "gateway"], serve, "8000")
    allow(heads, named("StatefulSet/citeray-redis"), "6379")
    allow(serve + index, named("StatefulSet/citeray-object-store"), "9000")
    allow(names, ["dns", "node-dns"], "53", "53/UDP")
    allow(serve + index + named("Job"), list(OTHERS), "443")
    callers = [n for n in heads if "citeray/asks-api-server" in peers(case)[n].labels]
    allow(callers + named("CronJob"), list(OTHERS), "443", "6443")
    if values["monitoring"]["enabled"]:
        allow(["prometheus"], serve + index, *METRICS)
    if values["network"]["identity"] == "gke":
        allow(names, ["metadata"], "53", "53/UDP")  # Cloud DNS for GKE has this address too
        allow(serve + index, ["metadata"], "80")
        allow(serve + index, ["gke-metadata"], "988")
        allow(["load-balancer"], serve, "8000")
    elif values["network"]["identity"] == "eks":
        allow(serve + index, ["eks-identity"], "80")
    if values["headState"]["kind"] == "external":
        allow(heads, list(OTHERS), "26379", "6379")
    if values["network"]["serveEgress"]:
        allow(serve, list(OTHERS), "5432")
    return found


def test_policies_allow_exactly_the_connections_that_are_needed() -> None:
    problems = []
    for case in CASES:
        has, wanted = connections(case), expected(case)
        for pair in sorted(set(has) | set(wanted)):
            if more := has.get(pair, set()) - wanted.get(pair, set()):
                problems.append(f"{case}: {' -> '.join(pair)} may connect to {sorted(more)}")
            if less := wanted.get(pair, set()) - has.get(pair, set()):
                problems.append(f"{case}: {' -> '.join(pair)} cannot connect to {sorted(less)}")
    assert not problems, "\n".join(problems[:40])


def test_every_pod_is_denied_by_default() -> None:
    deny = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for case in CASES:
        assert deny in [policy["spec"] for policy in of_kind(case, "NetworkPolicy")], case


def test_stores_admit_only_their_clients() -> None:
    """Check only the policies of the stores, whatever the policies of other pods allow."""

    def admitted(case: str, name: str) -> dict[str, set[str]]:
        store = peers(case)[f"StatefulSet/{name}/replica"]
        found = {
            other: allowed(case, store, peer, "ingress") for other, peer in peers(case).items()
        }
        return {other: ports for other, ports in found.items() if ports}

    heads = {"RayService/citeray/head": {"6379"}, "redis-cleanup": {"6379"}}
    assert admitted("pubmed", "citeray-redis") == heads
    nodes = {"RayJob/citeray-build/head": {"9000"}, "RayJob/citeray-build/build": {"9000"}}
    assert admitted("kind/build", "citeray-object-store") == nodes
