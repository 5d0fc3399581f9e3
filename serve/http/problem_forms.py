"""The errors of the API, and its errors and streams as the OpenAPI document tells them.

Every error is a problem of RFC 9457. The OpenAI routes alone have OpenAI's form (`openai/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from starlette.responses import JSONResponse

PROBLEM_JSON = "application/problem+json"

# What is refused at the door, on every route, and by its key on those that ask for one.
DOOR = (403, 408, 413, 431, 500)
KEYED = (401, 429)

MEANINGS = {
    400: "The request cannot be read.",
    401: "No valid API key; none is asked for where the server has no keys.",
    403: "The key may not do this, or the server does not answer to this name or web page.",
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


class FieldError(BaseModel):
    """What is wrong with one field of the body; `pointer` is a JSON pointer such as `#/k`."""

    pointer: str
    detail: str


class Problem(BaseModel):
    """An error as RFC 9457 has it.

    `type` is `about:blank`: the status says which kind of error it is, and `title` is its name.
    `detail` is one sentence: what is wrong, where, and what to do. `errors` is there where fields
    of the body are not valid, and names the first of them.
    """

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None


def problem_of(status: int, detail: str, errors: Sequence[FieldError] = ()) -> dict[str, Any]:
    """The fields of a `Problem`."""
    title = HTTPStatus(status).phrase
    told = Problem(title=title, status=status, detail=detail, errors=list(errors) or None)
    return told.model_dump(exclude_none=True)


def problem(
    status: int,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """A `Problem` as a reply."""
    told = problem_of(status, detail, errors)
    return JSONResponse(told, status, headers=headers, media_type=PROBLEM_JSON)


def busy_problem(status: int, detail: str, retry_after_s: int) -> JSONResponse:
    """A `Problem` that may be over in `retry_after_s` seconds; 0 tells no time."""
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else None
    return problem(status, detail, headers=headers)


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
