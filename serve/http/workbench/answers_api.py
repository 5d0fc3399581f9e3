"""Stored answers over HTTP: permanent addresses, replay and deletion.

GET /v1/answers   GET /v1/answers/{answer_id}   DELETE /v1/answers/{answer_id}
GET /v1/answers/{answer_id}/changes   POST /v1/answers/{answer_id}/replay
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from dataclasses import asdict, replace
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query
from fastapi.responses import Response
from pydantic import ValidationError

from cluster.answers import Answer, Check
from cluster.errors import InputError
from cluster.settings.presets import is_system, load_system
from cluster.settings.system_settings import SystemSettings
from serve.batches.jobs import when
from serve.contracts.answer_events import Event, Finished
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.contracts.request import Request
from serve.contracts.request_forms import AnswerRequest
from serve.http.middleware.request_log import asker
from serve.http.service import Service, require_ready
from serve.http.workbench.answer_forms import (
    AnswerChanges,
    AnswerList,
    AnswerSummary,
    KeptAnswer,
    Replay,
)
from serve.references.documents.number_answer import cited_pmids
from serve.saved.compare_answers import compare, read_answer
from serve.saved.saved_error import SavedError
from serve.saved.stored_answers import MOST_LISTED, AskedWith, StoredAnswer
from serve.saved.stores import Saved
from serve.saved.watches.source_records import changed_sources, look_up, records_then
from serve.saved.watches.watch_diff import source_summary

log = logging.getLogger("citeray")

NOT_KEPT = "store: the answer could not be kept"
ID = r"^[0-9a-f]{32}$"
EXAMPLE = "0f8fad5bd9cb469fa16570867728950e"
AnswerId = Annotated[str, Path(pattern=ID, examples=[EXAMPLE])]
Limit = Annotated[int, Query(ge=1, le=MOST_LISTED)]
Before = Annotated[str, Query(pattern=r"^([0-9a-f]{32})?$")]

ONE = problems(*KEY_STATUSES, 404, 422, 503)
DELETED = {204: {"description": "Deleted, with its feedback."}, **ONE, **problems(507)}
REPLAYED = problems(*KEY_STATUSES, 404, 409, 422, 503)


def wants_storing(request: AnswerRequest, saved: Saved | None) -> bool:
    """Return True if the answer is to be stored; raise InputError if the server may not do so."""
    kept = saved.settings.answers if saved is not None else "never"
    if request.store and kept == "never":
        raise InputError("store: this server does not store answers; remove store")
    return kept == "always" or (kept == "asked" and request.store)


def take_recent(saved: Saved | None, request: AnswerRequest, asked: Request) -> Answer | None:
    """Return the recent answer to an equal request if it is to be stored now, or None."""
    if not wants_storing(request, saved) or saved is None:
        return None
    return saved.recent.take(asker(), sent_fields(request, asked))


async def store_answer(
    saved: Saved | None, answer: Answer, request: AnswerRequest, asked: Request
) -> Answer:
    """Return the answer, with its id if it is to be stored.

    If it cannot be stored, `NOT_KEPT` is in its `degraded`. An answer that the server may store
    on request is remembered for a while.
    """
    if saved is None or saved.settings.answers == "never":
        return answer
    fields = sent_fields(request, asked)
    if not wants_storing(request, saved):
        saved.recent.add(asker(), fields, answer)
        return answer
    with_all = AskedWith(fields, asked.system.model_dump(mode="json"), saved.models)
    try:
        return await asyncio.to_thread(saved.answers.keep, answer, with_all, asker())
    except SavedError as error:
        log.warning("an answer could not be stored: %s", error)
        return replace(answer, degraded=(*answer.degraded, NOT_KEPT))


def sent_fields(request: AnswerRequest, asked: Request) -> dict[str, Any]:
    """Return the request's non-default fields, with its preset by name."""
    fields = request.model_dump(mode="json", exclude_defaults=True, exclude={"stream", "store"})
    return {**fields, "system": asked.system.name}


