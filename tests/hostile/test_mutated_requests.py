"""Good requests with a few bytes changed, cut out, doubled or crossed with another's."""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.hostile.raw_http import QUESTION, ask, head, posted

BODIES = {
    b"/v1/search": QUESTION,
    b"/v1/answer": b'{"question": "Does metformin activate AMPK?", "k": 5, "type": "yesno", '
    b'"evidence": [{"pmid": 1, "section": "title", "begin": 0, "end": 9, "text": "Metformin"}]}',
    b"/v1/chat/completions": b'{"model": "citeray", "messages": [{"role": "user", "content": '
    b'[{"type": "text", "text": "Does metformin activate AMPK?"}]}], "n": 1, "stream": false}',
    b"/v1/batches": b'{"questions": [{"id": "q1", "type": "yesno", "body": "Is it?"}], "id": "b"}',
    b"/mcp": b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": '
    b'"answer_question", "arguments": {"question": "Does metformin activate AMPK?", "k": 5}}}',
}
GETS = [b"/", b"/v1/models/citeray", b"/v1/citations/1", b"/v1/batches/b/run", b"/static/page.css"]
ACCEPT = b"Accept: application/json\r\n"
WHOLE = [
    *(posted(body, path, more=ACCEPT) for path, body in BODIES.items()),
    *(head(b"GET", path, ACCEPT) for path in GETS),
]
PIECES = [
    *(b"\r\n", b"\n", b"\0", b"\xff", b" ", b":", b"chunked", b"HTTP/1.1", b"/v1/answer", b"%00"),
    *(b"Transfer-Encoding: chunked\r\n", b"Content-Length: 0\r\n", b"..", b"[", b"{", b"}", b'"'),
    *(b"\\ud800", b"\\u0000", b"9" * 30, b"1e999", b"-", b",", b"null", b"NaN", b"true", b"[[]]"),
]


def mutated(draw: random.Random, whole: bytes, others: list[bytes]) -> bytes:
    text = bytearray(whole)
    for _ in range(draw.randint(1, 5)):
        at, size = draw.randrange(len(text) + 1), draw.randint(1, 30)
        match draw.randrange(5):
            case 0:
                text[at:at] = draw.choice(PIECES)
            case 1:
                del text[at : at + size]
            case 2:
                text[at : at + 1] = draw.randbytes(1)
            case 3:
                text[at:at] = text[at : at + size]
            case 4:
                other = draw.choice(others)
                text[at:] = other[draw.randrange(len(other)) :]
    return bytes(text)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("seed", range(4))
def test_no_change_of_a_body_is_an_error_of_the_server(port: int, seed: int) -> None:
    draw = random.Random(seed)
    bodies = list(BODIES.values())
    for path, body in list(BODIES.items()) * 30:
        request = posted(mutated(draw, body, bodies), path, more=ACCEPT)
        status, reply = ask(port, request)
        assert 200 <= status < 500, (request, reply)


def test_no_change_of_a_request_is_an_error_of_the_server_or_leaves_anything_open(
    port: int,
) -> None:
    draw = random.Random(2026)
    before = open_files()
    for number in range(300):
        request = mutated(draw, WHOLE[number % len(WHOLE)], WHOLE)
        status, reply = ask(port, request, patience_s=0.1)
        assert status < 500, (request, reply)
    end = time.monotonic() + 10
    while open_files() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert open_files() <= before
