"""Answers a batch of questions, several at once, into a run file that can be continued."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console

from cluster.errors import InputError
from cluster.records import Answer, Question, SearchResult
from serve.client import Client, Reply
from serve.formats.bioasq import RunWriter, to_entry

LINE_EVERY_S = 5.0
DOCUMENTS = 10

_ANSWER = TypeAdapter(Answer)
_SEARCH = TypeAdapter(SearchResult)


def _ask(client: Client, question: Question, system: str, answers: bool) -> Reply:
    request = {
        "id": question.id,
        "question": question.body,
        "type": question.type,
        "system": system,
        "k": DOCUMENTS,
        "snippets": True,
    }
    return client.answer(request) if answers else client.search(request)


def _entry(reply: Reply, answers: bool) -> dict[str, Any]:
    result: Answer | SearchResult = (_ANSWER if answers else _SEARCH).validate_python(reply)
    return to_entry(result, result.snippets)


def answer_batch(
    client: Client,
    questions: Sequence[Question],
    output: Path,
    system: str,
    *,
    answers: bool,
    concurrent: int,
    log: Console,
) -> dict[str, dict[str, int]]:
    """Write the run of `system` to `output`; `degraded` counts each loss by its words.

    An answer from another index version than the first is counted there too.
    Questions that an interrupted run of the same system and index version has answered
    are not asked again. The first question that fails ends the batch with its error;
    what was answered before it is kept. Raises InputError for a batch of no questions.
    """
    if not questions:
        raise InputError(f"{output}: not written, as there is no question to answer")
    probe = client.search({"question": questions[0].body, "system": system, "k": 1})
    version = str(probe["index_version"])
    losses: Counter[str] = Counter()
    begun = last = time.monotonic()
    with (
        RunWriter(output, system, version, answers=answers) as run,
        ThreadPoolExecutor(concurrent) as pool,
    ):
        waiting = [q for q in questions if q.id not in run.done]
        total = len(waiting)
        done = 0
        asked: set[Future[Reply]] = set()
        try:
            while waiting or asked:
                while waiting and len(asked) < concurrent:
                    asked.add(pool.submit(_ask, client, waiting.pop(0), system, answers))
                finished, asked = wait(asked, return_when=FIRST_COMPLETED)
                for future in finished:
                    reply = future.result()
                    losses.update(reply["degraded"])
                    if reply["index_version"] != version:
                        losses[f"index: moved on from {version} to {reply['index_version']}"] += 1
                    run.add(_entry(reply, answers))
                    done += 1
                now = time.monotonic()
                if now - last >= LINE_EVERY_S or done == total:
                    last = now
                    left = (now - begun) / done * (total - done)
                    log.print(f"answered {done:,} of {total:,}, about {left:.0f} s left")
        finally:
            for future in asked:
                future.cancel()
        run.finish(questions)
    return {"degraded": dict(losses.most_common())}
