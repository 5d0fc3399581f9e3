"""Requests and replies of the routes of saved questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cluster.answers import Check
from serve.http.request_forms import SearchRequest
from serve.request import Request
from serve.saved.watches.watch_diff import WatchDiff


class WatchRequest(SearchRequest):
    """A question to save. `check` is as for an answer.

    `webhook` is told of what changes; the operator says which hosts may be named.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": "Does metformin activate AMPK?", "type": "yesno"}]
        }
    )

    check: Check | None = None
    webhook: Annotated[str, Field(max_length=2000)] = ""

    def as_request(self, default_system: str) -> Request:
        """See `SearchRequest.as_request`; with `check`."""
        request = super().as_request(default_system)
        return replace(request, system=request.system.checking(self.check))


class WatchSummary(BaseModel):
    """A saved question. Times are ISO 8601 in UTC.

    `checked` is when it was last asked, null for not yet, and `index_version` which version of the
    index then. `error` says why it could not be asked since; it is tried again.
    """

    id: str
    created: str
    question: str
    request: dict[str, Any]
    webhook: str
    checked: str | None
    index_version: str
    error: str


class WatchList(BaseModel):
    """The questions that were saved with this key, newest first."""

    watches: list[WatchSummary]


class WatchCheck(BaseModel):
    """One time that the question was asked: what changed, in words and as data.

    `diff` is null for the first time. Those that are `notable` are in the feed.
    """

    id: str
    created: str
    index_version: str
    last_source: str
    notable: bool
    changes: list[str]
    diff: WatchDiff | None


class WebhookState(BaseModel):
    """The newest message to the webhook: `waiting`, `delivered` or `given up`."""

    id: str
    created: str
    state: str
    tries: int
    error: str


class OneWatch(WatchSummary):
    """A saved question with its newest answer and its history, the newest first."""

    answer: dict[str, Any] | None
    last_delivery: WebhookState | None
    history: list[WatchCheck]
