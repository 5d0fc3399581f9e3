"""Bodies that are no JSON, or JSON as nobody means it."""

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
# A request's own work beside this is little; what is refused must cost less.
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


UNREADABLE = {
    "no UTF-8": (posted(b'{"question": "\xff\xfe"}'), "body: is not UTF-8 at byte 14"),
    "overlong UTF-8": (posted(b'{"question": "\xc0\xaf"}'), "body: is not UTF-8"),
    "UTF-8 cut short": (posted(b'{"question": "\xe2\x82'), "body: is not UTF-8"),
    "100,000 brackets": (posted(b"[" * 100_000), "body: is nested too deep"),
    "50,000 levels": (asked(b'"x": ' + arrays(50_000)), "body: is nested too deep"),
    "50,000 objects": (posted(objects(50_000)), "body: is nested too deep"),
    "a huge number": (asked(b'"k": ' + HUGE), "a number in it may have too many digits"),
    "no JSON": (posted(b"question"), "body: is no JSON: Expecting value at 0"),
    "NULs": (posted(b"\0" * 10), "body: "),
    "nothing": (posted(b""), "body: Field required"),
    "null": (posted(b"null"), "body: Field required"),
    "NaN": (posted(b"NaN"), "body: "),
}


@pytest.mark.parametrize(("request_", "said"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_body_that_cannot_be_read_is_told_why(port: int, request_: bytes, said: str) -> None:
    status, body = ask(port, request_)
    assert status == 422
    assert said in json.loads(body)["detail"]


BAD_FIELDS = {
    "k in quotes": (asked(b'"k": "5"'), "k: "),
    "k of true": (asked(b'"k": true'), "k: "),
    "k of NaN": (asked(b'"k": NaN'), "k: "),
    "k of infinity": (asked(b'"k": Infinity'), "k: "),
    "k of 1e999": (asked(b'"k": 1e999'), "k: "),
    "k of 4,300 digits": (asked(b'"k": ' + b"9" * 4300), "k: "),
    "a budget below all": (asked(b'"budget_ms": -Infinity'), "budget_ms: "),
    "yes for true": (asked(b'"snippets": "yes"'), "snippets: "),
    "1 for true": (asked(b'"stream": 1', ANSWER), "stream: "),
    "a PMID in quotes": (asked(b'"exclude": ["1"]'), "exclude.0: "),
    "an empty double": (asked(b'"question": ""'), "question: "),
    "half a character": (posted(b'{"question": ' + HALF + b"}"), "question: "),
    "a raw half": (posted(b'{"question": "\xed\xa0\x80"}'), "question: "),
    "half an id": (asked(b'"id": ' + HALF), "id: "),
    "half a preset": (asked(b'"system": ' + HALF), "system: "),
    "half a field's name": (asked(b'"\\udfff": 1'), "body: "),
    "half a question of a batch": (
        batch(b'{"id": "a", "type": "yesno", "body": ' + HALF + b"}"),
        "body holds half a character",
    ),
    "half a type of a batch": (batch(b'{"id": "a", "type": ' + HALF + b"}"), "type holds half"),
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


@pytest.mark.parametrize(("request_", "said"), BAD_FIELDS.values(), ids=BAD_FIELDS)
def test_a_field_that_is_not_what_it_should_be_is_named(
    port: int, request_: bytes, said: str
) -> None:
    status, body = ask(port, request_)
    assert status == 422
    error = json.loads(body)["detail"]
    assert said in error
    assert error.isprintable()


BAD_CHATS = {
    "half a character": chat(HALF),
    "half a character in a part": chat(b'[{"type": "text", "text": ' + HALF + b"}]"),
    "half a character, streamed": chat(HALF, b', "stream": true'),
    "a part that is a number": chat(b'[{"type": "text", "text": 5}]'),
    "a part that is parts": chat(b'[{"type": "text", "text": ' + objects(200) + b"}]"),
    "no text": chat(b"null"),
    "deep text": chat(arrays(900)),
    "too deep": chat(b'"a"', b', "metadata": ' + arrays(50_000)),
    "a huge number": chat(b'"a"', b', "n": ' + HUGE),
    "no UTF-8": chat(b'"\xff"'),
}


@pytest.mark.parametrize("request_", BAD_CHATS.values(), ids=BAD_CHATS)
def test_a_chat_that_makes_no_sense_is_told_so_in_its_own_form(port: int, request_: bytes) -> None:
    status, body = ask(port, request_)
    assert status == 400
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "arguments",
    [b"5", b"[]", b'{"question": "a", "k": NaN}', b'{"question": ' + HALF + b"}", arrays(900)]
    + [b'{"question": ' + objects(depth) + b"}" for depth in (100, 900, 50_000)]
    + [b'{"question": "a", "k": ' + HUGE + b"}", b'{"question": "\\u0000", "k": "5"}'],
    ids=lambda arguments: arguments[:40].decode(),
)
def test_a_tool_called_with_nonsense_says_so(port: int, arguments: bytes) -> None:
    status, body = ask(port, tool(arguments))
    reply = json.loads(body)
    assert status in (200, 400)
    assert "error" in reply or reply["result"]["isError"]


@pytest.mark.parametrize("shape", [arrays, objects])
def test_no_depth_is_a_crash(port: int, shape: object) -> None:
    """Around Python's own limit what reads, checks and quotes a body gives up at different ones."""
    assert callable(shape)
    for depth in (*range(100, 900, 100), *range(930, 1000, 4)):
        deep = shape(depth)
        for request in (asked(b'"x": ' + deep), chat(deep), batch(deep), tool(deep)):
            assert ask(port, request)[0] in (200, 400, 422)


MANY = {
    "PMIDs": asked(b'"exclude": [' + b'"",' * 300_000 + b"1]"),
    "passages": asked(b'"evidence": [' + b"{}," * 300_000 + b"1]", ANSWER),
    "fields": posted(b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}"),
    "messages": posted(b'{"model": "citeray", "messages": [' + b"1," * 300_000 + b"1]}", CHAT),
    "parts": chat(b"[" + b"1," * 300_000 + b"1]"),
    "rows": batch(b"1," * 1_000_000 + b"1"),
    "a long row": batch(b'"' + b"x" * 9_000_000 + b'"'),
}


@pytest.mark.slow
@pytest.mark.parametrize("request_", MANY.values(), ids=MANY)
def test_a_body_full_of_faults_is_refused_in_no_time(port: int, request_: bytes) -> None:
    with cpu_within(SECONDS, of=process_time):
        status, body = ask(port, request_, patience_s=60)
    assert status in (400, 422)
    assert len(body) < 1000


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_does_no_harm(port: int, encoding: str) -> None:
    assert ask(port, posted(QUESTION.decode().encode(encoding)))[0] == 200
