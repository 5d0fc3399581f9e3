"""Checks of the `Host` and `Origin` headers.

A web page can point its own host name at this machine (DNS rebinding). The browser then treats the
page as same-origin and lets it send any request and read the response. But it cannot change `Host`,
in which the browser sends its host name. Pages of other origins are recognised by `Origin`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers

ANY = "*"
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(:[0-9]{1,5})?")


def explain_host(headers: Headers, hosts: Sequence[str]) -> str:
    """Return why the `Host` of a request is not allowed, or "".

    IP addresses, `localhost` and its subdomains are always allowed, as DNS rebinding cannot use
    them. Any other name must be in `hosts`: `NAME`, `*.NAME` for all its subdomains, or `*` for
    every name. A request without `Host` is allowed, as browsers always send this header.
    """
    given = headers.getlist("host")
    if not given or ANY in hosts:
        return ""
    found = AUTHORITY.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        return "Host: is not a single name or address; send the server's own"
    name = found[1].lower().removesuffix(".")
    if _is_address(name) or any(_covers(known, name) for known in ("localhost", *hosts)):
        return ""
    if name.endswith(".localhost"):
        return ""
    return (
        f"Host: this server does not accept the name {name}; use its address or localhost, or ask "
        "its operator to add the name to serve.http.hosts"
    )


def explain_origin(method: str, headers: Headers, origins: Sequence[str]) -> str:
    """Return why the `Origin` of a request is not allowed, or ""; call after `explain_host`.

    This server's own origin and those in `origins` are allowed, and so is a request without
    `Origin`, such as one from a client that is not a browser. A preflight request (OPTIONS) is
    always allowed, as it neither reads nor changes data.
    """
    origin = headers.get("origin")
    if origin is None or origin in origins or ANY in origins or method == "OPTIONS":
        return ""
    try:
        asking = urlsplit(origin).netloc.lower()
    except ValueError:
        asking = ""
    if asking and asking == headers.get("host", "").lower():
        return ""
    return (
        f"Origin: pages of {origin[:200]} may not send requests; ask the server's operator to add "
        "it to serve.http.cors_origins"
    )


def _is_address(name: str) -> bool:
    try:
        ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _covers(known: str, name: str) -> bool:
    known = known.lower().removesuffix(".")
    return name.endswith(known[1:]) if known.startswith("*.") else name == known
