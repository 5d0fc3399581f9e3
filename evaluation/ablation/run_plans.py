"""Resumable runs of several systems over the same questions.

The replies of a run are appended to `NAME.jsonl` as they arrive: the first line describes the run,
and each further line holds one question. Once all questions have a reply, `NAME.json` is written:
the run in BioASQ's form.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from rich.console import Console

from cluster.answers import Question
from cluster.errors import InputError
from cluster.settings.settings import Settings
from evaluation.ablation.ask_graph import Ask, Found, Plan
from serve.formats.bioasq import to_entry, write_run

OpenGraph = Callable[[], AbstractContextManager[Ask]]

LINE_EVERY_S = 5.0
# Stages that write the answer; all others belong to the search.
ANSWERING_STAGES = ("write", "snippets")


def digest(value: BaseModel | bytes, *without: str) -> str:
    """Return 12 hex digits of the SHA-256 of bytes, or of settings except the fields `without`."""
    if isinstance(value, BaseModel):
        plain = value.model_dump(mode="json", exclude=set(without))
        value = json.dumps(plain, sort_keys=True).encode()
    return hashlib.sha256(value).hexdigest()[:12]


def run_key(plan: Plan, settings: Settings, questions: Path, gold: Path) -> dict[str, Any]:
    """Return the inputs that determine a run's replies, except for the index version.

    The address of the endpoint is not included.
    """
    key = {
        "preset": digest(plan.system, "about"),
        "settings": digest(settings, "ray", "serve", "split"),
        "questions": digest(questions.read_bytes()),
        "answers": plan.answers,
        "k": plan.k,
        "oracle": plan.oracle,
        "evidence": plan.evidence,
    }
    # Only oracles use the gold, so without an oracle a corrected gold file needs no new run.
    return {**key, "gold": digest(gold.read_bytes())} if plan.oracle else key


@dataclass
class Run:
    """A plan with its replies so far, by question id, stored in the file `record`."""

    plan: Plan
    record: Path
    key: Mapping[str, Any]
    version: str = ""
    replies: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The path of the run file in BioASQ's form."""
        return self.record.with_suffix(".json")

    def waiting(self, questions: Sequence[Question]) -> list[Question]:
        """Return the questions that have no reply yet, in order."""
        return [q for q in questions if q.id not in self.replies]

    def ranked(self, id_: str) -> list[int]:
        """Return the PMIDs of a question, best first, up to the plan's `k`."""
        found: list[int] = self.replies[id_]["ranked"]
        return found

    def latencies(self) -> list[float]:
        """Return the summed milliseconds of the search stages of each question.

        Expanding and encoding run concurrently but are added up, so the actual wait is a little
        shorter.
        """
        every = (reply["timings_ms"] for reply in self.replies.values())
        return [
            sum(ms for stage, ms in spent.items() if stage not in ANSWERING_STAGES)
            for spent in every
        ]

    def waits(self) -> list[float]:
        """Return the milliseconds until each question's reply arrived."""
        return [reply["wait_ms"] for reply in self.replies.values()]

    def model_calls(self) -> float:
        """Return the mean number of language model calls per search."""
        return statistics.fmean(reply["model_calls"] for reply in self.replies.values())

    def stages(self) -> dict[str, list[float]]:
        """Return the milliseconds of each stage, over the questions that used it."""
        found: dict[str, list[float]] = {}
        for reply in self.replies.values():
            for stage, ms in reply["timings_ms"].items():
                found.setdefault(stage, []).append(ms)
        return found

    def degraded(self) -> dict[str, int]:
        """Return the number of questions for each degradation message."""
        every = (loss for reply in self.replies.values() for loss in reply["degraded"])
        return dict(Counter(every))

    def add(self, question: Question, found: Found, wait_ms: float) -> None:
        """Store a reply that took `wait_ms` on disk before returning.

        Raises InputError if the reply is from another index version than earlier ones, or if the
        file cannot be written.
        """
        self.check_version(found.index_version)
        row = {
            "entry": to_entry(found),
            "ranked": [c.pmid for c in found.citations],
            "timings_ms": dict(found.timings_ms),
            "wait_ms": round(wait_ms, 1),
            "degraded": list(found.degraded),
            "model_calls": found.model_calls,
        }
        lines = [] if self.replies else [{"run": {**self.key, "index_version": self.version}}]
        with _writing(), self.record.open("a" if self.replies else "w", encoding="utf-8") as file:
            file.writelines(json.dumps(x, ensure_ascii=False) + "\n" for x in [*lines, row])
        self.replies[question.id] = row

    def check_version(self, version: str) -> None:
        """Record the index version; raise InputError if earlier replies are from another one."""
        if self.version and version != self.version:
            raise InputError(
                f"{self.record}: holds replies of index version {self.version}, but the index is "
                f"now {version}; name another --output or delete the file"
            )
        self.version = version


