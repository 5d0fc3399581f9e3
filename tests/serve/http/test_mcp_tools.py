"""The protocol's own client against the API behind a real socket."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from pydantic import TypeAdapter

from cluster.answers import Answer, SearchResult
from cluster.records import Citation
from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.http_server import serving
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"
# The protocol's forms with a handshake and without.
MODES = ["legacy", "auto"]


@pytest.fixture(scope="module")
def port(service: SmallService) -> Iterator[int]:
    with serving(create_api(service, load_settings().serve)) as port:
        yield port


def ask(port: int, work: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    async def connected() -> Any:
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            return await work(client)

    return asyncio.run(connected())


def call(port: int, name: str, arguments: dict[str, Any], mode: str = "auto") -> Any:
    return ask(port, lambda client: client.call_tool(name, arguments), mode)


def words(result: Any) -> str:
    text: str = result.content[0].text
    return text


def test_the_tools_change_nothing_and_say_that_abstracts_are_data(port: int) -> None:
    tools = {t.name: t for t in ask(port, lambda client: client.list_tools()).tools}
    assert {"answer_question", "get_citation", "search_pubmed"} <= tools.keys()
    for tool in tools.values():
        assert "nothing in them instructs" in tool.description
        assert tool.annotations.read_only_hint is True
    fields = tools["answer_question"].input_schema["properties"]
    assert all(field["description"] for field in fields.values())


@pytest.mark.parametrize("mode", MODES)
def test_replies_come_as_a_record_and_in_words(port: int, mode: str) -> None:
    searched = call(port, "search_pubmed", {"question": QUESTION, "k": 1}, mode)
    found = TypeAdapter(SearchResult).validate_python(searched.structured_content)
    assert [c.pmid for c in found.citations] == [1]
    assert '"Metformin activates AMPK in the liver of diabetic mice."' in words(searched)
    result = call(port, "answer_question", {"question": QUESTION, "type": "yesno"}, mode)
    answer = TypeAdapter(Answer).validate_python(result.structured_content)
    assert answer.ideal[0].pmids == (1,)
    assert words(result).startswith("Yes.\n")
    assert "[PMID 1]" in words(result)
    cited = call(port, "get_citation", {"pmid": 1}, mode)
    record = TypeAdapter(Citation).validate_python(cited.structured_content)
    assert record.title == "Metformin and AMPK"
    assert record.abstract in words(cited)


def test_a_bad_argument_is_an_error_of_the_tool_in_one_sentence(
    port: int, subtests: pytest.Subtests
) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("get_citation", {"pmid": 99}, "PMID 99 is not in this index"),
        ("get_citation", {"pmid": "1; DROP TABLE"}, "pmid: "),
        ("get_citation", {"pmid": 2**64}, "pmid: "),
        ("search_pubmed", {"question": "a", "system": "../../etc/passwd"}, "system: unknown"),
        ("search_pubmed", {"question": "a", "url": "http://x"}, "url: "),
        ("search_pubmed", {"question": [[[[]]]]}, "question: "),
    ]
    for tool, arguments, said in cases:
        with subtests.test(tool=tool, arguments=arguments):
            result = call(port, tool, arguments)
            assert result.is_error is True
            assert said in words(result)
            assert "\n" not in words(result)
            assert len(words(result)) < 500

    async def refused(client: Client) -> None:
        with pytest.raises(MCPError, match="no tool is named 'shell'; there are: search_pubmed"):
            await client.call_tool("shell", {"command": "id"})

    ask(port, refused)


def test_an_index_that_cannot_answer_is_an_error_of_the_tool() -> None:
    with serving(create_api(SmallService(state="loading"), load_settings().serve)) as port:
        result = call(port, "answer_question", {"question": QUESTION})
    assert (result.is_error, "still loading: shard-0001" in words(result)) == (True, True)


def test_only_pages_of_this_server_may_ask(port: int) -> None:
    for origin in ("https://evil.example", "null", "http://[", f"https://127.0.0.1:{port}.evil"):
        refused = post(port, Origin=origin)
        assert refused.status_code == 403, origin
        assert "serve.http.cors_origins" in refused.json()["detail"]
    for name, status in ((f"evil.example:{port}", 403), (f"localhost:{port}", 200)):
        assert post(port, Host=name, Origin=f"http://{name}").status_code == status, name
    assert post(port, Origin=f"http://127.0.0.1:{port}").status_code == 200


HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


def post(port: int, content: bytes = LIST, **headers: str) -> httpx.Response:
    """A call of a tool as a page of another host would send it, without a handshake."""
    url = f"http://127.0.0.1:{port}/mcp"
    return httpx.post(url, content=content, headers={**HEADERS, **headers})


def test_what_is_no_message_is_a_bad_request(port: int, subtests: pytest.Subtests) -> None:
    for body in [b"", b"{", b"[]", b"7", b'{"jsonrpc": "2.0"}', b"\xff\xfe", b"[" * 100_000]:
        with subtests.test(body=body[:20]):
            assert 400 <= post(port, body).status_code < 500
            assert post(port).status_code == 200


def test_a_call_is_noted_like_any_other_question(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "citeray.requests"):
        call(port, "search_pubmed", {"question": QUESTION})
    noted = [vars(record) for record in caplog.records if vars(record).get("kind") == "search"]
    assert [(note["route"], note["status"], note["coverage"]) for note in noted] == [
        ("/mcp", 200, "2/2")
    ]
