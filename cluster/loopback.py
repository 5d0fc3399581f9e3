"""Recognise loopback addresses, and exclude them from proxies.

A request to a server on this machine must never go to a proxy in HTTP_PROXY or ALL_PROXY: the proxy
could not reach the server, and would see questions and API keys.
"""

from __future__ import annotations

import os
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

# Without IPv6 addresses in brackets, which httpx cannot parse in NO_PROXY.
_NO_PROXY = ("localhost", "127.0.0.1", "127.0.0.0/8", "::1")


def is_loopback(host: str) -> bool:
    """Return True if `host`, a name or an address, is a loopback address.

    True for localhost and names below it, 127.0.0.0/8 in every notation, ::1, their IPv4-mapped
    forms, and 0.0.0.0 and ::, which connect to this machine. Names are not resolved.
    """
    name = host.strip("[]").partition("%")[0].rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _parse_address(name)
    if address is None:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def _parse_address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        pass
    try:
        # Short and hexadecimal notations such as 127.1, which connect to the same address.
        return IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None


def is_loopback_url(url: str) -> bool:
    """Return True if the host of `url` is a loopback address."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def keep_loopback_off_proxies() -> None:
    """Add the loopback addresses to NO_PROXY if the environment names a proxy.

    For libraries that read NO_PROXY themselves (such as Ray's job client and huggingface_hub) and
    for child processes such as pip. CiteRay's own clients are in `cluster.http_clients`.
    """
    if not any(_names_proxy(name) and value for name, value in os.environ.items()):
        return
    named = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    given = [part.strip() for part in named.split(",") if part.strip()]
    if "*" in given:
        return
    value = ",".join(dict.fromkeys([*given, *_NO_PROXY]))
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = value


def _names_proxy(variable: str) -> bool:
    name = variable.lower()
    return name.endswith("_proxy") and name != "no_proxy"
