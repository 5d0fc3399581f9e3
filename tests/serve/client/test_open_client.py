from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse

from cluster.errors import CiteRayError
from cluster.settings.settings import Settings, load_settings
from serve.client.open_client import PROBE_TIMEOUT, HttpClient, endpoint_url, running_client
from serve.graph.gateway import VERSION_S
from serve.http.api import create_api
from tests.serve.http_server import free_port, serving
from tests.serve.service import SmallService

QUESTION = "Does metformin activate AMPK?"


@pytest.fixture(scope="module")
def port(service: SmallService) -> Iterator[int]:
    with serving(create_api(service, load_settings().serve)) as port:
        yield port


def settings_at(port: int) -> Settings:
    return load_settings(overrides=[f"serve.port={port}"])


def plain_api(reply: PlainTextResponse | JSONResponse) -> FastAPI:
    """An endpoint that gives the same reply to everything."""
    api = FastAPI()

    @api.api_route("/{path:path}", methods=["GET", "POST"], response_model=None)
    async def everything(path: str) -> PlainTextResponse | JSONResponse:
        return reply

    return api


@pytest.mark.slow
def test_an_error_that_is_not_json_is_shown_in_part() -> None:
    with serving(plain_api(PlainTextResponse("<html>" + "x" * 9999, 502))) as port:
        # Less than the pauses before a 502 is asked for again.
        client = HttpClient(f"http://127.0.0.1:{port}", timeout_s=1)
        with client, pytest.raises(CiteRayError, match="HTTP 502: <html>xxx") as caught:
            client.search({"question": "a"})
    assert len(str(caught.value)) < 300


def test_an_endpoint_is_used_unless_it_is_gone_or_not_ready(
    port: int, service: SmallService
) -> None:
    found = running_client(settings_at(port))
    assert found is not None
    with found as client:
        reply = client.search({"question": QUESTION, "k": 1})
    assert [c["pmid"] for c in reply["citations"]] == [1]
    assert running_client(settings_at(free_port())) is None
    service.state = "loading"
    try:
        assert running_client(settings_at(port)) is None
    finally:
        service.state = "ready"


@pytest.mark.parametrize(
    "reply",
    [PlainTextResponse("welcome"), JSONResponse({"status": "ok"}), JSONResponse([]),
     JSONResponse(7)],
    ids=["text", "json", "list", "number"],
)  # fmt: skip
def test_another_service_on_the_port_is_not_taken_for_the_endpoint(
    reply: PlainTextResponse | JSONResponse,
) -> None:
    with serving(plain_api(reply)) as port:
        assert running_client(settings_at(port)) is None


@pytest.mark.parametrize(
    ("host", "reached"), [("0.0.0.0", "127.0.0.1"), ("'::1'", "[::1]"), ("node7", "node7")]
)
def test_a_server_is_reached_by_the_address_of_its_host(host: str, reached: str) -> None:
    settings = load_settings(overrides=[f"serve.host={host}", "serve.port=8123"])
    assert endpoint_url(settings) == f"http://{reached}:8123"


def test_a_probe_outlasts_the_wait_for_a_lost_stage() -> None:
    assert PROBE_TIMEOUT.read is not None
    assert PROBE_TIMEOUT.read > VERSION_S
