"""Rounds of batches and run files whose process is killed or whose disk fails.

Every accepted batch ends with exactly one result per question, in order: an answer, or the reason
why there is none. Only questions in progress when the process died or could not write are asked
again, and after a power cut also those that were not yet durable.
"""

from __future__ import annotations

import asyncio
import gc
import io
import json
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from rich.console import Console

from cluster.answers import Answer, Question
from cluster.errors import CiteRayError
from serve.batches.job_store import JobStore
from serve.batches.jobs import BatchError, Job, new_job
from serve.batches.run_jobs import JobRunner
from serve.client.answer_batch import Asked, Batch, answer_batch
from serve.contracts.stage_watch import StageLostError
from serve.formats.bioasq import Entry, to_entry
from tests.faults.clock import JUMP_S, Clock
from tests.faults.inject import DEADLY, ERRORS, OUT_OF_MEMORY, Injector, Killed
from tests.faults.steps import DifferenceError, Draw, Step
from tests.serve.answering import answer

BATCH_FAULTS = (*ERRORS, OUT_OF_MEMORY, "kill", "power cut", "clock ahead", "clock back")
OPERATIONS = ("batch", "work", "work", "restart", "cancel", "run")
# Outcomes of a question. `lost` fails once because a stage is lost, and then succeeds.
OUTCOMES = ("answered", "answered", "answered", "lost", "refused", "broken", "no text")
MOST_MOMENTS, MOST_QUESTIONS, CONCURRENT = 60, 5, 2


def draw_batches(dice: random.Random, turn: int) -> tuple[Step, ...]:
    """Draw a batch, then up to nine more steps."""
    drawn = Draw(dice, turn, BATCH_FAULTS, MOST_MOMENTS)

    def step(operation: str) -> Step:
        count = dice.randint(1, MOST_QUESTIONS)
        outcomes = tuple(dice.choice(OUTCOMES) for _ in range(count))
        asks = operation in ("batch", "run")
        return drawn.step(operation, outcomes if asks else (), drawn.fault())

    return (step("batch"), *(step(dice.choice(OPERATIONS)) for _ in range(dice.randint(1, 9))))


def made_answer(question: Question) -> Answer:
    """Return the answer to a question; each question has a different answer."""
    number = int(question.id)
    degraded = ("llm: late",) if number % 2 else ()
    verdict = "answered" if number % 3 else "mixed"
    return answer(question.body, question=question, degraded=degraded, verdict=verdict, exact="yes")


# Longer than any jump of the clock.
KEEP_DAYS = 3650


