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

# Timeout in seconds, far above the deadlines in these tests, for busy machines.
GIVEN_UP_S = 20
OK = reply(200, {"said": "yes"})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.client.call_endpoint.PAUSES_S", (0.1,) * 6)


def read(url: str, timeout_s: float = 30, **named: Any) -> Any:
    return json.loads(
        Endpoint(url, timeout_s, **named).read("POST", "/v1/answer", {"question": "a"})
    )


def test_transient_errors_are_retried(subtests: pytest.Subtests) -> None:
    for first, wait_s in (
        (b"", 0),
        (reply(200, {"said": "n"}, whole=False), 0),
        (reply(503, problem(503, "still loading")), 0),
        (reply(429, problem(429, "busy"), "Retry-After: 1"), 1),
        (reply(500, "Internal Server Error"), 0),
    ):
        begun = time.monotonic()
        with subtests.test(first=first), scripted(first, OK) as server:
            assert read(server.url) == {"said": "yes"}
            assert len(server.heads) == 2
            assert time.monotonic() - begun >= wait_s


def test_retry_after_the_deadline_fails_at_once() -> None:
    with scripted(reply(429, problem(429, "all turns are taken"), "Retry-After: 600")) as server:
        begun = time.monotonic()
        with pytest.raises(EndpointError, match="HTTP 429: all turns are taken") as caught:
            read(server.url, timeout_s=60)
        assert len(server.heads) == 1
    assert time.monotonic() - begun < 60
    assert (caught.value.status, caught.value.retry_after_s) == (429, 600)


def test_unreachable_or_silent_endpoint_fails_at_the_deadline() -> None:
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


def test_permanent_errors_are_not_retried() -> None:
    for status, exit_code in ((422, 2), (404, 2), (500, 1), (502, 1)):
        said = f"/v1/answer: HTTP {status}: k: too large"
        with scripted(reply(status, problem(status, "k: too large"))) as server:
            with pytest.raises(EndpointError, match=said) as caught:
                read(server.url)
            assert len(server.heads) == 1
        assert isinstance(caught.value, InputError) is (exit_code == 2)
        assert caught.value.exit_code == exit_code
    for url in ["", "127.0.0.1:80", "ftp://host", "http://", "http://a:b", "a b"]:
        with pytest.raises(InputError, match="is not a URL"):
            Endpoint(url, 1)


def test_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
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
    # A header cannot contain this key.
    monkeypatch.setenv(API_KEY_ENV, "schlüssel")
    with pytest.raises(InputError, match=API_KEY_ENV) as caught:
        Endpoint("http://127.0.0.1", 1)
    assert "schl" not in str(caught.value)


@pytest.mark.parametrize("failure", [EndpointError, BadRequestError])
def test_errors_can_be_pickled(failure: type[EndpointError]) -> None:
    error = pickle.loads(pickle.dumps(failure("all turns are taken", 429, 5.0)))
    assert type(error) is failure
    assert (str(error), error.status, error.retry_after_s) == ("all turns are taken", 429, 5.0)
