"""NetworkPolicies as nftables rules, to be loaded in the network of one pod.

Semantics as in https://kubernetes.io/docs/concepts/services-networking/network-policies/. What that
page leaves to network plugins is decided strictly: what is refused is dropped without a reply, and
the node gets no exception for its probes.
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
# Packets between a pod and itself, replies, and what finds a neighbour in IPv6 are never refused.
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
# The set names what was refused, for tests that look for it.
FOOT = """\
    meta nfproto ipv4 meta l4proto {{ tcp, udp }} add @refused_{way} {{ \
      ip {address} . meta l4proto . th dport }}
  }}
"""


@dataclass(frozen=True)
class PolicyPod:
    """A pod as policies see it."""

    namespace: str
    labels: Labels
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class PolicyCluster:
    """The policies of a cluster, its pods, and the labels of its namespaces by their names."""

    policies: Sequence[Mapping[str, Any]]
    pods: Sequence[PolicyPod]
    namespaces: Mapping[str, Labels] = field(default_factory=dict)

    def rules(self, pod: PolicyPod) -> str:
        """What `nft -f -` loads in the pod's network; loaded again, it replaces the old."""
        chains = "".join(self._chain(pod, way) for way in WAYS)
        return f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{chains}}}\n"

    def _chain(self, pod: PolicyPod, way: str) -> str:
        """Empty where no policy selects the pod in that direction: then all is let through."""
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
        """One line for each peer's addresses and protocol that the rule lets through."""
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
        """The pods that a rule names; those of its own namespace where it selects no other."""
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
        """With the one that Kubernetes itself sets."""
        return {**self.namespaces.get(name, {}), NAME_LABEL: name}


def policy_namespace(policy: Mapping[str, Any]) -> str:
    namespace: str = policy["metadata"].get("namespace", "default")
    return namespace


def policy_types(spec: Mapping[str, Any]) -> list[str]:
    """As they are given; without them Ingress, and Egress where rules for it are given."""
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
    """Matches of the ports; names of ports and ranges are not translated."""
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
    """Raises ValueError for a field that is not translated here, rather than pass over it."""
    if more := set(found) - known:
        raise ValueError(f"not translated to nftables: {sorted(more)}")
