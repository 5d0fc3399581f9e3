"""The chart's network policies in force: each pod a network with nftables rules made of them.

Every pod and everyone around calls every other on every port that matters. What gets through must
be what is named here, no more and no less.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.k8s.chart import rendered
from tests.k8s.policies.chart_pods import ADDRESSES, chart_pods, pods_around, policy_cluster
from tests.k8s.policies.sockets import networks

PORTS = (53, 80, 443, 988, 6379, 6443, 8000, 8080, 8265, 9000, 10001, 44217, 44227)
METRICS = (8080, 44217, 44227)
AROUND = (*pods_around(), *ADDRESSES)
Ways = dict[tuple[str, str], set[int]]
# The cases of a cluster; who asks from outside; the identity's addresses and ports; DNS servers.
CLUSTERS = {
    "gke": (
        ("pubmed-gke",),
        ("gateway", "load-balancer"),
        {"gke-identity": 80, "gke-identity-calico": 988},
        ("dns", "node-dns", "gke-identity"),
    ),
    "eks": (("pubmed-eks",), ("gateway",), {"eks-identity": 80}, ("dns", "node-dns")),
    "kind": (("kind", "kind/build"), ("gateway",), {}, ("dns", "node-dns")),
}


class Expected:
    """Who may call whom, by what the pods' names begin with."""

    def __init__(self, pods: Iterable[str]) -> None:
        self.pods = sorted(pods)
        self.ways: Ways = {}

    def __getitem__(self, start: str) -> list[str]:
        return [name for name in self.pods if name.startswith(start)]

    def allow(self, ones: Iterable[str], others: Iterable[str], *ports: int) -> None:
        for one in ones:
            for other in set(others) - {one}:
                self.ways.setdefault((one, other), set()).update(ports)


def expected(pods: Iterable[str], cluster: str) -> Ways:
    cases, askers, identity, dns = CLUSTERS[cluster]
    found = Expected(pods)
    serve = found["RayService"] + found["redis-cleanup"]
    index = [name for name in found["RayJob"] if not name.endswith("submitter")]
    head = [name for name in (*serve, *index) if name.endswith("/head")]
    service_head = [*found["RayService/citeray/head"], *found["redis-cleanup"]]
    submitters = [name for name in found["RayJob"] if name.endswith("submitter")]
    found.allow(serve, serve, *PORTS)
    found.allow(index, index, *PORTS)
    found.allow(["operator", *submitters], head, 8265)
    found.allow(["operator", *askers], serve, 8000)
    found.allow(service_head, found["StatefulSet/citeray-redis"], 6379)
    found.allow(serve + index, found["StatefulSet/citeray-object-store"], 9000)
    found.allow(found.pods, dns, 53)
    found.allow(serve + index + found["Job/citeray-models"], AROUND, 443)
    for address, port in identity.items():
        found.allow(serve + index, [address], port)
    if cases[0] != "kind":
        found.allow(["prometheus"], serve + index, *METRICS)
        found.allow(service_head + found["CronJob"], AROUND, 443, 6443)
    return found.ways


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_exactly_what_is_needed_gets_through(cluster: str) -> None:
    cases, *_ = CLUSTERS[cluster]
    pods, around = chart_pods(*cases), pods_around()
    policies = policy_cluster(rendered(cases[0]), pods, around)
    inside = {name: pod.addresses[0] for name, pod in pods.items()}
    outside = {name: pod.addresses[0] for name, pod in around.items()} | ADDRESSES
    rules = {name: policies.rules(pod) for name, pod in pods.items()}
    with networks(inside, rules, outside) as found:
        assert found.reached(PORTS) == expected(pods, cluster)


def test_without_policies_all_is_reached() -> None:
    """Or what is refused above would be refused by the networks and not by the rules."""
    pods = {name: pod.addresses[0] for name, pod in chart_pods("kind").items()}
    with networks(pods, dict.fromkeys(pods, "table inet none {}"), ADDRESSES) as found:
        reached = found.reached((443, 6379))
    everyone = {*pods, *ADDRESSES}
    pairs = {(a, b) for a in everyone for b in everyone if a != b and {a, b} & set(pods)}
    assert reached == {pair: {443, 6379} for pair in pairs}
