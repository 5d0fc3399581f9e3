"""Saved questions over HTTP, with their answer history, Atom feed and webhook.

POST /v1/watches   GET /v1/watches   GET /v1/watches/{watch_id}   DELETE /v1/watches/{watch_id}
GET /v1/watches/{watch_id}/feed
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from fastapi.responses import Response

from cluster.settings.presets import load_system
from serve.batches.jobs import when
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from serve.http.middleware.request_log import asker
from serve.http.service import Service
from serve.http.workbench.answers_api import EXAMPLE, ID
from serve.http.workbench.watch_forms import (
    OneWatch,
    WatchCheck,
    WatchList,
    WatchRequest,
    WatchSummary,
    WebhookState,
)
from serve.saved.stores import Saved
from serve.saved.watches.feed import MOST_ENTRIES, atom_feed
from serve.saved.watches.watch_diff import change_summary, diff_words
from serve.saved.watches.watch_store import MOST_CHECKS, Check, Watch
from serve.saved.watches.webhooks import check_webhook, read_secret

WatchId = Annotated[str, Path(pattern=ID, examples=[EXAMPLE])]
Limit = Annotated[int, Query(ge=1, le=MOST_CHECKS)]

ADDED = problems(*KEY_STATUSES, 409, 422, 503, 507)
LISTED = problems(*KEY_STATUSES, 503)
ONE = problems(*KEY_STATUSES, 404, 422, 503)
DELETED = {204: {"description": "Deleted, with its history."}, **ONE, **problems(507)}
FEED = {200: {"content": {"application/atom+xml": {"schema": {"type": "string"}}}}, **ONE}


def add_watches(api: FastAPI, service: Service, saved: Saved, default_system: str) -> None:
    """Add the routes of saved questions to `api`."""

    @api.post("/v1/watches", status_code=201, responses=ADDED)
    async def add(request: WatchRequest) -> WatchSummary:
        """Save a question. It is asked now and again after each new index version."""
        fields = request_fields(request, saved, default_system)
        await _try_filters(service, request.as_request(default_system))
        added = await asyncio.to_thread(saved.watches.add, asker(), fields, request.webhook)
        return summarise_watch(added)

    @api.get("/v1/watches", responses=LISTED)
    async def list_watches() -> WatchList:
        """List the questions saved with this key, newest first."""
        found = await asyncio.to_thread(saved.watches.list, asker())
        changes = await asyncio.to_thread(saved.watches.newest_changes, asker())
        return WatchList(watches=[summarise_watch(w, changes.get(w.id)) for w in found])

    @api.get("/v1/watches/{watch_id}", responses=ONE)
    async def one_watch(watch_id: WatchId, limit: Limit = 100) -> OneWatch:
        """Return a saved question with its newest answer and the history of changes."""
        return await asyncio.to_thread(describe_watch, saved, watch_id, asker(), limit)

    @api.delete("/v1/watches/{watch_id}", status_code=204, responses=DELETED)
    async def delete(watch_id: WatchId) -> Response:
        """Delete a saved question and its history."""
        await asyncio.to_thread(saved.watches.delete, watch_id, asker())
        return Response(status_code=204)

    @api.get("/v1/watches/{watch_id}/feed", response_class=Response, responses=FEED)
    async def feed(watch_id: WatchId) -> Response:
        """Return the notable changes of the answer as an Atom feed."""
        watch = await asyncio.to_thread(saved.watches.get, watch_id, asker())
        checks = saved.watches.checks
        notable = await asyncio.to_thread(checks, watch_id, MOST_ENTRIES, notable=True)
        return Response(atom_feed(watch, notable), media_type="application/atom+xml")


async def _try_filters(service: Service, asked: Request) -> None:
    """Raise InputError for filter values that no article of the index has.

    Skipped while the index is unavailable: the question is saved, and its next check reports the
    error.
    """
    if asked.filters and asked.system.online.when == "never" and not service.graph.loading():
        with suppress(StageLostError):
            asked = replace(asked, system=load_system("bm25"), limit=1)
            service.record(await service.answerer.search(asked))


def request_fields(request: WatchRequest, saved: Saved, default_system: str) -> dict[str, Any]:
    """Return the request fields to store, with the preset by name.

    Raise InputError for an invalid preset, filter or webhook.
    """
    system = load_system(request.system or default_system).name
    request.as_request(default_system)
    if request.webhook:
        check_webhook(request.webhook, saved.settings)
        read_secret(saved.settings.webhook_secret_env)
    fields = request.model_dump(mode="json", exclude_defaults=True, exclude={"webhook"})
    return {**fields, "system": system}


def summarise_watch(watch: Watch, changed: Check | None = None) -> WatchSummary:
    """Return the list entry of a saved question; `changed` is its newest notable check."""
    return WatchSummary(
        id=watch.id,
        created=when(watch.created) or "",
        question=watch.question,
        request=dict(watch.request),
        webhook=watch.webhook,
        checked=when(watch.checked),
        index_version=watch.version,
        error=watch.error,
        changed=when(changed.created) if changed else None,
        changes=change_summary(changed.diff) if changed and changed.diff else "",
    )


def describe_watch(saved: Saved, watch_id: str, owner: str | None, limit: int) -> OneWatch:
    """Return the response form of a saved question; `owner` None accepts any owner."""
    watch = saved.watches.get(watch_id, owner)
    sent = saved.deliveries.last_of(watch_id)
    told_of = None if sent is None else {**asdict(sent), "created": when(sent.created)}
    return OneWatch(
        **summarise_watch(watch).model_dump(),
        answer=None if watch.answer is None else dict(watch.answer),
        last_delivery=None if told_of is None else WebhookState(**told_of),
        history=[describe_check(check) for check in saved.watches.checks(watch_id, limit)],
    )


def describe_check(check: Check) -> WatchCheck:
    """Return the response form of a check."""
    return WatchCheck(
        id=check.id,
        created=when(check.created) or "",
        index_version=check.version,
        last_source=check.last_source,
        notable=check.notable,
        changes=diff_words(check.diff),
        diff=check.diff,
    )
