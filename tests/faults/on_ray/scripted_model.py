"""A language model for the serving rounds that repeats the first sentence of the evidence.

    python -m tests.faults.on_ray.scripted_model PORT

It is a process of its own so that a round can kill and stop it. It ends when standard input closes.
"""

from __future__ import annotations

import re
import sys

from fastapi import FastAPI, Request, Response

from tests.serve.chat_endpoint import ChatEndpoint
from tests.serve.http_server import serving


def first_sentence(prompt: str) -> str:
    """Return a whole sentence of the first passage in a prompt."""
    passage = prompt.partition("[1] ")[2].partition("\n[2] ")[0]
    sentences = re.split(r"(?<=\.)\s+", re.sub(r"^\([^)]*\) ", "", passage))
    return sentences[1] if len(sentences) > 1 else sentences[0]


def main() -> None:
    endpoint = ChatEndpoint(first_sentence)
    api = FastAPI()

    @api.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        return endpoint.respond(await request.json())

    with serving(api, int(sys.argv[1])):
        sys.stdin.read()


if __name__ == "__main__":
    main()
