from __future__ import annotations

import httpx

from tests.serve.api import served_api
from tests.serve.service import SmallService


def test_head_returns_the_headers_of_get_without_a_body(service: SmallService) -> None:
    with served_api(service) as url, httpx.Client(base_url=url) as http:
        for path in ("/", "/docs", "/healthz", "/readyz", "/static/page.css", "/v1/citations/1"):
            got, head = http.get(path), http.head(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert head.headers["content-length"] == str(len(got.content)), path
            assert head.headers["content-type"] == got.headers["content-type"], path
        assert http.head("/v1/citations/99").status_code == 404
        refused = http.head("/v1/answer")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        assert http.put("/healthz").headers["allow"] == "GET, HEAD"