async def store_last(
    saved: Saved | None,
    events: AsyncGenerator[Event, None],
    request: AnswerRequest,
    asked: Request,
) -> AsyncGenerator[Event, None]:
    """Yield the events of an answer; the answer in the last event is that of `store_answer`."""
    try:
        async for event in events:
            if isinstance(event, Finished):
                event = Finished(await store_answer(saved, event.answer, request, asked))
            yield event
    finally:
        await events.aclose()


async def finished(answer: Answer) -> AsyncGenerator[Event, None]:
    """Yield the only event of an answer that is known already."""
    yield Finished(answer)


def add_answers(api: FastAPI, service: Service, saved: Saved, default_system: str) -> None:
    """Add the routes of stored answers to `api`."""

    @api.get("/v1/answers", responses=ONE)
    async def list_answers(limit: Limit = 50, before: Before = "") -> AnswerList:
        """List the answers stored with this key, newest first."""
        rows = await asyncio.to_thread(saved.answers.list, asker(), limit, before)
        answers = [AnswerSummary(**{**asdict(row), "created": when(row.created)}) for row in rows]
        return AnswerList(answers=answers, next=rows[-1].id if len(rows) == limit else "")

    @api.get("/v1/answers/{answer_id}", responses=ONE)
    async def one_answer(answer_id: AnswerId) -> KeptAnswer:
        """Return a stored answer by its id; any valid key may read it."""
        return describe_answer(await asyncio.to_thread(saved.answers.get, answer_id), saved)

    @api.get("/v1/answers/{answer_id}/changes", responses=ONE)
    async def changes(answer_id: AnswerId) -> AnswerChanges:
        """Return which sources of a stored answer have been retracted or corrected since then."""
        require_ready(service)
        stored = await asyncio.to_thread(saved.answers.get, answer_id)
        answer = read_answer(stored.answer)
        answerer = service.answerer
        now = await look_up(cited_pmids(answer), answerer.citation, answerer.exposure)
        sources = changed_sources(records_then(answer, now), now)
        return AnswerChanges(changed=source_summary(sources), sources=list(sources))

    @api.delete("/v1/answers/{answer_id}", status_code=204, responses=DELETED)
    async def delete_answer(answer_id: AnswerId) -> Response:
        """Delete a stored answer and its feedback; only the key that stored it may."""
        await asyncio.to_thread(saved.answers.delete, answer_id, asker())
        return Response(status_code=204)

    @api.post("/v1/answers/{answer_id}/replay", responses=REPLAYED)
    async def replay(answer_id: AnswerId) -> Replay:
        """Ask the question again with the preset as it was then, and compare both answers."""
        require_ready(service)
        stored = await asyncio.to_thread(saved.answers.get, answer_id)
        before = read_answer(stored.answer)
        asked = repeat_request(stored.asked, default_system)
        now = service.record(await service.answerer.answer(asked))
        compared = compare(
            before,
            now,
            presets=(dict(stored.asked.preset), preset_now(before.system, before.check)),
            models=(dict(stored.asked.models), dict(saved.models)),
        )
        return Replay(stored=dict(stored.answer), now=now, comparison=compared)


def describe_answer(stored: StoredAnswer, saved: Saved) -> KeptAnswer:
    """Return the response form of a stored answer."""
    return KeptAnswer(
        id=stored.id,
        created=when(stored.created) or "",
        expires=when(stored.created + saved.answers.keep_s) or "",
        mine=stored.owner == asker(),
        request=dict(stored.asked.request),
        preset=dict(stored.asked.preset),
        models=dict(stored.asked.models),
        answer=dict(stored.answer),
    )


def repeat_request(asked: AskedWith, default_system: str) -> Request:
    """Return the stored request with the stored preset, even if that preset has changed since.

    Raise SavedError if another version of CiteRay stored it in a format that is not supported.
    """
    fields = {name: value for name, value in asked.request.items() if name != "system"}
    try:
        request = AnswerRequest.model_validate(fields).as_request(default_system)
        return replace(request, system=SystemSettings.model_validate(dict(asked.preset)))
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise SavedError(
            f"the stored request is from another version of CiteRay ({where}); submit the question "
            "again",
            409,
        ) from error


def preset_now(name: str, check: Check) -> dict[str, Any] | None:
    """Return the current settings of the preset with `check`, or None if it does not exist."""
    return load_system(name).checking(check).model_dump(mode="json") if is_system(name) else None
