import json
import pickle
import socket
import time
from typing import Any

import pytest

from cluster.errors import InputError
from serve.client.call_endpoint import API_KEY_ENV, BadRequestError, Endpoint, EndpointError
from tests.serve.http_server import free_port
from tests.serve.problem import problem
from tests.serve.scripted_server import reply, scripted

pytestmark = pytest.mark.slow

# A deadline of about a second is kept, on a busy machine too; without one the tries never end.
GIVEN_UP_S = 20
OK = reply(200, {"said": "yes"})


def read(url: str, timeout_s: float = 30, **named: Any) -> Any:
    return json.loads(
        Endpoint(url, timeout_s, **named).read("POST", "/v1/answer", {"question": "a"})
    )


@pytest.mark.parametrize(
    "first",
    [
        b"",
        reply(200, {"said": "n"}, whole=False),
        reply(503, problem(503, "still loading")),
        reply(429, problem(429, "busy"), "Retry-After: 2"),
        reply(500, "Internal Server Error"),
    ],
    ids=["hung up", "broke off", "loading", "busy", "a gateway lost at its work"],
)
def test_what_passes_is_tried_again(first: bytes) -> None:
    begun = time.monotonic()
    with scripted(first, OK) as server:
        assert read(server.url) == {"said": "yes"}
        assert len(server.heads) == 2
    if b"Retry-After: 2" in first:
        assert time.monotonic() - begun >= 2


def test_who_would_wait_beyond_the_deadline_is_told_at_once() -> None:
    with scripted(reply(429, problem(429, "all turns are taken"), "Retry-After: 600")) as server:
        begun = time.monotonic()
        with pytest.raises(EndpointError, match="HTTP 429: all turns are taken") as caught:
            read(server.url, timeout_s=60)
        assert len(server.heads) == 1
    assert time.monotonic() - begun < 60
    assert (caught.value.status, caught.value.retry_after_s) == (429, 600)


def test_an_endpoint_that_is_gone_or_says_nothing_is_given_up_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port, said in (
            (free_port(), "http://127.0.0.1:"),
            (silent.getsockname()[1], r"no whole reply within 1\.5 s"),
        ):
            begun = time.monotonic()
            with pytest.raises(EndpointError, match=said) as caught:
                read(f"http://127.0.0.1:{port}", timeout_s=1.5)
            assert time.monotonic() - begun < GIVEN_UP_S
            assert caught.value.status is None


@pytest.mark.parametrize(
    ("status", "failure"),
    [(422, BadRequestError), (404, BadRequestError), (500, EndpointError), (502, EndpointError)],
)
def test_what_would_be_the_same_again_is_asked_once(
    status: int, failure: type[EndpointError]
) -> None:
    with scripted(reply(status, problem(status, "k: too large"))) as server:
        with pytest.raises(failure, match=f"/v1/answer: HTTP {status}: k: too large") as caught:
            read(server.url)
        assert len(server.heads) == 1
    assert isinstance(caught.value, InputError) is (failure is BadRequestError)
    assert caught.value.exit_code == (2 if failure is BadRequestError else 1)


def test_the_key_comes_from_the_environment_and_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(API_KEY_ENV, "k" * 32 + "\n")
    monkeypatch.setenv("OTHER_KEY", "o" * 32)
    refused = reply(401, problem(401, "no valid API key"))
    with scripted(OK, OK, refused) as server:
        read(server.url)
        read(server.url, api_key_env="OTHER_KEY")
        with pytest.raises(EndpointError, match=f"no valid API key; .* {API_KEY_ENV}"):
            read(server.url)
    assert "Authorization: Bearer " + "k" * 32 in server.heads[0]
    assert "Authorization: Bearer " + "o" * 32 in server.heads[1]
    # A key that no header holds.
    monkeypatch.setenv(API_KEY_ENV, "schlüssel")
    with pytest.raises(InputError, match=API_KEY_ENV) as caught:
        Endpoint("http://127.0.0.1", 1)
    assert "schl" not in str(caught.value)


def test_what_is_no_url_is_bad_input(subtests: pytest.Subtests) -> None:
    for url in ["", "127.0.0.1:80", "ftp://host", "http://", "http://a:b", "a b"]:
        with subtests.test(url=url), pytest.raises(InputError, match="is not a URL"):
            Endpoint(url, 1)


@pytest.mark.parametrize("failure", [EndpointError, BadRequestError])
def test_errors_survive_a_process_boundary(failure: type[EndpointError]) -> None:
    error = pickle.loads(pickle.dumps(failure("all turns are taken", 429, 5.0)))
    assert type(error) is failure
    assert (str(error), error.status, error.retry_after_s) == ("all turns are taken", 429, 5.0)
