"""Counterpart of `cluster.http_clients` for libraries that use requests."""

from __future__ import annotations

from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from cluster.loopback import is_loopback_url


class DirectOnLoopback(HTTPAdapter):
    """Adapter that connects to loopback addresses without a proxy, even after a redirect."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """Send as `HTTPAdapter.send` does, but without `proxies` for a loopback address."""
        if is_loopback_url(request.url or ""):
            options["proxies"] = {}
        return super().send(request, *args, **options)
