"""Proxies named in the environment are used for other hosts and never for this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest
from opentelemetry.sdk.trace import TracerProvider

from cluster.entrez.entrez_client import Patience, entrez_session
from cluster.entrez.rate_limiter import RateLimiter
from cluster.errors import CiteRayError
from cluster.http_clients import UnsupportedProxyError, open_async_client, open_client
from cluster.settings.settings import Settings, load_settings
from cluster.storage.conditional_store import conditional_object
from cluster.storage.object_store import StoredFile
from pipelines.download.fetch_file import Patience as WebPatience
from pipelines.download.fetch_file import Web
from serve.client import call_endpoint
from serve.client.call_endpoint import Endpoint
from serve.client.open_client import running_client
from serve.graph.trace_requests import span_processors
from serve.http.join_metrics import fetch_metrics
from serve.llm.language_model import OpenAIChatModel
from tests.recorders import Recorder, recorder

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
SECRET = "s3cret-key"
# Host names and addresses of this machine.
HOSTS = ("127.0.0.1", "localhost", "127.0.0.2", "127.1", "0.0.0.0", "[::ffff:127.0.0.1]")
ELSEWHERE = "http://llm.example.org"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("CITERAY_API_KEY", SECRET)
    monkeypatch.setenv("LLM_KEY", SECRET)


@pytest.fixture
def endpoint() -> Iterator[Recorder]:
    reply = b'{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}'
    with recorder(reply) as server:
        yield server


@pytest.fixture
def proxy() -> Iterator[Recorder]:
    with recorder() as server:
        yield server


def served_at(url: str) -> Settings:
    host, _, port = url.removeprefix("http://").partition(":")
    return load_settings(None, [f"serve.host={host}", f"serve.port={port or 80}"])


def ask_model(url: str) -> None:
    model = OpenAIChatModel(f"{url}/v1", "m", "LLM_KEY", retries=0)
    asyncio.run(model.chat([{"role": "user", "content": "private?"}], max_tokens=5, temperature=0))


def ask_endpoint(url: str) -> None:
    client = Endpoint(url, 5)
    client.read("POST", "/v1/answer", {"question": "private?"})
    client.close()


def ask_entrez(url: str) -> None:
    async def ask() -> None:
        settings = load_settings(None, [f"entrez.base_url={url}", "entrez.cache_days=0"]).entrez
        async with entrez_session(settings, RateLimiter(1e6), Patience(retries=0)) as entrez:
            await entrez.ask("esearch.fcgi", {"term": "private"}, bytes.decode, cached=False)

    asyncio.run(ask())


def download(url: str) -> None:
    with Web(WebPatience(tries=1), lambda _: None) as web:
        web.read_text(f"{url}/file.md5", 1000)


def get_async(url: str) -> None:
    async def get() -> None:
        async with open_async_client() as client:
            await client.get(url)

    asyncio.run(get())


def get_plainly(url: str) -> None:
    with open_client() as client:
        client.get(url)


CALLS: dict[str, Callable[[str], object]] = {
    "language model": ask_model,
    "endpoint": ask_endpoint,
    "readiness": lambda url: running_client(served_at(url)),
    "E-utilities": ask_entrez,
    "download": download,
    "metrics": lambda url: asyncio.run(fetch_metrics([f"{url}/metrics"])),
    "client": get_plainly,
    "async client": get_async,
}


def test_local_requests_use_no_proxy(
    monkeypatch: pytest.MonkeyPatch, endpoint: Recorder, proxy: Recorder
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://me:word@127.0.0.1:{proxy.port}")
    missed = []
    for name, call in CALLS.items():
        before = len(endpoint.received)
        call(f"http://127.0.0.1:{endpoint.port}")
        if len(endpoint.received) == before:
            missed.append(name)
    assert missed == []
    assert proxy.received == []
    assert not [text for text in endpoint.received if "Proxy-Authorization" in text]
    assert sum(SECRET in text for text in endpoint.received) == 2


@pytest.mark.slow
def test_exporter_and_s3_client_use_no_proxy_for_local_requests(
    monkeypatch: pytest.MonkeyPatch, endpoint: Recorder, proxy: Recorder
) -> None:
    """The exporter of traces, and the S3 client of conditional writes."""
    url = f"http://127.0.0.2:{endpoint.port}"
    for name in ("http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    endpoint.reply = b""
    (processor,) = span_processors()
    provider = TracerProvider()
    provider.add_span_processor(processor)
    provider.get_tracer("test").start_span("question").end()
    provider.shutdown()
    conditional_object(StoredFile("s3://bucket/lease")).write(b"mine", None)
    assert [text.split()[1] for text in endpoint.received] == ["/v1/traces", "/bucket/lease"]
    assert proxy.received == []


def test_every_name_of_this_machine_uses_no_proxy(
    monkeypatch: pytest.MonkeyPatch, endpoint: Recorder, proxy: Recorder
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    for host in HOSTS:
        get_plainly(f"http://{host}:{endpoint.port}/{len(endpoint.received)}")
    assert proxy.received == []
    assert len(endpoint.received) == len(HOSTS)


def test_other_hosts_use_the_proxy(monkeypatch: pytest.MonkeyPatch, proxy: Recorder) -> None:
    proxy.reply = b'{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}'
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        # Both common forms of a proxy address.
        for address in (f"http://127.0.0.1:{proxy.port}", f"127.0.0.1:{proxy.port}"):
            monkeypatch.setenv(variable, address)
            for call in CALLS.values():
                proxy.received.clear()
                call(ELSEWHERE)
                assert [t.split()[1].startswith(f"{ELSEWHERE}") for t in proxy.received] == [True]
        monkeypatch.delenv(variable)


def test_no_proxy_is_respected(monkeypatch: pytest.MonkeyPatch, proxy: Recorder) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    monkeypatch.setenv("NO_PROXY", "example.org,other.test:81")
    with open_client(timeout=5) as client:
        for url in ("http://llm.example.org.test/", "http://other.test:80/"):
            client.get(url)
        assert len(proxy.received) == 2
        for url in ("http://no.such.host.example.org/", "http://other.test:81/"):
            # The name is resolved locally and has no address.
            with pytest.raises(httpx.ConnectError):
                client.get(url)
    assert len(proxy.received) == 2


def test_redirects_select_the_proxy_again(
    monkeypatch: pytest.MonkeyPatch, endpoint: Recorder, proxy: Recorder
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
    here = f"http://127.0.0.1:{endpoint.port}"
    endpoint.redirects = {"/away": f"{ELSEWHERE}/there"}
    proxy.redirects = {f"{ELSEWHERE}/back": f"{here}/here"}
    key = {"Authorization": f"Bearer {SECRET}"}
    with open_client(follow_redirects=True, headers=key) as client:
        client.get(f"{here}/away")
        client.get(f"{ELSEWHERE}/back")
    assert [t.split()[1] for t in proxy.received] == [f"{ELSEWHERE}/there", f"{ELSEWHERE}/back"]
    assert [t.split()[1] for t in endpoint.received] == ["/away", "/here"]
    # httpx drops the Authorization header on a redirect to another host.
    assert [SECRET in text for text in proxy.received] == [False, True]
    assert [SECRET in text for text in endpoint.received] == [True, False]


def test_unsupported_proxy_is_reported_only_where_it_would_be_used(
    monkeypatch: pytest.MonkeyPatch, endpoint: Recorder
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks9://me:word@127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.9")
    for call in CALLS.values():
        call(f"http://127.0.0.1:{endpoint.port}")
    said = {}
    for name in ("language model", "endpoint", "E-utilities", "download"):
        with pytest.raises(CiteRayError) as error:
            CALLS[name](ELSEWHERE)
        said[name] = str(error.value)
    wanted = "ALL_PROXY names a proxy that is not supported (socks9://)"
    assert [text for text in said.values() if wanted not in text or "word" in text] == []
    assert running_client(served_at(ELSEWHERE)) is None


def test_socks_without_its_package_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(UnsupportedProxyError, match=r"ALL_PROXY .* \(socks5://\); name an http"):
        get_plainly(ELSEWHERE)
    # HTTP_PROXY takes precedence over ALL_PROXY.
    with recorder() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        get_plainly(ELSEWHERE)
        assert len(proxy.received) == 1


def test_errors_hold_no_credentials_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_endpoint, "PAUSES_S", ())
    said = {}
    for name in ("language model", "endpoint", "E-utilities", "download"):
        for place in ("me:w0rd@127.0.0.1:1", "me:w0rd@127.0.0.1:w0rd@x"):
            with pytest.raises(CiteRayError) as error:
                CALLS[name](f"http://{place}")
            said[name, place] = str(error.value)
    assert {call: text for call, text in said.items() if "w0rd" in text} == {}
