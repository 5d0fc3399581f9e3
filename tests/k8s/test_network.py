"""Network policies: which pods may open connections to which, computed for every pair."""

from __future__ import annotations

from functools import cache

import pytest

from tests.k8s.chart import CASES, NAMESPACE, all_pods, all_values, of_kind
from tests.k8s.policies import OTHERS, Peer, ends_of, pod, ports_of, rules_for, selects

pytestmark = pytest.mark.process

Pairs = dict[tuple[str, str], set[str]]
METRICS = ("8080", "44217", "44227")
# TCP ports, and DNS over UDP; the chart's policies name no other ports.
PORTS = frozenset({*METRICS, "53", "53/UDP", "80", "443", "988", "5432", "6379", "6443", "8000",
                   "8265", "9000", "10001", "26379"})  # fmt: skip


@cache
def peers(case: str) -> dict[str, Peer]:
    """Return the pods of the case, KubeRay's job that clears Redis, and the peers outside."""
    found = {name: pod(NAMESPACE, p["metadata"]["labels"]) for name, p in all_pods(case).items()}
    if head := found.get("RayService/citeray/head"):
        found["redis-cleanup"] = pod(
            NAMESPACE, {**head.labels, "ray.io/node-type": "redis-cleanup"}
        )
    return found | OTHERS


def allowed(case: str, one: Peer, other: Peer, way: str) -> set[str]:
    """Return the ports that the policies of `one` allow to or from `other`, by direction `way`."""
    rules = rules_for(of_kind(case, "NetworkPolicy"), one, way)
    if rules is None:
        return set(PORTS)
    found: set[str] = set()
    for rule in rules:
        ends = ends_of(rule, way)
        if not ends or any(selects(end, other) for end in ends):
            names = {f"{n}{'' if kind == 'TCP' else '/' + kind}" for kind, n in ports_of(rule)}
            found |= names or PORTS
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
