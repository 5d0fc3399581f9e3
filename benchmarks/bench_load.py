"""Measure how the graph behaves for minutes under more load than it can answer.

    python -m benchmarks.bench_load QUESTIONS.json --index INDEX [--minutes 10] [--times 2]
        [--seed 0] [--set ...]

First measures the capacity in requests per second (32 callers for `--probe-s` seconds). Then sends
`--times` that rate with Poisson arrivals and mixed presets, and one batch of questions a minute.
Every request must end in an answer, a stated degradation, or 429/503 with Retry-After, and every
batch with its run. Prints these counts, the latency of accepted requests in seconds, and the
anonymous memory of all processes with its slope over the second half (Theil-Sen, with confidence
interval). `python -m tests.faults --on-ray --kinds serving` kills replicas under load.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import numpy as np
from scipy.stats import theilslopes

from benchmarks.questions import asked, overrides, question_parser
from benchmarks.served_graph import Graph, served_graph
from benchmarks.smallest import parse_arguments

SMALLEST = "QUESTIONS --index INDEX --minutes 0.1 --probe-s 3"

# Number of requests out of ten for each preset.
MIX = (("citeray", 5), ("hybrid", 2), ("bm25", 1), ("dense", 1), ("auto", 1))
ANSWERS = 0.5
SAMPLE_S = 5.0
POLL_S = 0.1
JOB_EVERY_S, JOBS_END_S = 60.0, 600.0
DEADLINE_S = 60.0


@dataclass
class Outcomes:
    ends: Counter[str] = field(default_factory=Counter)
    accepted_s: list[float] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    memory: list[tuple[float, Counter[str]]] = field(default_factory=list)
    losses: Counter[str] = field(default_factory=Counter)
    jobs: list[str] = field(default_factory=list)
    job_ends: Counter[str] = field(default_factory=Counter)


def requests_of(questions: list[str], seed: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield an endless sequence of random requests as (path, body)."""
    chance = random.Random(seed)
    systems = [name for name, times in MIX for _ in range(times)]
    while True:
        path = "/v1/answer" if chance.random() < ANSWERS else "/v1/search"
        yield path, {"question": chance.choice(questions), "system": chance.choice(systems)}


async def send(
    http: httpx.AsyncClient, path: str, body: dict[str, object], found: Outcomes
) -> None:
    """Send a request and record how it ended."""
    begun = time.monotonic()
    try:
        reply = await http.post(path, json=body)
    except httpx.HTTPError as error:
        found.ends["lost"] += 1
        found.odd.append(repr(error))
    else:
        note(reply, found, begun)


def note(reply: httpx.Response, found: Outcomes, begun: float) -> None:
    if reply.status_code == 200:
        found.accepted_s.append(time.monotonic() - begun)
        losses = reply.json()["degraded"]
        found.losses.update(losses)
        found.ends["degraded" if losses else "answered"] += 1
    elif reply.status_code in (429, 503) and "Retry-After" in reply.headers:
        found.ends[f"{reply.status_code} with Retry-After"] += 1
    else:
        found.ends[f"{reply.status_code}"] += 1
        found.odd.append(f"{reply.status_code} {reply.text[:150]!r}")


async def capacity(http: httpx.AsyncClient, questions: list[str], seconds: float) -> float:
    """Return the accepted requests per second of 32 callers without pauses."""
    found, end = Outcomes(), time.monotonic() + seconds
    endless = requests_of(questions, 1)

    async def caller() -> None:
        while time.monotonic() < end:
            before = len(found.accepted_s)
            await send(http, *next(endless), found)
            if len(found.accepted_s) == before:
                await asyncio.sleep(1)

    await asyncio.gather(*(caller() for _ in range(32)))
    return len(found.accepted_s) / seconds


async def watch(graph: Graph, found: Outcomes, begun: float) -> None:
    while True:
        memory = await asyncio.to_thread(graph.anonymous_mib)
        found.memory.append((time.monotonic() - begun, memory))
        await asyncio.sleep(SAMPLE_S)


