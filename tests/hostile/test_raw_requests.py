"""Invalid HTTP requests, and ambiguous ones that two parsers may read differently.

The mutated ones are a sample; `python -m tests.hostile.fuzz_requests` sends any number.
"""

from __future__ import annotations

import json
import os
import random
import time
from itertools import product

import pytest

from tests.hostile.fuzz_requests import ACCEPT, BODIES, WHOLE, mutated
from tests.hostile.raw_http import QUESTION, ask, head, posted, statuses

SIZE = b"Content-Length: %d\r\n" % len(QUESTION)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
SMUGGLED = head(b"GET", b"/v1/models")


def post(more: bytes) -> bytes:
    return head(b"POST", b"/v1/search", b"Content-Type: application/json\r\n" + more)


AMBIGUOUS = {
    "two lengths": post(SIZE + b"Content-Length: 5\r\n") + QUESTION + SMUGGLED,
    "a length and chunks": post(b"Content-Length: 4\r\n" + CHUNKED) + b"0\r\n\r\n" + SMUGGLED,
    "chunks and a length": post(CHUNKED + b"Content-Length: 4\r\n") + b"0\r\n\r\n" + SMUGGLED,
    "two encodings": post(CHUNKED + b"Transfer-Encoding: x\r\n") + b"0\r\n\r\n" + SMUGGLED,
    "a space before the colon": post(b"Transfer-Encoding : chunked\r\n") + b"0\r\n\r\n" + SMUGGLED,
    "a negative length": post(b"Content-Length: -1\r\n") + SMUGGLED,
    "a length past 64 bits": post(b"Content-Length: " + b"9" * 30 + b"\r\n") + SMUGGLED,
    "a chunk of no size": post(CHUNKED) + b"zz\r\n" + SMUGGLED,
    "a chunk past 64 bits": post(CHUNKED) + b"f" * 17 + b"\r\n" + SMUGGLED,
    "chunks over the limit": post(CHUNKED)
    + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 64
    + SMUGGLED,
    "a length in the trailer": post(CHUNKED) + b"0\r\nContent-Length: 5\r\n\r\n" + SMUGGLED,
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: x\n\n" + SMUGGLED,
    "bare returns": b"GET /healthz HTTP/1.1\rHost: x\r\r" + SMUGGLED,
    "a folded header": head(b"GET", b"/healthz", b"X-A: a\r\n b\r\n") + SMUGGLED,
    "a NUL in a header": head(b"GET", b"/healthz", b"X-A: a\x00b\r\n") + SMUGGLED,
    "a space in the path": head(b"GET", b"/v1/ models") + SMUGGLED,
    "raw bytes in the path": head(b"GET", b"/\xff\xfe") + SMUGGLED,
    "a method in lower case": head(b"get", b"/healthz") + SMUGGLED,
    "a tunnel": head(b"CONNECT", b"example.org:443") + SMUGGLED,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED,
    "every byte": bytes(range(256)) * 4 + b"\r\n\r\n" + SMUGGLED,
}


def test_ambiguous_requests_are_refused_and_the_rest_is_not_parsed(
    port: int, subtests: pytest.Subtests
) -> None:
    for request_ in AMBIGUOUS.values():
        with subtests.test(request_=request_):
            replied = statuses(port, request_)
            assert len(replied) <= 1
            assert all(400 <= status < 500 for status in replied)


def test_headers_over_the_limit_are_refused(port: int) -> None:
    for more in (
        b"X-A: " + b"a" * 1_000_000 + b"\r\n",
        b"".join(b"X-%d: a\r\n" % number for number in range(20_000)),
    ):
        status, body = ask(port, head(b"GET", b"/healthz", more))
        assert status == 431
        assert "exceed 65,536 bytes" in json.loads(body)["detail"]


def test_unsent_body_blocks_no_other_request(port: int) -> None:
    assert ask(port, post(SIZE) + b"{", patience_s=0.3) == (0, b"")


