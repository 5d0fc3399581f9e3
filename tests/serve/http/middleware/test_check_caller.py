"""Checks of `Host` and `Origin`, against DNS rebinding."""

from __future__ import annotations

import re
from itertools import product

import pytest
from starlette.testclient import TestClient

from cluster.errors import InputError
from cluster.settings.settings import load_settings
from tests.hostile.raw_http import ask
from tests.serve.api import client_of, make_api
from tests.serve.http_server import serving
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

REBOUND = {"Host": "rebound.example:8000"}
QUESTION = {"question": "Does metformin activate AMPK?"}


def routes(http: TestClient) -> list[tuple[str, str]]:
    """Return every method and path of the API and of the page."""
    described = http.get("/openapi.json").json()["paths"]
    found = [(method, path) for path, methods in described.items() for method in methods]
    found += [("get", path) for path in ("/", "/docs", "/static/page.css", "/nowhere")]
    found.append(("post", "/mcp"))
    return [(method, re.sub(r"\{\w+\}", "1", path)) for method, path in found]


def test_every_route_refuses_other_hosts_and_origins(http: TestClient) -> None:
    origins = ("https://evil.example", "http://localhost:3000", "null", "http://[")
    callers = [(REBOUND, "does not accept the name rebound.example")]
    callers += [
        ({"Origin": origin}, f"pages of {origin} may not send requests") for origin in origins
    ]
    for (headers, said), (method, path) in product(callers, routes(http)):
        refused = http.request(method, path, headers=headers)
        assert refused.status_code == 403, (headers, method, path)
        assert said in refused.text


HOSTS = {
    200: (
        *("localhost", "localhost:8000", "LocalHost", "localhost.", "lab.localhost:8000"),
        *("127.0.0.1", "127.0.0.1:8000", "10.0.3.17:8000", "[::1]:8000", "[fd00::12]"),
    ),
    403: (
        *("", "a b", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "a@b"),
        *("localhost:8000:1", "localhost/x", "[::1].evil", "citeray", "[localhost]", ":8000"),
    ),
}


def test_addresses_and_localhost_are_allowed_hosts(
    http: TestClient, subtests: pytest.Subtests
) -> None:
    for status, hosts in HOSTS.items():
        for host in hosts:
            with subtests.test(host=host):
                reply = http.get("/healthz", headers={"Host": host})
                assert (reply.status_code, "Host: " in reply.text) == (status, status == 403)


def test_two_hosts_are_refused_and_none_is_allowed(service: SmallService) -> None:
    with serving(make_api(service)) as port:
        two = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
        assert ask(port, two)[0] == 403
        assert ask(port, b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 200


def test_configured_hosts_are_allowed_with_their_own_origin(service: SmallService) -> None:
    http = client_of(service, "http.hosts=[citeray, '*.Example.org']", "host=lab7")
    for host in ("citeray:8000", "a.example.org", "a.b.EXAMPLE.org", "lab7:8000"):
        assert http.get("/healthz", headers={"Host": host}).status_code == 200, host
    for host in ("example.org", "citeray.evil.example", "badexample.org"):
        assert http.get("/healthz", headers={"Host": host}).status_code == 403, host
    any_name = client_of(service, "http.hosts=['*']")
    assert any_name.get("/healthz", headers=REBOUND).status_code == 200
    named = {"Host": "a.example.org", "Origin": "https://a.example.org"}
    assert http.post("/v1/search", json=QUESTION, headers=named).status_code == 200
    other = {**named, "Origin": "https://a.example.org:8443"}
    assert http.post("/v1/search", json=QUESTION, headers=other).status_code == 403


def test_invalid_host_setting_is_refused() -> None:
    for name in ("https://a.example", "a.example:8000", "a b", "*a", ""):
        with pytest.raises(InputError, match=r"serve\.http\.hosts"):
            load_settings(overrides=[f"serve.http.hosts=['{name}']"])
