"""Start Ray Serve's proxy as `citeray serve` does, in front of one small application.

    python -m tests.end_to_end.small_proxy PORT

Prints the process id of the proxy once the application answers, and ends when standard input is
closed. It is a process of its own because Ray reads its environment when it is imported.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import httpx
import psutil
from ray import serve
from rich.console import Console
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from cluster.settings.settings import load_settings
from serve.client.run_graph import serving, unlimited_headers

PIECES = 5


async def pieces() -> AsyncIterator[str]:
    for number in range(PIECES):
        yield f"piece {number}\n"


@serve.deployment(ray_actor_options={"num_cpus": 0})
class Small:
    async def __call__(self, request: Request) -> Response:
        if request.url.path == "/stream":
            return StreamingResponse(pieces(), media_type="text/plain")
        if request.url.path == "/pid":
            return PlainTextResponse(str(os.getpid()))
        if request.url.path == "/slow":
            await asyncio.sleep(600)
        size = len(await request.body())
        padding = len(request.headers.get("x-padding", ""))
        return PlainTextResponse(f"{request.method} body {size} padding {padding}")


def proxy_pid() -> int:
    children = psutil.Process().children(recursive=True)
    [found] = [child.pid for child in children if "ProxyActor" in "".join(child.cmdline())]
    return found


def main() -> None:
    port = int(sys.argv[1])
    url = f"http://127.0.0.1:{port}"
    log = Console(stderr=True)
    settings = load_settings(None, ["llm.kind=none", "ray.cpus=1", "ray.object_store_mb=128"])
    with serving(settings, log):
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        serve.run(Small.bind(), name="small", route_prefix="/")
        httpx.get(f"{url}/-/healthz").raise_for_status()
        log.print(f"warning: {unlimited_headers(url)}")
        sys.__stdout__.write(f"{proxy_pid()}\n")  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]
        sys.stdin.read()


if __name__ == "__main__":
    main()
