"""What nftables rules a NetworkPolicy becomes, by the semantics that Kubernetes documents."""

from __future__ import annotations

from typing import Any

import pytest

from tests.k8s.policies.nft_rules import PolicyCluster, PolicyPod, matches

WEB = PolicyPod("shop", {"app": "web"}, ("10.0.0.1",), {"http": 8080})
STORE = PolicyPod("shop", {"app": "store"}, ("10.0.0.2", "fd00::2"), {"sql": 5432})
WATCH = PolicyPod("watch", {"app": "watch"}, ("10.0.0.3",), {"http": 9090})
OTHER = PolicyPod("watch", {"app": "store"}, ("10.0.0.4",))
NAMESPACES = {"shop": {}, "watch": {"team": "operations"}}
ALWAYS = ("lo", "established", "icmpv6")


def policy(namespace: str = "shop", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": namespace}, "spec": {"podSelector": {}, **spec}}


def accepted(way: str, *policies: dict[str, Any], pod: PolicyPod = WEB) -> list[str] | None:
    """What is let through that way beside what always is; None where all is."""
    cluster = PolicyCluster(policies, (WEB, STORE, WATCH, OTHER), NAMESPACES)
    _, found, chain = cluster.rules(pod).partition(f"chain {way} {{")
    if not found:
        return None
    lines = [line.strip() for line in chain.partition("}\n  }\n")[0].splitlines()]
    accepts = [line.removesuffix("accept").strip() for line in lines if line.endswith("accept")]
    assert "policy drop;" in chain
    return [line for line in accepts if not any(word in line for word in ALWAYS)]


def ingress(*rules: Any) -> list[str] | None:
    return accepted("ingress", policy(ingress=list(rules)))


def egress(*rules: Any) -> list[str] | None:
    return accepted("egress", policy(policyTypes=["Egress"], egress=list(rules)))


def test_a_pod_that_no_policy_selects_is_open_both_ways() -> None:
    apart = policy(podSelector={"matchLabels": {"app": "store"}}, policyTypes=["Ingress", "Egress"])
    elsewhere = policy("watch", policyTypes=["Ingress", "Egress"])
    for way in ("ingress", "egress"):
        assert accepted(way, apart, elsewhere) is None


def test_without_types_a_policy_is_of_egress_only_where_it_has_rules_for_it() -> None:
    assert accepted("ingress", policy()) == []
    assert accepted("egress", policy()) is None
    assert accepted("egress", policy(egress=[{}])) == [""]
    assert accepted("ingress", policy(policyTypes=["Egress"])) is None


def test_no_rule_lets_nothing_through_and_an_empty_rule_everything() -> None:
    assert ingress() == []
    assert ingress({}) == [""]
    assert ingress({"from": [], "ports": []}) == [""]


def test_what_any_policy_allows_is_allowed() -> None:
    one = policy(ingress=[{"ports": [{"port": 80}]}])
    two = policy(ingress=[{"ports": [{"port": 81}]}, {"ports": [{"port": 82}]}])
    found = ["tcp dport { 80 }", "tcp dport { 81 }", "tcp dport { 82 }"]
    assert accepted("ingress", policy(), one, two) == found


def test_a_pod_selector_alone_means_pods_of_the_policys_namespace() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "store"}}}
    assert ingress({"from": [peer]}) == ["ip saddr 10.0.0.2", "ip6 saddr fd00::2"]


def test_a_namespace_selector_alone_means_every_pod_of_the_namespaces() -> None:
    peer = {"namespaceSelector": {"matchLabels": {"team": "operations"}}}
    assert ingress({"from": [peer]}) == ["ip saddr 10.0.0.3", "ip saddr 10.0.0.4"]
    found = ingress({"from": [{"namespaceSelector": {}}]})
    assert found is not None
    assert len(found) == 5


def test_both_selectors_in_one_peer_must_hold_and_of_two_peers_either() -> None:
    namespace = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "watch"}}}
    pods = {"podSelector": {"matchLabels": {"app": "store"}}}
    assert ingress({"from": [{**namespace, **pods}]}) == ["ip saddr 10.0.0.4"]
    either = ingress({"from": [namespace, pods]})
    assert either is not None
    assert set(either) == {f"ip saddr 10.0.0.{n}" for n in (2, 3, 4)} | {"ip6 saddr fd00::2"}


def test_peers_and_ports_of_one_rule_must_both_match() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "web"}}}
    rule = {"to": [peer], "ports": [{"port": 80}, {"protocol": "UDP", "port": 53}]}
    assert egress(rule) == [
        "ip daddr 10.0.0.1 tcp dport { 80 }",
        "ip daddr 10.0.0.1 udp dport { 53 }",
    ]


def test_an_address_block_may_have_exceptions_and_be_of_either_family() -> None:
    block = {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.2.0.0/16"]}
    six = {"cidr": "fd00:ec2::23/128"}
    assert egress({"to": [{"ipBlock": block}, {"ipBlock": six}], "ports": [{"port": 443}]}) == [
        "ip daddr 10.0.0.0/8 ip daddr != { 10.1.0.0/16, 10.2.0.0/16 } tcp dport { 443 }",
        "ip6 daddr fd00:ec2::23/128 tcp dport { 443 }",
    ]


def test_ports_may_be_ranges_and_whole_protocols() -> None:
    rule = {"ports": [{"port": 8000, "endPort": 8010}, {"port": 80}, {"protocol": "SCTP"}]}
    assert ingress(rule) == ["meta l4proto sctp", "tcp dport { 8000-8010, 80 }"]


def test_a_named_port_is_the_one_of_the_pod_that_is_called() -> None:
    called = {"ports": [{"port": "http"}]}
    assert ingress(called) == ["tcp dport { 8080 }"]
    assert ingress({"ports": [{"port": "sql"}]}) == []
    watch = {"to": [{"namespaceSelector": {"matchLabels": {"team": "operations"}}}]}
    assert egress({**watch, **called}) == ["ip daddr 10.0.0.3 tcp dport { 9090 }"]
    anywhere = ["ip daddr 10.0.0.1 tcp dport { 8080 }", "ip daddr 10.0.0.3 tcp dport { 9090 }"]
    assert egress(called) == anywhere


@pytest.mark.parametrize(
    ("expression", "with_label", "with_other", "without"),
    [
        ({"operator": "In", "values": ["a", "b"]}, True, False, False),
        ({"operator": "NotIn", "values": ["a", "b"]}, False, True, True),
        ({"operator": "Exists"}, True, True, False),
        ({"operator": "DoesNotExist"}, False, False, True),
    ],
)
def test_expressions_of_selectors(
    expression: dict[str, Any], with_label: bool, with_other: bool, without: bool
) -> None:
    selector = {"matchExpressions": [{"key": "part", **expression}]}
    assert matches(selector, {"part": "a"}) is with_label
    assert matches(selector, {"part": "c"}) is with_other
    assert matches(selector, {}) is without
    assert matches(selector | {"matchLabels": {"x": "y"}}, {"part": "a"}) is False


@pytest.mark.parametrize(
    "rule",
    [
        {"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]},
        {"from": [{"serviceSelector": {}}]},
        {"ports": [{"portName": "http"}]},
        {"to": []},
    ],
)
def test_what_is_not_translated_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"not translated|no selector"):
        ingress(rule)
