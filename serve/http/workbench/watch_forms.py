"""Request and response models of saved questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from cluster.answers import Check
from serve.contracts.request import Request
from serve.contracts.request_forms import SearchRequest
from serve.saved.watches.watch_diff import WatchDiff


class WatchRequest(SearchRequest):
    """Question to save. `check` is the same as for an answer.

    Changes are posted to the URL `webhook`; the operator configures the allowed hosts.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"question": "Does metformin activate AMPK?", "type": "yesno"}]
        }
    )

    check: Check | None = None
    webhook: Annotated[str, Field(max_length=2000)] = ""

    def as_request(self, default_system: str) -> Request:
        """Return the request as `SearchRequest.as_request` does, with `check` in its preset."""
        request = super().as_request(default_system)
        return replace(request, system=request.system.checking(self.check))


class WatchSummary(BaseModel):
    """Saved question. Times are ISO 8601 in UTC.

    `checked` is the time of the last check, or null, and `index_version` the index version at that
    time. `error` is the reason why a later check failed; it is retried. `changed` is the time of
    the newest notable change, or null, and `changes` says what changed: "2 new trials".
    """

    id: str
    created: str
    question: str
    request: dict[str, Any]
    webhook: str
    checked: str | None
    index_version: str
    error: str
    changed: str | None = None
    changes: str = ""


class WatchList(BaseModel):
    """Questions saved with this key, newest first."""

    watches: list[WatchSummary]


class WatchCheck(BaseModel):
    """One check of a saved question, with the changes as text and as data.

    `diff` is null for the first check. The feed contains the checks that are `notable`.
    """

    id: str
    created: str
    index_version: str
    last_source: str
    notable: bool
    changes: list[str]
    diff: WatchDiff | None


class WebhookState(BaseModel):
    """Newest webhook delivery; `state` is `waiting`, `delivered` or `given up`."""

    id: str
    created: str
    state: str
    tries: int
    error: str


class OneWatch(WatchSummary):
    """Saved question with its newest answer and its checks, newest first."""

    answer: dict[str, Any] | None
    last_delivery: WebhookState | None
    history: list[WatchCheck]