class BatchRound:
    """Runs steps on a store of batches in `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder / "batches"
        self._clock = Clock()
        self._dice = random.Random(seed)
        self._outcomes: dict[str, tuple[str, ...]] = {}
        self._cancelled: set[str] = set()
        self._asked: Counter[tuple[str, str]] = Counter()
        self._may_ask_again = 0
        self._runs = 0
        self._store: JobStore | None = None
        self.fired: list[str] = []

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps; raises DifferenceError or an unexpected error of the store or runner."""
        with self._clock.in_place():
            try:
                for step in (*steps, Step("work")):
                    if step.fault:
                        self._attempt(step)
                    self._do(step)
                    self._check(step)
                    if step.operation == "work":
                        self._check_ends(step)
            finally:
                self._close()

    def _attempt(self, step: Step) -> None:
        self._opened()
        injector = Injector(self._folder, step.fault, step.at, clock=self._clock)
        errors = (Killed, OSError, CiteRayError, MemoryError)
        with suppress(*errors), injector.watching(self.fired):
            self._do(step)
        if not injector.fired:
            return
        if step.fault in (*ERRORS, *DEADLY, OUT_OF_MEMORY):
            # This many questions of each owner's batch may have an answer that is not stored yet.
            at_work = CONCURRENT * len({key.rpartition(".")[0] for key in self._outcomes})
            self._may_ask_again += at_work if step.fault != "power cut" else len(self._asked)
        if step.fault in DEADLY:
            self._close()
            injector.after(self._dice)
        if step.fault == "clock back":
            self._clock.set_by(-JUMP_S)
        self._check(step)

    def _opened(self) -> JobStore:
        if self._store is None:
            self._folder.mkdir(exist_ok=True)
            try:
                self._store = JobStore(self._folder, 100, KEEP_DAYS)
            except BatchError:
                # A store killed while it opened holds the lock until it is garbage-collected.
                gc.collect()
                self._store = JobStore(self._folder, 100, KEEP_DAYS)
        return self._store

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _do(self, step: Step) -> None:
        if step.operation == "restart":
            self._close()
        store = self._opened()
        if step.operation == "batch":
            job, questions = self._batch(step)
            store.add(job, questions)
            self._outcomes[job.key] = step.events
        elif step.operation == "work":
            asyncio.run(JobRunner(store, self._ask, CONCURRENT, first_wait_s=0.0).run_waiting())
        elif step.operation == "run":
            self._runs += self._write_run(step)
        elif step.operation == "cancel" and (left := sorted(self._outcomes.keys())):
            key = left[step.at % len(left)]
            with suppress(BatchError):
                if store.goes_on(key):
                    self._cancelled.add(key)
                    store.cancel_or_forget(key)

    def _batch(self, step: Step) -> tuple[Job, list[Question]]:
        """Return the next batch. Every second batch repeats the previous id with another owner."""
        count = len(self._outcomes)
        questions = [
            Question(f"{n}", f"Batch {count}: does {n} help?", "yesno")
            for n in range(len(step.events))
        ]
        owner = "alice" if count % 2 else ""
        return new_job(questions, "citeray", True, f"batch-{count // 2}", owner), questions

    def _write_run(self, step: Step) -> int:
        """Write a run file as `citeray answer` does, check it, and return 1."""
        _, questions = self._batch(step)
        output, asked = self._folder / f"run-{self._runs}.json", Counter[str]()

        def ask(_: object, question: Question) -> Asked:
            asked[question.id] += 1
            return Asked(to_entry(made_answer(question)), (), "v000001")

        partial = output.with_name(f"{output.name}.partial")
        before = partial.read_bytes().count(b"\n") if partial.exists() else 0
        quiet = Console(file=io.StringIO())
        answer_batch(
            SimpleNamespace(search=lambda _: {"index_version": "v000001"}),
            Batch(questions, ask),
            output,
            "citeray",
            answers=True,
            concurrent=1,
            log=quiet,
        )
        found = json.loads(output.read_bytes())["questions"]
        if found != [to_entry(made_answer(question)) for question in questions]:
            raise DifferenceError(f"after {step}: {output.name} holds {found}")
        if sum(asked.values()) > len(questions) - before or partial.exists():
            raise DifferenceError(f"after {step}: {before} were answered, and then {asked}")
        return 1

    async def _ask(self, question: Question, _: Job) -> Answer:
        number = int(question.body.split()[1].rstrip(":"))
        key = f"alice.batch-{number // 2}" if number % 2 else f"batch-{number // 2}"
        await asyncio.sleep(0)
        self._asked[key, question.id] += 1
        outcome = self._outcomes[key][int(question.id)]
        if outcome == "refused":
            raise CiteRayError("the question is refused")
        if outcome == "broken":
            raise RuntimeError("a bug")
        found = made_answer(question)
        if outcome == "no text":
            return replace(found, exact=[["\ud800"]], question=replace(question, type="list"))
        if outcome == "lost" and self._asked[key, question.id] == 1:
            raise StageLostError("a shard was lost")
        return found

    def _expected(self, key: str) -> list[Entry]:
        count = next(n for n, known in enumerate(self._outcomes) if known == key)
        return [
            to_entry(made_answer(Question(f"{n}", f"Batch {count}: does {n} help?", "yesno")))
            for n, outcome in enumerate(self._outcomes[key])
            if outcome in ("answered", "lost")
        ]

    def _check(self, step: Step) -> None:
        """Check that no accepted batch is lost and that no wrong answer is returned."""
        store = self._opened()
        known = {job.key for job, _ in store.all()}
        for key in self._outcomes:
            if key not in known:
                raise DifferenceError(f"after {step}: {key} is gone")
            if key in self._cancelled:
                continue
            expected = {entry["id"]: entry for entry in self._expected(key)}
            found = store.results(key, 0, 100)
            if any(expected.get(entry["id"]) != entry for entry in found):
                raise DifferenceError(f"after {step}: {key} gives {found}")
            if len({entry["id"] for entry in found}) < len(found):
                raise DifferenceError(f"after {step}: {key} gives an entry twice")
        again = {
            asked: times - 1 - (self._outcomes[asked[0]][int(asked[1])] == "lost")
            for asked, times in self._asked.items()
            if self._outcomes[asked[0]][int(asked[1])] in ("answered", "lost")
        }
        if sum(again.values()) > self._may_ask_again:
            raise DifferenceError(f"after {step}: asked again, and how often: {again}")

    def _check_ends(self, step: Step) -> None:
        """Check after all work that every question has its answer or the reason for its failure."""
        store = self._opened()
        for key, outcomes in self._outcomes.items():
            if key in self._cancelled:
                continue
            progress, expected = store.progress(key), self._expected(key)
            state = "done" if expected else "failed"
            failed = {f"{n}" for n, o in enumerate(outcomes) if o not in ("answered", "lost")}
            if (progress.state, set(progress.failed)) != (state, failed):
                raise DifferenceError(f"after {step}: {key} is {progress}")
            if not expected:
                continue
            if json.loads(store.run(key))["questions"] != expected:
                raise DifferenceError(f"after {step}: the run of {key} is {store.run(key)!r}")
            answers = [made_answer(Question(entry["id"], "", "yesno")) for entry in expected]
            counted = (progress.done, Counter(progress.verdicts), Counter(progress.degraded))
            verdicts = Counter(one.verdict for one in answers)
            losses = Counter(loss for one in answers for loss in one.degraded)
            if counted != (len(expected), verdicts, losses):
                raise DifferenceError(f"after {step}: {key} counts {counted}")
        for key in self._cancelled:
            if store.goes_on(key):
                raise DifferenceError(f"after {step}: {key} was cancelled and goes on")