def open_run(folder: Path, plan: Plan, key: Mapping[str, Any]) -> Run:
    """Open the run of `plan` in `folder`, with the replies of an earlier, perhaps interrupted, run.

    Raises InputError for a file that is damaged before its last line, or made with another key.
    """
    run = Run(plan, folder / f"{plan.name}.jsonl", key)
    if not run.record.is_file():
        return run
    text = run.record.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]  # An interruption may have cut off the last line.
    try:
        head, *rows = [json.loads(line) for line in whole.splitlines()] or [{"run": dict(key)}]
        found = dict(head["run"])
        replies = {row["entry"]["id"]: row for row in rows}
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{run.record}: is damaged or not the record of a run; delete it, or name "
            "another --output"
        ) from None
    version = found.pop("index_version", "")
    _check_key(run.record, found, key)
    if replies:
        run.version, run.replies = version, replies
        if len(whole) < len(text):
            os.truncate(run.record, len(whole))
    return run


def _check_key(record: Path, found: Mapping[str, Any], key: Mapping[str, Any]) -> None:
    changed = [
        f"{name} was {found.get(name)}, is {key.get(name)}"
        for name in dict.fromkeys([*key, *found])
        if found.get(name) != key.get(name)
    ]
    if changed:
        raise InputError(
            f"{record}: holds replies of another run ({'; '.join(changed)}); name another --output "
            "or delete the file"
        )


def complete_runs(
    runs: Sequence[Run],
    questions: Sequence[Question],
    open_graph: OpenGraph,
    log: Console,
) -> None:
    """Ask the unanswered questions and write the run files; open the graph only if needed.

    Raises InputError if the runs are from different index versions, or if a file cannot be written.
    The run ends at the first question that fails; earlier replies are kept.
    """
    waiting = [run for run in runs if run.waiting(questions)]
    _check_versions(runs)
    if waiting:
        with open_graph() as ask:
            for run in waiting:
                _complete(run, questions, ask, log)
                _check_versions(runs)
    for run in runs:
        with _writing():
            write_run(run.path, [run.replies[q.id]["entry"] for q in questions])


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _check_versions(runs: Sequence[Run]) -> None:
    versions = {run.version: run.record for run in runs if run.version}
    if len(versions) > 1:
        shown = ", ".join(f"{record} {version}" for version, record in sorted(versions.items()))
        raise InputError(f"runs of different index versions: {shown}; delete the older ones")


def _complete(run: Run, questions: Sequence[Question], ask: Ask, log: Console) -> None:
    waiting = run.waiting(questions)
    # Discard the first reply: loading models is not part of a system's latency.
    warm = ask(waiting[0], Plan(run.plan.system, run.plan.k, answers=False))
    run.check_version(warm.index_version)
    begun = last = time.monotonic()
    for done, question in enumerate(waiting, start=1):
        asked = time.monotonic()
        found = ask(question, run.plan)
        now = time.monotonic()
        run.add(question, found, (now - asked) * 1000)
        if now - last >= LINE_EVERY_S or done == len(waiting):
            last = now
            left = (now - begun) / done * (len(waiting) - done)
            progress = f"answered {done:,} of {len(waiting):,}, about {left:.0f} s left"
            log.print(f"{run.plan.name}: {progress}")
