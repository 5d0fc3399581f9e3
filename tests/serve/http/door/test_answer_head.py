"""HEAD on every path that answers GET."""

from __future__ import annotations

import httpx

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from tests.serve.http_server import serving
from tests.serve.service import SmallService


def test_head_is_answered_or_refused_as_get_is_without_a_body(service: SmallService) -> None:
    with (
        serving(create_api(service, load_settings().serve)) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as http,
    ):
        for path in ("/", "/docs", "/healthz", "/readyz", "/static/page.css", "/v1/citations/1"):
            got, head = http.get(path), http.head(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert head.headers["content-length"] == str(len(got.content)), path
            assert head.headers["content-type"] == got.headers["content-type"], path
        assert http.head("/v1/citations/99").status_code == 404
        refused = http.head("/v1/answer")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        assert http.put("/healthz").headers["allow"] == "GET, HEAD"
