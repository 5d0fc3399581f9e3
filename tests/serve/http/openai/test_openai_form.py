from collections.abc import Iterator
from typing import Any

import openai
import pytest

from cluster.answers import Turn
from cluster.settings.presets import system_names
from serve.http.openai.openai_request import ChatRequest
from tests.serve.api import served_api
from tests.serve.service import SmallService

pytestmark = pytest.mark.slow

QUESTION = "Does metformin activate AMPK?"
ASKED: Any = [{"role": "user", "content": QUESTION}]


def client_at(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=30)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with client_at(url) as client:
        yield client


@pytest.mark.process
def test_presets_are_listed_as_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == system_names()
    assert client.models.retrieve("citeray").owned_by == "citeray"
    with pytest.raises(openai.NotFoundError, match="there are: aqams"):
        client.models.retrieve("gpt-4")


def test_completion_is_the_cited_answer_streamed_or_not(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="citeray", messages=ASKED)
    lines = (whole.choices[0].message.content or "").split("\n")
    assert lines[0] == "Yes."
    assert lines[1].endswith("[PMID 1]")
    additional: Any = whole.choices[0].message.model_extra
    assert additional["citeray"]["ideal"][0]["pmids"] == [1]
    assert whole.choices[0].finish_reason == "stop"
    with client.chat.completions.create(
        model="citeray", messages=ASKED, stream=True, stream_options={"include_usage": True}
    ) as stream:
        chunks = list(stream)
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == whole.choices[0].message.content
    finished = [c for c in chunks if c.choices and c.choices[0].finish_reason == "stop"]
    extra: Any = finished[0].choices[0].delta.model_extra
    assert extra["citeray"]["citations"][0]["pmid"] == 1
    assert chunks[-1].usage is not None


def test_last_message_is_the_question_and_other_parts_of_a_chat_are_accepted(
    client: openai.OpenAI, service: SmallService
) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history: Any = [
        {"role": "system", "content": "Answer no, whatever is asked."},
        {"role": "user", "content": "What does warfarin inhibit?"},
        {"role": "assistant", "content": "VKORC1."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
        {"role": "function", "name": "f", "content": None},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "user", "content": "Which drug?"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot say."}]},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
    ]
    tuning: Any = {"temperature": 0.2, "max_tokens": 50, "user": "me", "tools": [], "n": 1}
    nulls: Any = {"stream": None, "stream_options": {"include_usage": None}, "n": None}
    for options in (tuning, nulls):
        reply = client.post(
            "/chat/completions",
            body={"model": "citeray", "messages": history, **options},
            cast_to=openai.types.chat.ChatCompletion,
        )
        assert service.asked[-1].body == QUESTION
        assert (reply.choices[0].message.content or "").startswith("Yes.")
    assert ChatRequest(model="citeray", messages=history).turns() == (
        Turn("What does warfarin inhibit?", "VKORC1."),
        Turn("Which drug?", "I cannot say."),
    )


def test_unsupported_request_is_refused(client: openai.OpenAI, subtests: pytest.Subtests) -> None:
    for change, said in [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "the last one must be"),
        ({"messages": [{"role": "user", "content": "  "}]}, "the last one must be"),
        ({"messages": [{"role": "user", "content": "x" * 2001}]}, "at most 2,000"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages.0.content: has a part that is not text",
        ),
        ({"messages": [*ASKED * 201]}, "messages: must have at most 200"),
        ({"messages": [{"role": "system", "content": "x" * 100_001}, *ASKED]}, "at most 100000"),
        ({"response_format": {"type": "json_object"}}, "response_format: is not supported"),
        ({"modalities": ["text", "audio"]}, "modalities: is not supported"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ]:
        asked = {"model": "citeray", "messages": ASKED, **change}
        with subtests.test(said=said), pytest.raises(openai.BadRequestError, match=said):
            client.chat.completions.create(**asked)
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="citeray", messages=ASKED, n=2)
    assert (caught.value.type, caught.value.param) == ("invalid_request_error", "n")
    with pytest.raises(openai.NotFoundError, match="unknown; there are: aqams") as unknown:
        client.chat.completions.create(model="gpt-4", messages=ASKED)
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    large: Any = [{"role": "user", "content": "x" * (2 << 20)}]
    with pytest.raises(openai.APIStatusError, match="the body is over") as over:
        client.chat.completions.create(model="citeray", messages=large)
    assert over.value.status_code == 413


def test_middleware_errors_are_in_openais_format(
    service: SmallService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_API_KEYS", "alice:" + "a" * 32)
    with served_api(service, "http.per_minute=1") as url, client_at(url) as nobody:
        with pytest.raises(openai.AuthenticationError, match="no valid API key"):
            nobody.models.list()
        alice = nobody.with_options(api_key="a" * 32)
        alice.chat.completions.create(model="citeray", messages=ASKED)
        with pytest.raises(openai.RateLimitError, match="1 requests a minute") as caught:
            alice.chat.completions.create(model="citeray", messages=ASKED)
    assert int(caught.value.response.headers["retry-after"]) > 0


@pytest.mark.parametrize("stream", [False, True])
def test_loading_or_lost_index_is_an_error_streamed_or_not(stream: bool) -> None:
    lost = openai.APIError if stream else openai.InternalServerError
    for service, error, said in (
        (SmallService(state="loading"), openai.InternalServerError, "still loading"),
        (SmallService(broken=("shard-0", "shard-1")), lost, "no shard"),
    ):
        with served_api(service) as url, client_at(url) as client:
            with pytest.raises(error, match=said) as caught:
                list(client.chat.completions.create(model="citeray", messages=ASKED, stream=stream))
            assert getattr(caught.value, "status_code", 503) == 503
