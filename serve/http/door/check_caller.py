"""Checks by which name a request calls this server, and which web page sends it.

A web page can have its own name point at this machine (DNS rebinding). The browser then takes
the page for one of this server, and lets it read, ask and delete. It cannot hide the name, which
its browser sends as `Host`. A page of any other origin shows itself by `Origin`.
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
    """What is wrong with the name that the request calls this server by, or "".

    An address is nobody's to point elsewhere, and so are `localhost` and the names under it. Any
    other name must be in `hosts`: `NAME`, `*.NAME` for all names under it, or `*` for every name.
    A request without `Host` comes from no browser.
    """
    given = headers.getlist("host")
    if not given or ANY in hosts:
        return ""
    found = AUTHORITY.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        return "Host: is not one name or address; send the server's own"
    name = found[1].lower().removesuffix(".")
    if _is_address(name) or any(_covers(known, name) for known in ("localhost", *hosts)):
        return ""
    if name.endswith(".localhost"):
        return ""
    return (
        f"Host: this server does not answer to the name {name}; ask by its address or localhost, "
        "or have its operator add the name to serve.http.hosts"
    )


def explain_origin(method: str, headers: Headers, origins: Sequence[str]) -> str:
    """Why the page that sends the request may not, or "". To be asked after `explain_host`.

    A page of this server may, and so may one of `origins`; what is no browser names no origin. A
    preflight request (OPTIONS) changes and reads nothing: its reply tells what is allowed.
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
        f"Origin: a page of {origin[:200]} may not ask; have the server's operator add it to "
        "serve.http.cors_origins"
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
