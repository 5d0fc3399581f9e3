"""Loopback addresses, NO_PROXY, and credentials in error messages."""

from __future__ import annotations

import os

import pytest

from cluster.errors import CiteRayError, InputError, StorageError
from cluster.loopback import is_loopback, is_loopback_url, keep_loopback_off_proxies

HERE = (
    "localhost", "LOCALHOST", "localhost.", "llm.localhost", "127.0.0.1", "127.255.3.4", "127.1",
    "0x7f.0.0.1", "2130706433", "::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1",
    "[::ffff:7f00:1]", "::1%lo", "0.0.0.0", "::",
)  # fmt: skip
ELSEWHERE = (
    "", "example.org", "localhost.example.org", "mylocalhost", "128.0.0.1", "10.0.0.1",
    "169.254.169.254", "192.168.1.1", "::2", "2001:db8::1", "::ffff:10.0.0.1", "127.0.0.1.nip.io",
    "127.example.org",
)  # fmt: skip
NO_PROXY = "localhost,127.0.0.1,127.0.0.0/8,::1"


def test_loopback_hosts_are_recognised() -> None:
    assert [host for host in HERE if not is_loopback(host)] == []
    assert [host for host in ELSEWHERE if is_loopback(host)] == []


def test_loopback_urls_are_recognised() -> None:
    here = ["http://127.0.0.1:8000/v1", "http://me:word@localhost/", "https://[::1]:9/", "//127.1"]
    elsewhere = ["http://localhost@example.org/", "http://example.org/127.0.0.1", "127.0.0.1", "["]
    elsewhere.append("http://[")
    assert [url for url in here if not is_loopback_url(url)] == []
    assert [url for url in elsewhere if is_loopback_url(url)] == []


def test_loopback_addresses_are_added_to_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [
        ({"HTTP_PROXY": "http://p"}, NO_PROXY),
        ({"all_proxy": "socks5://p", "NO_PROXY": "a.org, b.org"}, f"a.org,b.org,{NO_PROXY}"),
        ({"HTTP_PROXY": "http://p", "no_proxy": "c.org", "NO_PROXY": "a.org"}, f"c.org,{NO_PROXY}"),
        ({"HTTP_PROXY": "http://p", "NO_PROXY": "*"}, None),
        ({"NO_PROXY": "a.org"}, None),
        ({"HTTP_PROXY": ""}, None),
    ]
    found = []
    for given, _ in cases:
        monkeypatch.setattr(os, "environ", dict(given))
        keep_loopback_off_proxies()
        keep_loopback_off_proxies()
        changed = {"no_proxy", "NO_PROXY"} & {
            n for n in os.environ if os.environ[n] != given.get(n)
        }
        values = {os.environ[name] for name in changed}
        found.append((given, values.pop() if changed == {"no_proxy", "NO_PROXY"} else None))
    assert found == cases


def test_errors_hide_url_credentials() -> None:
    secret = "http://user:pa:ss@word@host:8000/v1?a=b@c is unreachable; ask a@b.org"
    plain = "http://host:8000/v1?a=b@c is unreachable; ask a@b.org"
    found = {kind.__name__: str(kind(secret)) for kind in (CiteRayError, InputError, StorageError)}
    assert found == dict.fromkeys(found, plain)
    kept = ["s3://bucket/a@b", "hf:org/name@1", "file:///home/me@work/x", "no url"]
    assert [str(CiteRayError(text)) for text in kept] == kept
    assert CiteRayError(secret, 3).args == (plain, 3)
