"""Translate NetworkPolicies into nftables rules for the network of one pod.

Semantics as in https://kubernetes.io/docs/concepts/services-networking/network-policies/. Where
that page leaves a choice to network plugins, the rules are strict: refused packets are dropped
without a reply, and probes of the node get no exception.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]
TABLE = "policies"
NAME_LABEL = "kubernetes.io/metadata.name"
PEER_KEYS = {"podSelector", "namespaceSelector", "ipBlock"}
# By direction: the policy type, the hook, the peers' key, the address and the device of the peer.
WAYS = {
    "ingress": ("Ingress", "input", "from", "saddr", "iif"),
    "egress": ("Egress", "output", "to", "daddr", "oif"),
}
# Loopback traffic, replies and IPv6 neighbour discovery are always accepted.
HEAD = """\
  set refused_{way} {{
    type ipv4_addr . inet_proto . inet_service
    flags dynamic
    size 65535
  }}
  chain {way} {{
    type filter hook {hook} priority filter; policy drop;
    {device} "lo" accept
    ct state established,related accept
    icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept
"""
# Refused connections are recorded in a set, which tests read.
FOOT = """\
    meta nfproto ipv4 meta l4proto {{ tcp, udp }} add @refused_{way} {{ \
      ip {address} . meta l4proto . th dport }}
  }}
"""


@dataclass(frozen=True)
class PolicyPod:
    """The attributes of a pod that policies select by."""

    namespace: str
    labels: Labels
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class PolicyCluster:
    """Policies and pods of a cluster, and the labels of its namespaces by name."""

    policies: Sequence[Mapping[str, Any]]
    pods: Sequence[PolicyPod]
    namespaces: Mapping[str, Labels] = field(default_factory=dict)

    def rules(self, pod: PolicyPod) -> str:
        """Return input for `nft -f -` that replaces the rules in the pod's network."""
        chains = "".join(self._chain(pod, way) for way in WAYS)
        return f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{chains}}}\n"

    def _chain(self, pod: PolicyPod, way: str) -> str:
        """Return no rules, which allows everything, if no policy selects the pod."""
        kind, hook, _, address, device = WAYS[way]
        specs = [
            (policy_namespace(policy), policy["spec"])
            for policy in self.policies
            if policy_namespace(policy) == pod.namespace
            and kind in policy_types(policy["spec"])
            and matches(policy["spec"].get("podSelector", {}), pod.labels)
        ]
        if not specs:
            return ""
        lines = {
            line: None
            for namespace, spec in specs
            for rule in spec.get(way) or []
            for line in self._accepts(rule, way, namespace)
        }
        body = "".join(f"    {line}\n" for line in lines)
        head = HEAD.format(way=way, hook=hook, device=device)
        return head + body + FOOT.format(way=way, address=address)

    def _accepts(self, rule: Mapping[str, Any], way: str, namespace: str) -> Iterator[str]:
        """Return one line per peer and protocol that the rule allows."""
        _, _, key, address, _ = WAYS[way]
        require_keys(rule, {key, "ports"})
        words = port_words(rule.get("ports") or [])
        for block in address_blocks(rule.get(key) or [], address):
            yield from lines_of(block, words)
        for other in self._peers(rule.get(key) or [], namespace):
            for one in other.addresses:
                yield from lines_of(address_words(one, address), words)
        if not rule.get(key):
            yield from lines_of("", words)

    def _peers(self, peers: Sequence[Mapping[str, Any]], namespace: str) -> Iterator[PolicyPod]:
        """Return the pods that a rule selects, by default in its own namespace."""
        for peer in peers:
            require_keys(peer, PEER_KEYS)
            if "ipBlock" in peer:
                continue
            for pod in self.pods:
                selects = peer.get("namespaceSelector")
                inside = (
                    pod.namespace == namespace
                    if selects is None
                    else matches(selects, self._namespace_labels(pod.namespace))
                )
                if inside and matches(peer.get("podSelector") or {}, pod.labels):
                    yield pod

    def _namespace_labels(self, name: str) -> Labels:
        """Return the labels, including the one that Kubernetes sets."""
        return {**self.namespaces.get(name, {}), NAME_LABEL: name}


def policy_namespace(policy: Mapping[str, Any]) -> str:
    namespace: str = policy["metadata"].get("namespace", "default")
    return namespace


def policy_types(spec: Mapping[str, Any]) -> list[str]:
    """Return the policy types; by default Ingress, and Egress if there are rules for it."""
    given: list[str] = spec.get("policyTypes") or []
    return given or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def matches(selector: Mapping[str, Any], labels: Labels) -> bool:
    """An empty selector matches everything; NotIn also matches where the label is missing."""
    require_keys(selector, {"matchLabels", "matchExpressions"})
    expressions = selector.get("matchExpressions") or []
    wanted = selector.get("matchLabels") or {}
    return wanted.items() <= labels.items() and all(holds(e, labels) for e in expressions)


def holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    if operator in ("In", "NotIn"):
        return (labels.get(key) in values) is (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    raise ValueError(f"not an operator of a label selector: {operator}")


def address_blocks(peers: Iterable[Mapping[str, Any]], address: str) -> Iterator[str]:
    for peer in peers:
        if "ipBlock" not in peer:
            continue
        if len(peer) > 1:
            raise ValueError(f"ipBlock stands with no selector: {peer}")
        require_keys(peer["ipBlock"], {"cidr"})
        yield address_words(peer["ipBlock"]["cidr"], address)


def address_words(cidr: str, address: str) -> str:
    family = {4: "ip", 6: "ip6"}[ipaddress.ip_network(cidr).version]
    return f"{family} {address} {cidr}"


def port_words(ports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return matches of the ports; port names and ranges are not supported."""
    if not ports:
        return [""]
    found: dict[str, list[str]] = {}
    for given in ports:
        require_keys(given, {"protocol", "port"})
        found.setdefault(given.get("protocol", "TCP").lower(), []).append(str(int(given["port"])))
    return [f"{name} dport {{ {', '.join(some)} }}" for name, some in found.items()]


def lines_of(address: str, ports: Iterable[str]) -> Iterator[str]:
    for words in ports:
        yield " ".join(part for part in (address, words, "accept") if part)


def require_keys(found: Mapping[str, Any], known: set[str]) -> None:
    """Raise ValueError for an unsupported field."""
    if more := set(found) - known:
        raise ValueError(f"not translated to nftables: {sorted(more)}")
