"""Requests' side of `cluster.http_clients`, for libraries that take a session of requests."""

from __future__ import annotations

from typing import Any

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter

from cluster.loopback import is_loopback_url


class DirectOnLoopback(HTTPAdapter):
    """Adapter that sends requests to loopback addresses without a proxy, after a redirect too."""

    def send(self, request: PreparedRequest, *args: Any, **options: Any) -> Response:
        """See `HTTPAdapter.send`; `proxies` is left out for a loopback address."""
        if is_loopback_url(request.url or ""):
            options["proxies"] = {}
        return super().send(request, *args, **options)
