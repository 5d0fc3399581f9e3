"""HTTP clients that choose a proxy for each request.

httpx chooses proxies when a client is created, even for hosts on this machine. These clients choose
one for each request and redirect: none for a loopback address, otherwise according to HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY and NO_PROXY. An unsupported proxy is an error only for requests that would
use it.
"""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx

from cluster.loopback import is_loopback

DEFAULT_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20)


class UnsupportedProxyError(httpx.HTTPError):
    """The environment names an unsupported proxy for this request."""


def open_client(**options: Any) -> httpx.Client:
    """Return an httpx.Client with `options` that chooses a proxy for each request."""
    return httpx.Client(transport=_Transport(), **options)


def open_async_client(
    *, limits: httpx.Limits = DEFAULT_LIMITS, **options: Any
) -> httpx.AsyncClient:
    """Return an httpx.AsyncClient with `options` that chooses a proxy for each request."""
    return httpx.AsyncClient(transport=_AsyncTransport(limits), **options)


def find_proxy(url: httpx.URL) -> str | None:
    """Return the URL of the proxy for a request to `url`, or None to connect directly."""
    if is_loopback(url.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.host) or proxy_bypass(url.netloc.decode("ascii")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@cache
def _tls() -> ssl.SSLContext:
    """Load the trusted certificates once per process, because this is slow."""
    return httpx.create_ssl_context()


class _Transport(httpx.BaseTransport):
    def __init__(self) -> None:
        self._by_proxy: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = find_proxy(request.url)
        if proxy not in self._by_proxy:
            made = _make(httpx.HTTPTransport, proxy, request.url, DEFAULT_LIMITS)
            # Keep a transport that another thread has added in the meantime.
            self._by_proxy.setdefault(proxy, made)
        return self._by_proxy[proxy].handle_request(request)

    def close(self) -> None:
        for transport in self._by_proxy.values():
            transport.close()


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, limits: httpx.Limits) -> None:
        self._limits = limits
        self._by_proxy: dict[str | None, httpx.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        proxy = find_proxy(request.url)
        if proxy not in self._by_proxy:
            made = _make(httpx.AsyncHTTPTransport, proxy, request.url, self._limits)
            self._by_proxy[proxy] = made
        return await self._by_proxy[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        for transport in self._by_proxy.values():
            await transport.aclose()


def _make(kind: Any, proxy: str | None, url: httpx.URL, limits: httpx.Limits) -> Any:
    """Create a transport. Raises UnsupportedProxyError, whose message omits the password."""
    try:
        return kind(verify=_tls(), limits=limits, proxy=proxy)
    except (ImportError, ValueError, httpx.InvalidURL):
        scheme = (proxy or "").partition("://")[0]
        raise UnsupportedProxyError(
            f"{_variable(url.scheme)} names a proxy that is not supported ({scheme}://); name an "
            f"http:// proxy there, or add {url.host} to NO_PROXY to connect without one"
        ) from None


def _variable(scheme: str) -> str:
    """Return the name of the environment variable that sets the proxy for `scheme`."""
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "the system's configuration")
