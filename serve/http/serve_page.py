"""Serve the web page (`/`) and API documentation (`/docs`), which load nothing from other hosts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from cluster.index.filters.filters import FLAGS
from serve.references.documents.write_document import FORMS, Form
from serve.references.export_citations import FORMATS, Format

POLICY = "; ".join(
    (
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"),
        *("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"),
        "require-trusted-types-for 'script'",
    )
)
# Swagger UI sets innerHTML, and its style sheets contain images as data URLs.
DOCS_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' data:").replace(
    "; require-trusted-types-for 'script'", ""
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    # Browsers revalidate on each request and receive 304 if the file is unchanged.
    "Cache-Control": "no-cache",
}


FOLDER = Path(__file__).parent / "page"


class PageFiles(StaticFiles):
    """Static files of the page, with its Content-Security-Policy."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Serve the file with the page's security and cache headers."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS)
        return response


def is_missing_page(path: str, accept: str) -> bool:
    """Return whether a request for a missing path comes from a browser, not from a program."""
    return "text/html" in accept and not path.startswith("/v1/")


def missing_page() -> HTMLResponse:
    """Return the page for an address that does not exist, with status 404."""
    text = (FOLDER / "missing.html").read_text(encoding="utf-8")
    return HTMLResponse(text, 404, headers=HEADERS)


def _titled(kinds: Iterable[tuple[str, Format | Form]]) -> str:
    """Return JSON for an HTML attribute: [title, file name extension] of each offered format."""
    offered = {name: [kind.title, kind.ending] for name, kind in kinds if kind.title}
    return escape(json.dumps(offered))


def add_page(api: FastAPI, *, keeps: bool) -> None:
    """Add `/`, `/docs` and their files under `/static` to `api`.

    `keeps` tells the page whether the server can store answers, feedback and questions.
    """
    swagger = Path(str(resources.files("fastapi_offline") / "static"))
    api.mount("/static/swagger", PageFiles(directory=swagger), name="swagger")
    api.mount("/static", PageFiles(directory=FOLDER), name="static")

    template = Template((FOLDER / "index.html").read_text(encoding="utf-8"))
    offered = {"formats": _titled(FORMATS.items()), "forms": _titled(FORMS.items())}
    flags = {name: [f.label, f.if_true, f.if_false] for name, f in FLAGS.items()}
    offered["flags"] = escape(json.dumps(flags))
    index = template.substitute(offered, keeps="yes" if keeps else "no")
    headers = {**HEADERS, "ETag": f'"{sha256(index.encode()).hexdigest()}"'}

    @api.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(index, headers=headers)

    @api.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        headers = {**HEADERS, "Content-Security-Policy": DOCS_POLICY}
        return FileResponse(FOLDER / "docs.html", headers=headers)
