"""Rules of NetworkPolicies for a pod, and the peers outside the chart that they may name.

Semantics as in https://kubernetes.io/docs/concepts/services-networking/network-policies/.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from tests.k8s.chart import NAMESPACE, Object, matches


@dataclass(frozen=True)
class Peer:
    """A pod with its labels and those of its namespace, or a host outside without labels."""

    labels: dict[str, str] = field(default_factory=dict)
    namespace: dict[str, str] = field(default_factory=dict)
    address: str = ""

    @property
    def ours(self) -> bool:
        return self.namespace.get("kubernetes.io/metadata.name") == NAMESPACE


def pod(namespace: str, labels: dict[str, str], address: str = "", **more: str) -> Peer:
    """Return a pod; `more` are labels of its namespace beside the one that Kubernetes sets."""
    return Peer(labels, {"kubernetes.io/metadata.name": namespace, **more}, address)


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


def rules_for(policies: Iterable[Object], one: Peer, way: str) -> list[dict[str, Any]] | None:
    """Return the rules by direction `way` of the policies that select `one`.

    None if no policy selects it, which allows everything.
    """
    specs = [
        policy["spec"]
        for policy in policies
        if one.ours
        and way.capitalize() in policy["spec"]["policyTypes"]
        and matches(policy["spec"]["podSelector"], one.labels)
    ]
    return [rule for spec in specs for rule in spec.get(way) or []] if specs else None


def ends_of(rule: dict[str, Any], way: str) -> list[dict[str, Any]]:
    """Return the peers of a rule; without any, it allows connections with everyone."""
    key = "from" if way == "ingress" else "to"
    assert set(rule) <= {key, "ports"}
    return rule.get(key) or []


def selects(end: dict[str, Any], other: Peer) -> bool:
    if set(end) == {"ipBlock"}:
        assert set(end["ipBlock"]) == {"cidr"}
        network = ip_network(end["ipBlock"]["cidr"])
        return bool(other.address) and ip_address(other.address) in network
    assert set(end) <= {"namespaceSelector", "podSelector"}
    if not other.namespace:
        return False
    namespace = end.get("namespaceSelector")
    inside = other.ours if namespace is None else matches(namespace, other.namespace)
    return inside and matches(end.get("podSelector"), other.labels)


def ports_of(rule: dict[str, Any]) -> list[tuple[str, int]]:
    """Return the protocols and numbers of the ports; without any, a rule allows all."""
    for port in rule.get("ports") or []:
        assert set(port) == {"protocol", "port"}
        assert isinstance(port["port"], int)
    return [(port["protocol"], port["port"]) for port in rule.get("ports") or []]
