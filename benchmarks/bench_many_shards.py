"""Measure the cost of a question by the number of shards: messages, bytes and time.

    python -m benchmarks.bench_many_shards [--shards 1 4 16 64] [--citations 6400]

Indexes generated citations in each number of shards, with stand-in vectors, and searches with the
preset `citeray` in this process; every call of a stage is pickled and unpickled in both directions
as between processes. Prints messages, kilobytes, CPU milliseconds of the event loop, and
milliseconds per question (median and 99th percentile of `--questions`), then the latter with one
shard that takes five seconds and is left out at its deadline of two seconds. The event loop does
the gateway's work and the pickling; stages work in threads, and Ray takes no part.
"""

from __future__ import annotations

import argparse
import asyncio
import pickle
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from pipelines.sample.generate_citations import generate_citations
from serve.contracts.backend import Backend, BackendWrapper, shard_stage
from serve.contracts.request import Request
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve.small_graph import make_answerer

SMALLEST = "--shards 1 2 --citations 40 --questions 5"

SYSTEM = "citeray"
SLOW_S, DEADLINE_S = 5.0, 2.0


class Wire(BackendWrapper):
    """Backend wrapper that pickles the arguments and results of each call and counts them."""

    def __init__(self, backend: Backend, slow: str = "") -> None:
        super().__init__(backend)
        self.messages = self.bytes = 0
        self._slow = slow

    def _sent(self, value: Any) -> Any:
        data = pickle.dumps(value, protocol=5)
        self.messages += 1
        self.bytes += len(data)
        return pickle.loads(data)

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        if stage == self._slow:
            await asyncio.sleep(SLOW_S)
        return self._sent(await super().call(stage, method, *self._sent(arguments)))


async def ask(answerer: QuestionAnswerer, bodies: Sequence[str]) -> tuple[list[float], list[str]]:
    """Return the milliseconds of each question, and the distinct coverage texts of the replies."""
    system, took, coverages = load_system(SYSTEM), [], set()
    for body in bodies:
        begun = time.perf_counter()
        found = await answerer.search(Request(Question("", body), system, 10))
        took.append(1e3 * (time.perf_counter() - begun))
        coverages.add(found.coverage)
    return took, sorted(coverages)


def spread(took: Sequence[float]) -> str:
    return f"{np.median(took):.0f} | {np.percentile(took, 99):.0f}"


def in_process(shards: int, citations: int, bodies: Sequence[str]) -> str:
    serve = load_settings().serve
    with tempfile.TemporaryDirectory() as folder:
        made = list(generate_citations(citations))
        built = make_answerer(Path(folder), made, shards=shards, late=True)
        backend = built.backend
        wire = Wire(backend)
        asyncio.run(ask(QuestionAnswerer(Wire(backend), serve), bodies[:5]))
        begun = time.thread_time()
        took, _ = asyncio.run(ask(QuestionAnswerer(wire, serve), bodies))
        gateway_s = time.thread_time() - begun
        without = "- | - | -"
        if shards > 1:
            short = serve.shard.model_copy(update={"deadline_s": DEADLINE_S})
            slow = Wire(backend, shard_stage(0))
            late = QuestionAnswerer(slow, serve.model_copy(update={"shard": short}))
            others, coverages = asyncio.run(ask(late, bodies[:20]))
            without = f"{spread(others)} | {', '.join(coverages)}"
    each = f"{wire.messages / len(bodies):.0f} | {wire.bytes / len(bodies) / 1e3:,.0f}"
    each += f" | {1e3 * gateway_s / len(bodies):.1f}"
    return f"| {shards} | {each} | {spread(took)} | {without} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--citations", type=int, default=6_400)
    parser.add_argument("--questions", type=int, default=200)
    given = parse_arguments(parser, SMALLEST)
    bodies = [c.title for c in generate_citations(given.questions, first_pmid=50_000_001)]
    names = ("shards", "messages", "kB", "gateway CPU ms", "median ms", "p99")
    print(f"| {' | '.join(names)} | one slow: median ms | p99 | coverage |")
    print(f"| {' | '.join(['---'] * 9)} |")
    for shards in given.shards:
        print(in_process(shards, given.citations, bodies), flush=True)


if __name__ == "__main__":
    main()