PATHS = [
    b"/static/../api.py",
    b"/static/%2e%2e/api.py",
    b"/static/..\\..\\api.py",
    b"/static//etc/passwd",
    b"/static/page.css%00.js",
    b"/static/%ed%a0%80",
    b"/static/" + b"a/" * 20_000,
    b"/v1/batches/..%2f..%2fetc",
    b"/v1/batches/%00/run",
    b"/v1/batches/a%0d%0aX-A:b/run",
    b"/v1/models/%ed%a0%80",
    b"/v1/models/" + b"a" * 60_000,
    b"/v1/citations/" + b"9" * 5000,
    b"/v1/citations/%D9%A1",
    b"/%zz",
    b"*",
    b"http://example.org/v1/nothing",
    b"/" + b"a" * 1_000_000,
]


def test_a_path_leads_nowhere_else(port: int, subtests: pytest.Subtests) -> None:
    for host, path in product([b"localhost", b"x", b"[", b"a/b@c:99999999", b"\xff"], PATHS):
        with subtests.test(path=path, host=host):
            status, body = ask(port, b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
            assert 400 <= status < 500
            assert b"root:" not in body
            assert b"import" not in body


def test_a_caller_who_names_another_host_is_not_sent_there(port: int) -> None:
    request = b"POST /v1/search/ HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n"
    assert ask(port, request % b"example.org")[0] == 403
    assert ask(port, request % b"localhost")[0] == 404


def test_unknown_method_is_405(port: int) -> None:
    for path in (b"/v1/batches", b"/v1/batches/a", b"/static/page.css", b"/mcp"):
        assert ask(port, head(b"PROPFIND", path))[0] == 405


HEADERS = {
    "no text in any": b"X-A: \xff\xfe\r\nX-Request-ID: \xff\r\nAuthorization: Bearer \xff\r\n",
    "an id with a line": b"X-Request-ID: a\tb\r\n",
    "an origin that is no URL": b"Origin: http://[\xff\r\n",
    "a websocket": b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n",
    "HTTP/2 in clear": b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAA\r\n",
    "no date": b"If-Modified-Since: \xff\r\nIf-Range: \xff\r\nRange: bytes=0-1\r\n",
}


def test_malformed_headers_cause_no_server_error(port: int, subtests: pytest.Subtests) -> None:
    for more, path in product(
        HEADERS.values(), [b"/", b"/static/page.css", b"/healthz", b"/v1/models", b"/docs"]
    ):
        with subtests.test(path=path, more=more):
            status, _ = ask(port, head(b"GET", path, more))
            assert 200 <= status < 500


def test_body_of_another_content_type_is_422_and_names_json(port: int) -> None:
    for kind in (b"application/\xff\xfe; charset=\xff", b";;;=;=", b"multipart/form-data", b""):
        status, body = ask(port, posted(QUESTION, kind=kind))
        assert status == 422
        assert "`Content-Type: application/json`" in json.loads(body)["detail"]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_mutated_bodies_cause_no_server_error(port: int, subtests: pytest.Subtests) -> None:
    for seed in range(4):
        with subtests.test(seed=seed):
            draw = random.Random(seed)
            bodies = list(BODIES.values())
            for path, body in list(BODIES.items()) * 30:
                request = posted(mutated(draw, body, bodies), path, more=ACCEPT)
                status, reply = ask(port, request)
                assert 200 <= status < 500, (request, reply)


@pytest.mark.slow
def test_mutated_requests_cause_no_server_error_and_leave_no_open_files(port: int) -> None:
    draw = random.Random(2026)
    before = open_files()
    for number in range(300):
        request = mutated(draw, WHOLE[number % len(WHOLE)], WHOLE)
        status, reply = ask(port, request, patience_s=0.1)
        assert status < 500, (request, reply)
    end = time.monotonic() + 60
    while open_files() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert open_files() <= before