async def send_jobs(http: httpx.AsyncClient, questions: list[str], found: Outcomes) -> None:
    """Send a batch of five questions every minute."""
    for number in itertools.count():
        bodies = [questions[(5 * number + n) % len(questions)] for n in range(5)]
        rows = [{"id": f"q{n}", "type": "summary", "body": body} for n, body in enumerate(bodies)]
        reply = await http.post("/v1/batches", json={"id": f"load{number}", "questions": rows})
        if reply.is_success:
            found.jobs.append(f"load{number}")
        else:
            note(reply, found, 0.0)
        await asyncio.sleep(JOB_EVERY_S)


async def await_jobs(http: httpx.AsyncClient, found: Outcomes) -> None:
    """Wait for the batches, and count them by final state and number of failed questions."""
    end = time.monotonic() + JOBS_END_S
    for job in found.jobs:
        status = {"state": "waiting"}
        while status["state"] in ("waiting", "running") and time.monotonic() < end:
            reply = await http.get(f"/v1/batches/{job}")
            status = reply.json() if reply.is_success else {"state": f"{reply.status_code}"}
            await asyncio.sleep(POLL_S)
        failed = len(status.get("failed", ()))
        found.job_ends[f"{status['state']}, {failed} failed" if failed else status["state"]] += 1


async def overload(
    graph: Graph, questions: list[str], given: argparse.Namespace, rate: float
) -> Outcomes:
    found, chance = Outcomes(), random.Random(given.seed)
    begun = time.monotonic()
    limits = httpx.Limits(max_connections=2000, max_keepalive_connections=100)
    async with httpx.AsyncClient(base_url=graph.url, timeout=120, limits=limits) as http:
        beside = [
            asyncio.create_task(watch(graph, found, begun)),
            asyncio.create_task(send_jobs(http, questions, found)),
        ]
        sent = []
        endless = requests_of(questions, given.seed)
        while time.monotonic() - begun < given.minutes * 60:
            sent.append(asyncio.create_task(send(http, *next(endless), found)))
            await asyncio.sleep(chance.expovariate(rate))
        await asyncio.gather(*sent)
        for task in beside:
            task.cancel()
        await await_jobs(http, found)
    return found


def tell(found: Outcomes) -> None:
    print(f"{sum(found.ends.values())} requests: {dict(found.ends.most_common())}")
    print(f"batches of 5 questions: {dict(found.job_ends)}")
    p50, p95, p99 = np.percentile(found.accepted_s, (50, 95, 99))
    print(f"accepted: p50 {p50:.2f} s, p95 {p95:.2f} s, p99 {p99:.2f} s (deadline {DEADLINE_S} s)")
    half = found.memory[len(found.memory) // 2 :]
    held = [memory for _, memory in half]
    minutes: dict[int, list[int]] = {}
    for at, memory in half:
        minutes.setdefault(int(at // 60), []).append(sum(memory.values()))
    mean = statistics.mean(sum(memory.values()) for memory in held)
    # Use the median of each minute: samples within a minute are not independent.
    slope, _, low, high = theilslopes(
        [statistics.median(mib) for mib in minutes.values()], list(minutes)
    )
    print(
        f"anonymous memory of all processes: {mean:,.0f} MiB, {slope:+.1f} MiB a minute in the "
        f"second half (95% interval {low:+.1f} to {high:+.1f})"
    )
    for kind, mib in held[-1].most_common(6):
        print(
            f"  {kind}: {found.memory[0][1][kind]}, {held[0][kind]}, {mib} MiB (begin, half, end)"
        )
    for loss, count in found.losses.most_common(5):
        print(f"  {count} x {loss}")
    for odd, count in Counter(found.odd).most_common(5):
        print(f"  {count} x {odd}")


def main() -> None:
    parser = question_parser(__doc__, limit=200)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--times", type=float, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--probe-s", type=float, default=30, help="seconds to measure capacity")
    given = parse_arguments(parser, SMALLEST)
    questions = [row["body"] for row in asked(given)]

    async def run(graph: Graph) -> Outcomes:
        async with httpx.AsyncClient(base_url=graph.url, timeout=120) as http:
            rate = await capacity(http, questions, given.probe_s)
        print(f"answers {rate:.1f} requests a second; sends {given.times * rate:.1f}", flush=True)
        return await overload(graph, questions, given, given.times * rate)

    with tempfile.TemporaryDirectory() as folder:
        settings = overrides(given, "llm.kind=none", f"serve.batches.folder={folder}")
        with served_graph(settings) as graph:
            tell(asyncio.run(run(graph)))


if __name__ == "__main__":
    main()
