"""Compare the latency that `citeray plan` simulates with that of a served graph.

    python -m benchmarks.bench_simulation QUESTIONS.json --index INDEX [--rates 2 5 10]
        [--seconds 60] [--calibration FILE]

Sends searches with Poisson arrivals to a served graph without a language model and prints the
median and 95th percentile latency in milliseconds, predicted and measured, for each rate. All
stages share one machine, so the prediction adds a queue for its cores that holds the core seconds
of all stages.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np
import psutil

from benchmarks.bench_graph import read
from benchmarks.served_graph import served_graph
from benchmarks.smallest import parse_arguments
from cluster.index.manifest import read_manifest
from cluster.settings.settings import load_settings
from planning.measure.coefficients import Point, read_coefficients
from planning.measure.watch_processes import usable_cpus
from planning.place_workers import Ask
from planning.plan import make_plan
from planning.simulation.queues import NO_LOSS, lognormal, serve_batches
from planning.simulation.simulate import Station, pass_through, stations

SMALLEST = "QUESTIONS --index INDEX --rates 2 --seconds 3"

WARM_UP = 10
SIMULATED = 20_000


def core_seconds(line: Sequence[Station], threads: int) -> float:
    """Return the core seconds of one question in all stages and shards."""
    busy = {s.name: s.parts * s.points[0].median_seconds for s in line}
    return sum(seconds * (threads if name == "encoder" else 1) for name, seconds in busy.items())


def predict(index: Path, rate: float, calibration: Path | None) -> tuple[float, float]:
    """Predict (p50, p95) in seconds of searches at `rate` per second on this machine's cores."""
    found, manifest = read_coefficients(calibration), read_manifest(index)
    settings = load_settings(overrides=["llm.kind=none"])
    ask = Ask(manifest.citations, rate, 60.0, shards=len(manifest.shards))
    line = stations(found, settings, make_plan(found, settings, ask))
    arrivals = np.cumsum(np.random.default_rng(0).exponential(1 / rate, SIMULATED))
    left, _ = pass_through(arrivals, line, [NO_LOSS] * len(line), 0)
    each = core_seconds(line, found.encoder_threads)
    work = (Point(concurrent=1, median_seconds=each, p95_seconds=each),)
    draw = lognormal(work, np.random.default_rng(1))
    waits = serve_batches(arrivals, usable_cpus(), 1, draw, math.inf).begun - arrivals
    p50, p95 = np.quantile(left - arrivals + waits, (0.5, 0.95))
    return float(p50), float(p95)


async def measure(url: str, questions: list[str], rate: float, seconds: float) -> list[float]:
    """Return the seconds of each search; unanswered ones count as infinite."""
    chance, took = random.Random(0), []
    async with httpx.AsyncClient(base_url=url, timeout=120) as http:

        async def ask(body: str) -> None:
            begun = time.perf_counter()
            reply = await http.post("/v1/search", json={"question": body, "system": "citeray"})
            took.append(time.perf_counter() - begun if reply.status_code == 200 else math.inf)

        for body in questions[:WARM_UP]:
            await ask(body)
        took.clear()
        sent, begun = [], time.perf_counter()
        while time.perf_counter() - begun < seconds:
            sent.append(asyncio.create_task(ask(chance.choice(questions))))
            await asyncio.sleep(chance.expovariate(rate))
        await asyncio.gather(*sent)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--rates", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--calibration", type=Path)
    given = parse_arguments(parser, SMALLEST)
    index = given.index.resolve()
    questions = read(given.questions, 400)
    print("| searches a second | p50 predicted | measured | p95 predicted | measured | load |")
    print("| --- | --- | --- | --- | --- | --- |")
    with served_graph([f"index.path={index}", "llm.kind=none"]) as graph:
        for rate in given.rates:
            took = asyncio.run(measure(graph.url, questions, rate, given.seconds))
            p50, p95 = predict(index, rate, given.calibration)
            found = np.quantile(took, (0.5, 0.95))
            load = psutil.getloadavg()[0]
            print(
                f"| {rate:g} | {p50 * 1000:.0f} ms | {found[0] * 1000:.0f} ms "
                f"| {p95 * 1000:.0f} ms | {found[1] * 1000:.0f} ms | {load:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
