"""Translate NetworkPolicies into nftables rules for the network of one pod.

Where Kubernetes leaves a choice to network plugins, the rules are strict: refused packets are
dropped without a reply, and probes of the node get no exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from ipaddress import ip_network
from typing import Any

from tests.k8s.chart import Object
from tests.k8s.policies import Peer, ends_of, ports_of, rules_for, selects

TABLE = "policies"
# By direction: the hook, and the address and the device of the peer.
WAYS = {"ingress": ("input", "saddr", "iif"), "egress": ("output", "daddr", "oif")}
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


def nft_rules(policies: Sequence[Object], one: Peer, pods: Sequence[Peer]) -> str:
    """Return input for `nft -f -` that replaces the rules in the network of `one`.

    `pods` are all pods, with their addresses.
    """
    chains = "".join(chain(policies, one, pods, way) for way in WAYS)
    return f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n{chains}}}\n"


def chain(policies: Sequence[Object], one: Peer, pods: Sequence[Peer], way: str) -> str:
    """Return no rules, which allows everything, if no policy selects the pod."""
    hook, address, device = WAYS[way]
    if (rules := rules_for(policies, one, way)) is None:
        return ""
    lines = dict.fromkeys(line for rule in rules for line in accepts(rule, pods, way))
    body = "".join(f"    {line}\n" for line in lines)
    head = HEAD.format(way=way, hook=hook, device=device)
    return head + body + FOOT.format(way=way, address=address)


def accepts(rule: dict[str, Any], pods: Sequence[Peer], way: str) -> Iterator[str]:
    """Yield one line per peer and protocol that the rule allows."""
    numbers: dict[str, list[str]] = {}
    for protocol, port in ports_of(rule):
        numbers.setdefault(protocol.lower(), []).append(str(port))
    ports = [f"{name} dport {{ {', '.join(some)} }}" for name, some in numbers.items()]
    ends = ends_of(rule, way)
    for peer in peers(ends, pods, WAYS[way][1]) if ends else [""]:
        for words in ports or [""]:
            yield " ".join(part for part in (peer, words, "accept") if part)


def peers(ends: Sequence[dict[str, Any]], pods: Sequence[Peer], address: str) -> Iterator[str]:
    """Yield a match of the address of each peer."""
    for end in ends:
        if "ipBlock" in end:
            cidr = ip_network(end["ipBlock"]["cidr"])
            yield f"{'ip' if cidr.version == 4 else 'ip6'} {address} {cidr}"
        else:
            yield from (f"ip {address} {pod.address}" for pod in pods if selects(end, pod))
