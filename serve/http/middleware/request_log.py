"""Request log and metrics: one structured log line per request, and counters.

The text of a question is logged only if the settings enable it.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

log = logging.getLogger("citeray.requests")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
# Log fields of the current request; the middleware sets a new dictionary for each.
NOTES: ContextVar[dict[str, Any]] = ContextVar("notes")


def asker() -> str:
    """Return the name of the current request's API key, or "" if the server has no keys."""
    return str(NOTES.get({}).get("key", ""))


class Meters:
    """No-op metrics, for tests and processes without Ray; subclasses record them.

    `route` is a path template of the API, never text from the client.
    """

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request by its status; 499 if the client disconnected."""

    def question(
        self, kind: str, system: str, timings_ms: Mapping[str, float], degraded: Sequence[str]
    ) -> None:
        """Count a search or an answer (`kind`) with its stage times and degradations."""

    def load(self, running: int, waiting: int) -> None:
        """Set the number of running and waiting requests of this gateway."""


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the client's `X-Request-ID` if it matches REQUEST_ID, else a new id."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def log_request(notes: Mapping[str, Any], route: str, status: int, begun: float) -> None:
    """Log one line; `begun` is the start time on the monotonic clock, in seconds."""
    ms = round((time.monotonic() - begun) * 1000, 1)
    log.info("request", extra={"route": route, "status": status, "ms": ms, **notes})
