"""Error responses of the API, and the OpenAPI description of errors and streams.

Every error is a problem as in RFC 9457, except on the OpenAI routes, which use OpenAI's error
format (`openai/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from starlette.responses import JSONResponse

PROBLEM_JSON = "application/problem+json"

# Statuses of the middleware: the first on every route, the second on routes that need a key.
MIDDLEWARE_STATUSES = (403, 408, 413, 431, 500)
KEY_STATUSES = (401, 429)

MEANINGS = {
    400: "The request cannot be parsed.",
    401: "Missing or invalid API key. A server without configured keys requires none.",
    403: "The key lacks permission, or the `Host` or `Origin` of the request is not allowed.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    409: "The request conflicts with what is stored.",
    413: "The body is too large.",
    422: "A field is invalid; the message names it and says what is valid.",
    429: "Too many requests; retry after the seconds in `Retry-After`.",
    431: "The headers are too large.",
    500: "Internal error; see the server's log.",
    503: "Temporarily unavailable; retry after the seconds in `Retry-After`.",
    507: "The server cannot store it.",
}
RETRY = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}


class FieldError(BaseModel):
    """Error in one field of the body; `pointer` is a JSON pointer such as `#/k`."""

    pointer: str
    detail: str


class Problem(BaseModel):
    """Problem details of an error (RFC 9457).

    `type` is always `about:blank`: `status` says which kind of error it is, and `title` is its
    name. `detail` is one sentence: what is wrong, where, and what to do. `errors` lists the first
    invalid fields of the body, if any.
    """

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None


def problem_of(status: int, detail: str, errors: Sequence[FieldError] = ()) -> dict[str, Any]:
    """Return the fields of a `Problem` as a dictionary."""
    title = HTTPStatus(status).phrase
    problem = Problem(title=title, status=status, detail=detail, errors=list(errors) or None)
    return problem.model_dump(exclude_none=True)


def problem(
    status: int,
    detail: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a `Problem` as a response."""
    problem = problem_of(status, detail, errors)
    return JSONResponse(problem, status, headers=headers, media_type=PROBLEM_JSON)


def busy_problem(status: int, detail: str, retry_after_s: int) -> JSONResponse:
    """Return a `Problem` with `Retry-After: retry_after_s`; 0 leaves the header out."""
    headers = {"Retry-After": str(retry_after_s)} if retry_after_s else None
    return problem(status, detail, headers=headers)


class OpenAIProblemDetail(BaseModel):
    """Message and type of an error; `param` and `code` may be null."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None
    code: str | None


class OpenAIProblem(BaseModel):
    """Error in OpenAI's format."""

    error: OpenAIProblemDetail


def problems(*statuses: int, form: type[BaseModel] = Problem) -> dict[int | str, dict[str, Any]]:
    """Return FastAPI's `responses` for these statuses."""
    return {
        status: {
            "model": form,
            "description": MEANINGS[status],
            **({"headers": RETRY} if status in (429, 503) else {}),
        }
        for status in sorted(statuses)
    }


def events(names: Sequence[str] = ("message",)) -> dict[str, Any]:
    """Return the OpenAPI content of a server-sent event stream, with the schema of one event."""
    event = {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"event": {"enum": list(names)}, "data": {"type": "string"}},
    }
    return {"text/event-stream": {"schema": event}}
