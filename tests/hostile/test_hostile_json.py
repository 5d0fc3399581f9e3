"""Invalid JSON bodies, and valid ones with absurd values."""

from __future__ import annotations

import json
from time import process_time

import pytest

from tests.hostile.cpu_time import cpu_within
from tests.hostile.raw_http import QUESTION, ask, posted

ANSWER, SEARCH, CHAT = b"/v1/answer", b"/v1/search", b"/v1/chat/completions"
BATCHES, MCP = b"/v1/batches", b"/mcp"
HALF = b'"\\ud800 metformin"'
HUGE = b"9" * 4301
# CPU time in seconds within which a body with many errors must be refused.
SECONDS = 5.0


def asked(more: bytes, path: bytes = SEARCH) -> bytes:
    return posted(b'{"question": "Does metformin activate AMPK?", ' + more + b"}", path)


def chat(content: bytes, more: bytes = b"") -> bytes:
    turn = b'{"role": "user", "content": ' + content + b"}"
    return posted(b'{"model": "citeray", "messages": [' + turn + b"]" + more + b"}", CHAT)


def batch(row: bytes, more: bytes = b"") -> bytes:
    return posted(b'{"questions": [' + row + b"]" + more + b"}", BATCHES)


def tool(arguments: bytes) -> bytes:
    params = b'{"name": "search_pubmed", "arguments": ' + arguments + b"}"
    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ' + params + b"}"
    return posted(call, MCP, more=b"Accept: application/json\r\n")


def arrays(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def objects(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


REFUSED = {
    "no UTF-8": (posted(b'{"question": "\xff\xfe"}'), "body: is not UTF-8 at byte 14"),
    "100,000 brackets": (posted(b"[" * 100_000), "body: is nested too deep"),
    "50,000 levels": (asked(b'"x": ' + arrays(50_000)), "body: is nested too deep"),
    "a huge number": (asked(b'"k": ' + HUGE), "a number in it may have too many digits"),
    "no JSON": (posted(b"question"), "body: is not JSON: Expecting value at 0"),
    "nothing": (posted(b""), "body: is missing"),
    "k in quotes": (asked(b'"k": "5"'), "k: "),
    "k of NaN": (asked(b'"k": NaN'), "k: "),
    "k of 4,300 digits": (asked(b'"k": ' + b"9" * 4300), "k: "),
    "a PMID in quotes": (asked(b'"exclude": ["1"]'), "exclude.0: "),
    "an empty double": (asked(b'"question": ""'), "question: "),
    "half a character": (posted(b'{"question": ' + HALF + b"}"), "question: "),
    "a raw half": (posted(b'{"question": "\xed\xa0\x80"}'), "question: "),
    "half a field's name": (asked(b'"\\udfff": 1'), "body: "),
    "half a type of a batch": (
        batch(b'{"id": "a", "type": ' + HALF + b"}"),
        "type has a lone surrogate",
    ),
    "a batch's id with a line": (
        batch(b'{"id": "a\\n\\u202e", "type": "yesno", "body": ""}'),
        r"(id 'a\n\u202e')",
    ),
    "a batch that leaves its folder": (
        batch(b'{"id": "a", "type": "yesno", "body": "b"}', b', "id": "../x"'),
        "id: must be 1 to 64 letters",
    ),
    "an offset past 64 bits": (
        asked(
            b'"evidence": [{"pmid": 1, "section": "title", "begin": 0, "end": 1%s, "text": "a"}]'
            % (b"0" * 30),
            ANSWER,
        ),
        "evidence.0.end: ",
    ),
}


def test_unreadable_body_or_field_is_422_with_the_reason(
    port: int, subtests: pytest.Subtests
) -> None:
    for name, (request_, said) in REFUSED.items():
        with subtests.test(name):
            status, body = ask(port, request_)
            assert status == 422
            error = json.loads(body)["detail"]
            assert said in error
            assert error.isprintable()


BAD_CHATS = {
    "half a character": chat(HALF),
    "half a character, streamed": chat(HALF, b', "stream": true'),
    "a part that is parts": chat(b'[{"type": "text", "text": ' + objects(200) + b"}]"),
    "no text": chat(b"null"),
    "too deep": chat(b'"a"', b', "metadata": ' + arrays(50_000)),
    "a huge number": chat(b'"a"', b', "n": ' + HUGE),
}


def test_invalid_chat_gets_an_openai_error(port: int, subtests: pytest.Subtests) -> None:
    for name, request_ in BAD_CHATS.items():
        with subtests.test(name):
            status, body = ask(port, request_)
            assert status == 400
            assert json.loads(body)["error"]["type"] == "invalid_request_error"


def test_invalid_tool_call_gets_an_error(port: int, subtests: pytest.Subtests) -> None:
    for arguments in (
        b"5",
        b'{"question": "a", "k": NaN}',
        b'{"question": ' + HALF + b"}",
        b'{"question": ' + objects(900) + b"}",
        b'{"question": ' + objects(50_000) + b"}",
        b'{"question": "a", "k": ' + HUGE + b"}",
    ):
        with subtests.test(arguments[:40].decode()):
            status, body = ask(port, tool(arguments))
            reply = json.loads(body)
            assert status in (200, 400)
            assert "error" in reply or reply["result"]["isError"]


def test_nested_json_of_any_depth_causes_no_server_error(port: int) -> None:
    """Parser, validation and error messages fail at different depths near Python's limit."""
    for depth in (*range(100, 900, 100), *range(930, 1000, 4)):
        for deep in (arrays(depth), objects(depth)):
            for request in (asked(b'"x": ' + deep), chat(deep), batch(deep), tool(deep)):
                assert ask(port, request)[0] in (200, 400, 422)


MANY = {
    "PMIDs": asked(b'"exclude": [' + b'"",' * 300_000 + b"1]"),
    "fields": posted(b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}"),
    "messages": posted(b'{"model": "citeray", "messages": [' + b"1," * 300_000 + b"1]}", CHAT),
    "rows": batch(b"1," * 1_000_000 + b"1"),
    "a long row": batch(b'"' + b"x" * 9_000_000 + b'"'),
}


@pytest.mark.slow
def test_body_with_many_errors_is_refused_quickly(port: int, subtests: pytest.Subtests) -> None:
    for name, request_ in MANY.items():
        with subtests.test(name), cpu_within(SECONDS, of=process_time):
            status, body = ask(port, request_, patience_s=60)
            assert status in (400, 422)
            assert len(body) < 1000


def test_byte_order_mark_is_accepted(port: int) -> None:
    for encoding in ("utf-8-sig", "utf-16", "utf-32"):
        assert ask(port, posted(QUESTION.decode().encode(encoding)))[0] == 200
