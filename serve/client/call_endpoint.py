"""HTTP calls to a running endpoint, with an API key, retries and one deadline over all attempts.

Calls are retried after a lost connection and while the endpoint is busy. This is safe, as they are
reads or idempotent; only an answer with `store` may be stored twice.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any, TypeVar

import httpx

from cluster.errors import CiteRayError, InputError
from cluster.http_clients import open_client

T = TypeVar("T")
API_KEY_ENV = "CITERAY_API_KEY"
# Back-off between attempts in seconds, unless `Retry-After` asks for longer.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 8.0)
BUSY = frozenset({429, 503})
# Retry these statuses if the body is not from this API: a lost gateway is being replaced.
LOST = frozenset({500, 502, 504})
BAD_INPUT = frozenset({400, 404, 409, 413, 422})
SHOWN = 200


class EndpointError(CiteRayError):
    """The endpoint failed, refused the request, or is unreachable.

    `status` is the HTTP status, or None without a response. `retry_after_s` is the time in seconds
    after which to retry, or None if a retry would fail too.
    """

    def __init__(
        self, message: str, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, status, retry_after_s)
        self.status = status
        self.retry_after_s = retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


class BadRequestError(EndpointError, InputError):
    """The request is invalid, or the endpoint does not have the requested resource."""


class Endpoint:
    """Thread-safe HTTP client of the endpoint at `url`.

    A call may take `timeout_s` seconds over all attempts. The key is read from the environment
    variable `api_key_env`, if it is set. Raises InputError if `url` is not an http(s) URL, or if
    the key is not valid in a header.
    """

    def __init__(
        self,
        url: str,
        timeout_s: float,
        api_key_env: str = API_KEY_ENV,
        *,
        http: httpx.Client | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._timeout_s = timeout_s
        self._key_env = api_key_env
        self._http = http or open_client(base_url=_checked(self._url))
        self._headers = {"Content-Type": "application/json", **_key_header(api_key_env)}

    def close(self) -> None:
        """Close all connections, including those of a client passed as `http`."""
        self._http.close()

    def read(self, method: str, path: str, body: Any = None) -> bytes:
        """Return the whole response body; `body` is sent as JSON and may contain dataclasses.

        Raise EndpointError, or BadRequestError if the request is at fault.
        """

        def attempt(deadline: float) -> bytes:
            with self._opened(method, path, body, deadline) as response:
                return b"".join(self._in_time(response.iter_bytes(), path, deadline))

        return self._tried(attempt)

    @contextmanager
    def lines(self, method: str, path: str, body: Any = None) -> Iterator[Iterator[str]]:
        """Yield the lines of the response as they arrive; no retry after the response begins."""
        with ExitStack() as stack:

            def attempt(deadline: float) -> tuple[float, httpx.Response]:
                return deadline, stack.enter_context(self._opened(method, path, body, deadline))

            deadline, response = self._tried(attempt)
            yield _split(self._in_time(response.iter_bytes(), path, deadline))

    @contextmanager
    def chunks(self, method: str, path: str, body: Any = None) -> Iterator[Iterator[bytes]]:
        """Yield the parts of a long file as they arrive; no retry after the response begins.

        The time limit holds for each part and not for the whole file.
        """
        with ExitStack() as stack:

            def attempt(deadline: float) -> httpx.Response:
                return stack.enter_context(self._opened(method, path, body, deadline))

            yield self._tried(attempt).iter_bytes()

    def _tried(self, attempt: Callable[[float], T]) -> T:
        deadline = time.monotonic() + self._timeout_s
        for pause in PAUSES_S:
            try:
                return attempt(deadline)
            except EndpointError as error:
                if error.retry_after_s is None:
                    raise
                wait = max(error.retry_after_s, pause * random.uniform(0.5, 1))
                if time.monotonic() + wait > deadline:
                    raise
            time.sleep(wait)
        return attempt(deadline)

    @contextmanager
    def _opened(
        self, method: str, path: str, body: Any, deadline: float
    ) -> Iterator[httpx.Response]:
        """Yield a successful response with its body unread."""
        left = max(deadline - time.monotonic(), 0.001)
        content = None if body is None else json.dumps(body, default=asdict)
        with (
            self._plainly(path),
            self._http.stream(
                method, path, content=content, headers=self._headers, timeout=left
            ) as response,
        ):
            if not response.is_success:
                said = b"".join(self._in_time(response.iter_bytes(), path, deadline))
                raise self._refusal(response, said, path)
            yield response

    @contextmanager
    def _plainly(self, path: str) -> Iterator[None]:
        where = f"{self._url}{path}"
        try:
            yield
        except httpx.TimeoutException as error:
            raise self._too_late(path) from error
        except httpx.TransportError as error:
            raise EndpointError(f"{where}: {error or 'connection lost'}", None, 0.0) from error
        except httpx.HTTPError as error:
            raise EndpointError(f"{where}: {error}") from error

    def _in_time(self, chunks: Iterable[bytes], path: str, deadline: float) -> Iterator[bytes]:
        for chunk in chunks:
            if time.monotonic() > deadline:
                raise self._too_late(path)
            yield chunk

    def _too_late(self, path: str) -> EndpointError:
        return EndpointError(f"{self._url}{path}: no whole reply within {self._timeout_s:g} s")

    def _refusal(self, response: httpx.Response, body: bytes, path: str) -> EndpointError:
        status = response.status_code
        again = status in BUSY
        try:
            message = str(json.loads(body)["detail"])
        except (ValueError, KeyError, TypeError):
            message = body.decode(errors="replace")[:SHOWN]
            again = again or status in LOST
        if status == 401:
            message += f"; this client reads its key from {self._key_env}"
        asked = response.headers.get("Retry-After", "")
        wait = float(asked) if asked.isdecimal() else 0.0
        failure = BadRequestError if status in BAD_INPUT else EndpointError
        said = f"{path}: HTTP {status}: {message}"
        return failure(said, status, wait if again else None)


def _checked(url: str) -> str:
    try:
        parts = httpx.URL(url)
        valid = parts.scheme in ("http", "https") and parts.host
    except httpx.InvalidURL:
        # The message of InvalidURL may quote part of a password.
        valid = False
    if not valid:
        raise InputError(f"{url!r} is not a URL of an endpoint; give one such as http://host:8000")
    return url


def _key_header(variable: str) -> dict[str, str]:
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError(f"{variable} contains characters that no API key can have; set it again")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _split(chunks: Iterable[bytes]) -> Iterator[str]:
    """Split at line feeds only: abstracts may contain other Unicode line separators."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").rstrip("\r") for line in whole)
