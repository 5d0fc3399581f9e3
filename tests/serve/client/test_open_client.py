from collections.abc import Iterator

import pytest

from cluster.errors import CiteRayError, InputError
from cluster.settings.settings import Settings, load_settings
from cluster.settings.store_digests import store_digests
from serve.client.open_client import HttpClient, check_same_store, endpoint_url, running_client
from tests.serve.api import make_api
from tests.serve.http_server import free_port, serving
from tests.serve.scripted_server import reply, scripted
from tests.serve.service import SmallService

QUESTION = "Does metformin activate AMPK?"


@pytest.fixture(scope="module")
def port(service: SmallService) -> Iterator[int]:
    with serving(make_api(service)) as port:
        yield port


def settings_at(port: int) -> Settings:
    return load_settings(overrides=[f"serve.port={port}"])


@pytest.mark.slow
def test_error_that_is_not_json_is_shortened() -> None:
    with scripted(b"HTTP/1.1 502 X\r\nConnection: close\r\n\r\n<html>" + b"x" * 9999) as server:
        # Shorter than the back-off before the retry of a 502.
        client = HttpClient(server.url, timeout_s=1)
        with client, pytest.raises(CiteRayError, match="HTTP 502: <html>xxx") as caught:
            client.search({"question": "a"})
    assert len(str(caught.value)) < 300


def test_running_client_needs_a_ready_citeray_endpoint(port: int, service: SmallService) -> None:
    found = running_client(settings_at(port))
    assert found is not None
    with found as client:
        found_citations = client.search({"question": QUESTION, "k": 1})["citations"]
    assert [c["pmid"] for c in found_citations] == [1]
    assert running_client(settings_at(free_port())) is None
    service.state = "loading"
    try:
        assert running_client(settings_at(port)) is None
    finally:
        service.state = "ready"
    plain = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok"
    for other in (plain, reply(200, {"status": "ok"}), reply(200, []), reply(200, 7)):
        with scripted(other) as server:
            assert running_client(settings_at(int(server.url.rpartition(":")[2]))) is None


def test_stores_of_a_running_endpoint_are_compared(port: int, service: SmallService) -> None:
    settings = settings_at(port)
    check_same_store(settings, "index.path")  # The endpoint does not name its stores.
    service.stores = store_digests(settings)
    try:
        check_same_store(settings, "index.path")
        other = load_settings(overrides=[f"serve.port={port}", "index.path=elsewhere"])
        check_same_store(other, "serve.saved.url")
        with pytest.raises(InputError, match=r"^index\.path: the endpoint at .* uses another one"):
            check_same_store(other, "index.path")
        check_same_store(load_settings(overrides=[f"serve.port={free_port()}"]), "index.path")
    finally:
        service.stores = {}


def test_endpoint_url_is_a_reachable_address() -> None:
    for host, reached in (("0.0.0.0", "127.0.0.1"), ("'::1'", "[::1]"), ("node7", "node7")):
        settings = load_settings(overrides=[f"serve.host={host}", "serve.port=8123"])
        assert endpoint_url(settings) == f"http://{reached}:8123"
