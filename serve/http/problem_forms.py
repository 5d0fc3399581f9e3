"""The errors and the streams of the API as its OpenAPI document tells them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

# What is refused at the door, on every route, and by its key on those that ask for one.
DOOR = (403, 408, 413, 431, 500)
KEYED = (401, 429)

MEANINGS = {
    400: "The request cannot be read.",
    401: "No valid API key; none is asked for where the server has no keys.",
    403: "The server does not answer to this name, or to this web page.",
    404: "There is no such thing.",
    408: "The body did not arrive in time.",
    409: "It contradicts what is there.",
    413: "The body is too large.",
    422: "A field is not valid; the sentence names it, and what would be.",
    429: "Too much at once; ask again after the seconds in `Retry-After`.",
    431: "The headers are too large.",
    500: "An error of the server's own; its log tells more.",
    503: "Not now; ask again after the seconds in `Retry-After`.",
    507: "The server cannot keep it.",
}
RETRY = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}


class Problem(BaseModel):
    """One sentence: what is wrong, where, and what to do."""

    error: str


class OpenAIProblemDetail(BaseModel):
    """What is wrong, and its kind; `param` and `code` may be null."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None
    code: str | None


class OpenAIProblem(BaseModel):
    """An error in OpenAI's form."""

    error: OpenAIProblemDetail


def problems(*statuses: int, form: type[BaseModel] = Problem) -> dict[int | str, dict[str, Any]]:
    """`statuses` as FastAPI's `responses`."""
    return {
        status: {
            "model": form,
            "description": MEANINGS[status],
            **({"headers": RETRY} if status in (429, 503) else {}),
        }
        for status in sorted(statuses)
    }


def events(names: Sequence[str] = ("message",)) -> dict[str, Any]:
    """The content of a reply that is server-sent events; the schema is that of each one."""
    event = {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": {"enum": list(names)}, "data": {"type": "string"}},
    }
    return {"text/event-stream": {"schema": event}}
