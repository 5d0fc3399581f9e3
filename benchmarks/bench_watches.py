"""Measure the latency of ordinary questions while saved questions are asked again.

    python -m benchmarks.bench_watches QUESTIONS.json --index INDEX [--saved 1000] [--rate 1]
        [--seconds 60] [--rounds 3] [--set serve.saved.checks_per_minute=12]

Serves the index with `--saved` saved questions that were last asked of an earlier version, so that
all are due, as after an update. Sends ordinary questions with Poisson arrivals (`--rate` a second)
in periods of `--seconds`, alternately with the saved questions paused and with them running.
Prints the median and 95th percentile latency in milliseconds of both, and the ratio of the 95th
percentiles.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from sqlalchemy import func, insert, select, update

from benchmarks.questions import asked, overrides, question_parser
from benchmarks.served_graph import served_graph
from benchmarks.smallest import parse_arguments
from serve.saved.stores import Saved
from serve.saved.tables import CHECKS, WATCHES
from serve.saved.watches.watch_store import MOST_WAIT_S
from tests.serve.saved.kept import saved_at

SMALLEST = "QUESTIONS --index INDEX --saved 5 --rounds 1 --seconds 4"

BEFORE = "v000000"
# Longer than the sleep of the gateway's loop, so that no period overlaps with the next one.
SETTLE_S = 8.0


@dataclass
class Turns:
    """Latencies of ordinary questions in seconds, and the number of saved questions asked."""

    seconds: list[float] = field(default_factory=list)
    beside: int = 0
    failed: int = 0
    degraded: int = 0


def save_due(saved: Saved, questions: Sequence[str], answers: Sequence[Any], count: int) -> None:
    """Save `count` questions with answers of an earlier version, paused at first."""
    pairs = itertools.islice(itertools.cycle(zip(questions, answers, strict=True)), count)
    rows = [
        {
            "id": f"{n:032x}", "owner": "", "digest": f"{n}", "created": 1.0, "question": question,
            "request": {"question": question, "system": "citeray"}, "webhook": "", "checked": 1.0,
            "version": BEFORE, "failures": 0, "error": "", "not_before": time.time() + MOST_WAIT_S,
            "answer": {**answer, "index_version": BEFORE}, "sources": {},
        }
        for n, (question, answer) in enumerate(pairs)
    ]  # fmt: skip
    with saved.database.write() as connection:
        connection.execute(insert(WATCHES), rows)


def hold_back(saved: Saved, held: bool) -> None:
    """Pause the saved questions if `held`, or resume them.

    The pause is MOST_WAIT_S, which is longer than a period. A longer pause would count as due.
    """
    until = time.time() + MOST_WAIT_S if held else 0.0
    with saved.database.write() as connection:
        connection.execute(update(WATCHES).values(not_before=until))


def count_checks(saved: Saved) -> int:
    with saved.database.read() as connection:
        return connection.scalar(select(func.count()).select_from(CHECKS)) or 0


async def ask(http: httpx.AsyncClient, question: str, found: Turns) -> None:
    begun = time.monotonic()
    reply = await http.post("/v1/answer", json={"question": question, "system": "citeray"})
    if reply.is_success:
        found.seconds.append(time.monotonic() - begun)
        found.degraded += bool(reply.json()["degraded"])
    else:
        found.failed += 1


async def drive(
    http: httpx.AsyncClient, questions: Sequence[str], rate: float, seconds: float, seed: int
) -> Turns:
    found, chance, sent = Turns(), random.Random(seed), []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        sent.append(asyncio.create_task(ask(http, chance.choice(questions), found)))
        await asyncio.sleep(chance.expovariate(rate))
    await asyncio.gather(*sent)
    return found


async def measure(
    url: str, saved: Saved, questions: Sequence[str], given: argparse.Namespace
) -> tuple[Turns, Turns]:
    """Return the results of alternating periods without and with saved questions.

    Both kinds of period send the same questions at the same times.
    """
    alone, beside = Turns(), Turns()
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:
        answers = []
        for question in questions:
            reply = await http.post("/v1/answer", json={"question": question, "system": "citeray"})
            answers.append(reply.raise_for_status().json())
        save_due(saved, questions, answers, given.saved)
        for number in range(given.rounds):
            # Alternate which kind comes first, so that a drift favours neither.
            for held in (True, False) if number % 2 == 0 else (False, True):
                hold_back(saved, held)
                await asyncio.sleep(SETTLE_S)
                before = count_checks(saved)
                found = await drive(http, questions, given.rate, given.seconds, number)
                found.beside = count_checks(saved) - before
                if held and found.beside:
                    raise SystemExit(f"{found.beside} saved questions were asked in a pause")
                tell(f"round {number + 1}, {'alone' if held else 'beside'}", found)
                total = alone if held else beside
                total.seconds += found.seconds
                total.beside += found.beside
                total.failed += found.failed
                total.degraded += found.degraded
    return alone, beside


def tell(what: str, found: Turns) -> None:
    p50, p95 = np.percentile(found.seconds, (50, 95)) * 1000
    print(
        f"{what}: {len(found.seconds)} questions, p50 {p50:.0f} ms, p95 {p95:.0f} ms; "
        f"{found.beside} saved ones asked; {found.degraded} degraded, {found.failed} failed",
        flush=True,
    )


def main() -> None:
    parser = question_parser(__doc__, limit=40)
    parser.add_argument("--saved", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    given = parse_arguments(parser, SMALLEST)
    questions = [row["body"] for row in asked(given)]
    with tempfile.TemporaryDirectory() as folder:
        saved = saved_at(Path(folder))
        url = f"serve.saved.url=sqlite:///{folder}/saved/citeray.db"
        with served_graph(overrides(given, "llm.kind=none", url)) as graph:
            alone, beside = asyncio.run(measure(graph.url, saved, questions, given))
    tell("alone", alone)
    tell("beside", beside)
    ratio = np.percentile(beside.seconds, 95) / np.percentile(alone.seconds, 95)
    print(f"ratio of the 95th percentiles: {ratio:.2f}")


if __name__ == "__main__":
    main()
