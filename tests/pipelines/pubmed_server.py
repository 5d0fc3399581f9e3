"""Local HTTP server with NCBI's layout and scripted faults."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from pipelines.download.fetch_file import Patience
from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.serve.http_server import serving

QUICK = Patience(tries=3, first_wait_s=0.01, longest_wait_s=0.05, silence_s=1.0)


def pubmed_file(number: int, size: int = 0) -> bytes:
    """Return a gzipped citation followed by incompressible bytes."""
    noise = random.Random(number).randbytes(size).hex()
    record = article(
        pmid=f"<PMID>{number}</PMID>", inside=f"<ArticleTitle>T{number}</ArticleTitle>"
    )
    xml = f"{DOCTYPE}<PubmedArticleSet>{record}<!--{noise}--></PubmedArticleSet>"
    return gzip.compress(xml.encode(), mtime=0)


def md5_line(name: str, data: bytes) -> bytes:
    return f"MD5({name})= {hashlib.md5(data).hexdigest()}\n".encode()


@dataclass
class PubMedServer:
    """Server of `files` by path; `script` holds the faults of a path's next GET requests.

    `sizes` overrides the Content-Length of HEAD responses.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    script: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    url: str = ""
    together: int = 0
    most_together: int = 0

    def add(self, path: str, data: bytes) -> None:
        self.files[path] = data
        self.files[f"{path}.md5"] = md5_line(path.rpartition("/")[2], data)

    def gets(self, path: str) -> list[str]:
        """Return the Range header ("" if none) of every GET of a path."""
        return [r for method, p, r in self.asked if (method, p) == ("GET", path)]

    def listing(self, folder: str) -> str:
        names = [p.removeprefix(folder) for p in self.files if p.startswith(folder)]
        rows = "".join(f'<a href="{n}">{n}</a>  2026-01-05 12:00  19M\n' for n in names)
        return f'<html><body><pre><a href="../">Parent Directory</a>\n{rows}</pre></body></html>'

    async def answer(self, path: str, request: Request) -> Response:
        asked_range = request.headers.get("range", "")
        self.asked.append((request.method, path, asked_range))
        step = self.script[path].pop(0) if request.method == "GET" and self.script[path] else ""
        if path.endswith("/"):
            return Response(self.listing(path), media_type="text/html")
        if path not in self.files:
            return Response("no such file", status_code=404)
        if step.startswith("busy"):
            _, status, after = step.split(":", 2)
            return Response(status_code=int(status), headers={"Retry-After": after})
        while step == "hang" and not await request.is_disconnected():
            await asyncio.sleep(0.02)
        data = self.files[path]
        if step == "wrong":
            data = data[:-1] + bytes([data[-1] ^ 1])
        return self._send(data, asked_range, request, step)

    def _send(self, data: bytes, asked_range: str, request: Request, step: str) -> Response:
        etag = f'"{hashlib.md5(data).hexdigest()}"'
        headers, status, begun = {"ETag": etag, "Accept-Ranges": "bytes"}, 200, 0
        if asked_range and step != "no-range" and request.headers.get("if-range") == etag:
            begun, status = int(asked_range.removeprefix("bytes=").rstrip("-")), 206
            if begun >= len(data):
                return Response(status_code=416, headers={"Content-Range": f"bytes */{len(data)}"})
            headers["Content-Range"] = f"bytes {begun}-{len(data) - 1}/{len(data)}"
        length = len(data) - begun
        body = data[begun:]
        if step.startswith("drop"):
            body = body[: int(step.partition(":")[2])]
        if step.startswith("claims"):
            length = int(step.partition(":")[2])
        headers["Content-Length"] = str(length)
        if request.method == "HEAD":
            headers["Content-Length"] = str(self.sizes.get(request.path_params["path"], length))
            return Response(status_code=status, headers=headers)
        if step == "chunked":
            del headers["Content-Length"]
        stream = self._stream(body, slow=step == "slow")
        return StreamingResponse(
            stream, status, headers=headers, media_type="application/octet-stream"
        )

    async def _stream(self, body: bytes, slow: bool) -> AsyncIterator[bytes]:
        self.together += 1
        self.most_together = max(self.most_together, self.together)
        try:
            step = max(len(body) // 20, 1) if slow else len(body)
            for at in range(0, len(body), max(step, 1)):
                yield body[at : at + step]
                await asyncio.sleep(0.05 if slow else 0.002)
        finally:
            self.together -= 1


@contextmanager
def pubmed_server(baseline: int = 0, updates: int = 0, size: int = 0) -> Iterator[PubMedServer]:
    """Return a server of `count` files, numbered from 1."""
    server = PubMedServer()
    for number in range(1, baseline + updates + 1):
        folder = "baseline" if number <= baseline else "updatefiles"
        server.add(f"{folder}/pubmed26n{number:04d}.xml.gz", pubmed_file(number, size))
    api = FastAPI()
    api.api_route("/pubmed/{path:path}", methods=["GET", "HEAD"])(server.answer)
    with serving(api) as port:
        server.url = f"http://127.0.0.1:{port}/pubmed/"
        yield server
