"""Answer a batch of questions concurrently, and write a run file that can be resumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from pydantic import TypeAdapter
from rich.console import Console

from cluster.answers import Question, SearchResult
from cluster.errors import InputError
from serve.batches.work_through import Eta, Tally, work_through
from serve.client.open_client import Client, Reply, as_answer
from serve.formats.bioasq import MAX_DOCUMENTS, Entry, RunWriter, to_entry, write_run

LINE_EVERY_S = 5.0
NONE_GIVEN = "evidence: none given, searched for"

SEARCH = TypeAdapter(SearchResult)


@dataclass(frozen=True, slots=True)
class Asked:
    """Entry of a question for the run file. `verdict` is "" if no answer was requested.

    `degraded` lists the losses: what its replies lack, such as the results of a shard.
    """

    entry: Entry
    degraded: tuple[str, ...]
    index_version: str
    verdict: str = ""

    def with_loss(self, loss: str) -> Asked:
        """Return a copy with one more loss."""
        return replace(self, degraded=(*self.degraded, loss))


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions of a batch, with the functions that ask them and write the run file.

    `inputs` identifies everything else that the entries depend on: an interrupted run is resumed
    only with the same inputs.
    """

    questions: Sequence[Question]
    ask: Callable[[Client, Question], Asked]
    write: Callable[[Path, Iterable[Entry]], None] = write_run
    inputs: str = ""


def request_of(
    question: Question, system: str, documents: int = MAX_DOCUMENTS
) -> dict[str, object]:
    """Return the request body of a question, which asks for `documents` documents and snippets."""
    given = [asdict(passage) for passage in question.given]
    return {
        "id": question.id,
        "question": question.body,
        "type": question.type,
        "system": system,
        "k": documents,
        "snippets": True,
        "exclude": list(question.exclude),
        **({"evidence": given} if given else {}),
    }


def answer_request_of(
    question: Question, system: str, documents: int = MAX_DOCUMENTS
) -> dict[str, object]:
    """Return the request body for an answer with a best guess, which run files require."""
    return request_of(question, system, documents) | {"guess": True}


def joined(entry: Entry, *replies: Reply) -> Asked:
    """Combine an entry with the losses of its replies, without duplicates.

    The index version is that of the first reply.
    """
    losses = dict.fromkeys(loss for reply in replies for loss in reply["degraded"])
    verdict = next((str(reply["verdict"]) for reply in replies if "verdict" in reply), "")
    return Asked(entry, tuple(losses), str(replies[0]["index_version"]), verdict)


def digest_of(questions: Sequence[Question]) -> str:
    """Return a SHA-256 digest of the given evidence. A run is resumed only with equal evidence."""
    return sha256(repr([(q.id, q.given) for q in questions]).encode()).hexdigest()


def bioasq_batch(
    questions: Sequence[Question],
    system: str,
    *,
    answers: bool,
    given: bool = False,
    documents: int = MAX_DOCUMENTS,
) -> Batch:
    """Return a batch in BioASQ's format, with answers or only documents and snippets.

    If evidence is `given`, questions without evidence are answered from a search, and their
    entries are marked with the loss `NONE_GIVEN`.
    """

    def ask(client: Client, question: Question) -> Asked:
        result: SearchResult
        if answers:
            reply = client.answer(answer_request_of(question, system, documents))
            result = as_answer(reply)
        else:
            reply = client.search(request_of(question, system, documents))
            result = SEARCH.validate_python(reply)
        asked = joined(to_entry(result, result.snippets, documents), reply)
        return asked.with_loss(NONE_GIVEN) if given and not question.given else asked

    inputs = digest_of(questions) if given else ""
    deeper = f"{documents} documents" if documents != MAX_DOCUMENTS else ""
    return Batch(questions, ask, inputs=" ".join(filter(None, (inputs, deeper))))


def answer_batch(
    client: Client,
    batch: Batch,
    output: Path,
    system: str,
    *,
    answers: bool,
    concurrent: int,
    log: Console,
) -> dict[str, dict[str, int]]:
    """Write the run of `system` to `output`, and return its counts.

    `degraded` counts each loss, and each answer from another index version than the first.
    `verdicts` counts the answers by verdict if `answers` is set; neither counts the entries of an
    earlier, interrupted run. Resumes an interrupted run of the
    same system, index version and inputs. The first question that fails ends the batch with its
    error; earlier answers are kept. Raises InputError if the batch has no questions.
    """
    questions = batch.questions
    if not questions:
        raise InputError(f"{output}: not written because there is no question to answer")
    probe = client.search({"question": questions[0].body, "system": system, "k": 1})
    tally = Tally(str(probe["index_version"]))
    with RunWriter(output, system, tally.version, answers=answers, inputs=batch.inputs) as run:
        waiting = [q for q in questions if q.id not in run.done]
        eta = Eta(len(waiting))
        lines = _ProgressLines(log)

        def keep(asked: Asked) -> None:
            run.add(asked.entry)
            tally.count(asked.degraded, asked.index_version, asked.verdict)
            lines.show(eta, eta.after_one())

        asyncio.run(_ask_all(client, batch, waiting, keep, concurrent))
        run.finish(questions, batch.write)
    counts = tally.counts()
    return counts if answers else {"degraded": counts["degraded"]}


async def _ask_all(
    client: Client,
    batch: Batch,
    waiting: Sequence[Question],
    keep: Callable[[Asked], None],
    concurrent: int,
) -> None:
    loop = asyncio.get_running_loop()
    # The event loop's default pool is small on few cores, but these threads only wait for replies.
    with ThreadPoolExecutor(concurrent) as pool:

        async def work(question: Question) -> None:
            keep(await loop.run_in_executor(pool, batch.ask, client, question))

        await work_through(waiting, work, concurrent)


class _ProgressLines:
    """Print a progress line every LINE_EVERY_S seconds and at the end."""

    def __init__(self, log: Console) -> None:
        self._log = log
        self._last = time.monotonic()

    def show(self, eta: Eta, left_s: float) -> None:
        now = time.monotonic()
        if now - self._last >= LINE_EVERY_S or eta.done == eta.total:
            self._last = now
            self._log.print(f"answered {eta.done:,} of {eta.total:,}, about {left_s:.0f} s left")
