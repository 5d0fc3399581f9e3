"""The HTTP clients of the product: each request uses a proxy of the environment only where it may.

httpx chooses proxies when a client is created, also for hosts on this machine. Here they are chosen
for each request, after a redirect too: none for a loopback address, else what HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY and NO_PROXY say. A proxy that is not supported is an error only for a
request that would use it.
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
    """The environment names a proxy for this request that cannot be used."""


def open_client(*, limits: httpx.Limits = DEFAULT_LIMITS, **options: Any) -> httpx.Client:
    """Return an httpx.Client with these options whose proxies are chosen for each request."""
    return httpx.Client(transport=_Transport(limits), **options)


def open_async_client(
    *, limits: httpx.Limits = DEFAULT_LIMITS, **options: Any
) -> httpx.AsyncClient:
    """Return an httpx.AsyncClient with these options whose proxies are chosen for each request."""
    return httpx.AsyncClient(transport=_AsyncTransport(limits), **options)


def find_proxy(url: httpx.URL) -> str | None:
    """Return the URL of the proxy that a request to `url` must use, or None for none."""
    if is_loopback(url.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.host) or proxy_bypass(url.netloc.decode("ascii")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@cache
def _tls() -> ssl.SSLContext:
    """Trusted certificates, read once: reading them takes a tenth of a second."""
    return httpx.create_ssl_context()


class _Transport(httpx.BaseTransport):
    def __init__(self, limits: httpx.Limits) -> None:
        self._limits = limits
        self._by_proxy: dict[str | None, httpx.HTTPTransport] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        proxy = find_proxy(request.url)
        if proxy not in self._by_proxy:
            made = _make(httpx.HTTPTransport, proxy, request.url, self._limits)
            # Another thread may have been first; its transport is kept.
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
    """Create a transport; raises UnsupportedProxyError, which shows no password of the proxy."""
    try:
        return kind(verify=_tls(), limits=limits, proxy=proxy)
    except (ImportError, ValueError, httpx.InvalidURL):
        scheme = (proxy or "").partition("://")[0]
        raise UnsupportedProxyError(
            f"{_variable(url.scheme)} names a proxy that is not supported ({scheme}://); name an "
            f"http:// proxy there, or add {url.host} to NO_PROXY to connect without one"
        ) from None


def _variable(scheme: str) -> str:
    """Return the name of the environment variable that the proxy for `scheme` is from."""
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "the system's configuration")
