"""The verdict in every client over HTTP: the API, its stream, Python, OpenAI's form, MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from mcp import Client

from cluster.settings.settings import load_settings
from serve.answer.tell_verdict import NO_ANSWER
from serve.answer_events import Finished
from serve.client.python_client import CiteRay
from serve.http.api import create_api
from tests.serve.http_server import serving
from tests.serve.service import DISPUTED, SmallService, dispute, unsure_of

QUESTION = "Does metformin activate AMPK?"
UNSURE, MIXED = "not_enough_evidence", "mixed"


@pytest.fixture(scope="module")
def unsure() -> Iterator[str]:
    service = SmallService(decide=unsure_of)
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    index = tmp_path_factory.mktemp("mixed")
    service = SmallService(index, citations=DISPUTED, decide=dispute)
    with serving(create_api(service, load_settings().serve)) as port:
        yield f"http://127.0.0.1:{port}"


def post(url: str, **fields: Any) -> httpx.Response:
    asked = {"question": QUESTION, "type": "yesno", **fields}
    return httpx.post(f"{url}/v1/answer", json=asked, timeout=60).raise_for_status()


def say(url: str) -> tuple[str, Any]:
    """What OpenAI's client is told, in words and in the field `citeray`."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        messages: Any = [{"role": "user", "content": QUESTION}]
        message = client.chat.completions.create(model="citeray", messages=messages)
        extra: Any = message.choices[0].message.model_extra
        return message.choices[0].message.content or "", extra["citeray"]


def test_without_enough_evidence_the_api_states_nothing_and_cites_the_nearest(unsure: str) -> None:
    found = post(unsure).json()
    assert (found["verdict"], found["confidence"]) == (UNSURE, 0.25)
    assert (found["ideal"], found["exact"], found["supported"]) == ([], None, [])
    assert (found["origin"], found["guess"]) == ("none", None)
    assert found["citations"][0]["pmid"] == 1
    assert found["evidence"][0]["stance"] == "unknown"
    guessed = post(unsure, guess=True).json()
    assert (guessed["ideal"], guessed["exact"]) == ([], None)
    assert guessed["guess"]["exact"] == "yes"
    assert guessed["guess"]["ideal"][0]["pmids"] == [1]


def test_the_python_client_has_the_verdict_and_the_guess(unsure: str) -> None:
    with CiteRay(unsure, timeout_s=60) as citeray:
        answer = citeray.answer(QUESTION, type="yesno", guess=True)
        *_, last = citeray.answer_events(QUESTION)
    assert (answer.verdict, answer.choice.exact) == (UNSURE, "yes")
    assert isinstance(last, Finished)
    assert (last.answer.verdict, last.answer.guess) == (UNSURE, None)


def call(url: str) -> Any:
    async def connected() -> Any:
        async with Client(f"{url}/mcp") as client:
            return await client.call_tool("answer_question", {"question": QUESTION})

    return asyncio.run(connected())


# The client of OpenAI asks `uname` for its headers.
@pytest.mark.process
def test_chat_programs_and_models_are_told_in_plain_words(unsure: str) -> None:
    words, whole = say(unsure)
    assert words.startswith(f"{NO_ANSWER}\nNearest citations: PMID 1: Metformin and AMPK")
    result = call(unsure)
    assert result.content[0].text.startswith(NO_ANSWER)
    for told in (whole, result.structured_content):
        assert (told["verdict"], told["guess"]) == (UNSURE, None)


def test_where_sources_disagree_the_evidence_says_on_which_side_it_is(mixed: str) -> None:
    found = post(mixed).json()
    assert found["verdict"] == MIXED
    sides = {item["passage"]["pmid"]: item for item in found["evidence"]}
    assert (sides[1]["stance"], sides[4]["stance"]) == ("support", "contradict")
    assert sides[1]["stance_on"] == sides[4]["stance_on"] == found["exact"]


# The client of OpenAI asks `uname` for its headers.
@pytest.mark.process
def test_where_sources_disagree_words_quote_both_sides(mixed: str) -> None:
    words, _ = say(mixed)
    first, *rest = words.split("\n")
    assert first.startswith("Sources disagree.")
    assert not {"Yes.", "No."} & set(rest)
    assert [line for line in rest if line.startswith("Supports ") and line.endswith("[PMID 1]")]
    assert [line for line in rest if line.startswith("Contradicts ") and "does not" in line]
