"""Measure what the Serve graph adds to its stages: start, idle memory, latency, throughput.

    python -m benchmarks.bench_graph QUESTIONS.json --index INDEX [--limit 60] [--set ...]

Latency: milliseconds of each question sent once over HTTP, one at a time, compared with the same
stages called in this process. Throughput: questions per second and CPU use for `--requests`
questions by 1, 8, 16 and 32 concurrent callers, with the batches of the stages and with batches of
one.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil

from benchmarks.questions import asked, overrides, question_parser
from benchmarks.served_graph import Graph, served_graph
from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from serve.contracts.request import Request
from serve.graph.local_graph import local_answerer

SMALLEST = "QUESTIONS --index INDEX --limit 6 --requests 4 --set llm.kind=none"

SYSTEMS = ("dense", "hybrid", "citeray")
CALLERS = (1, 8, 16, 32)
STAGES = ("expand", "encode", "statistics", "retrieve", "fetch", "rerank", "read")


def ask(http: httpx.Client, question: str, system: str) -> float:
    """Return the milliseconds of one request."""
    begun = time.perf_counter()
    reply = http.post("/v1/search", json={"question": question, "system": system})
    reply.raise_for_status()
    return (time.perf_counter() - begun) * 1000


def in_process(questions: list[str], settings: list[str]) -> dict[str, float]:
    """Return the median milliseconds of the stages by system, called directly in this process."""
    answerer = local_answerer(load_settings(overrides=settings))
    medians = {}
    for name in SYSTEMS:
        system = load_system(name)
        took, warm = [], questions[:5]
        for number, body in enumerate([*warm, *questions]):
            found = asyncio.run(answerer.search(Request(Question("", body), system, 10)))
            if number >= len(warm):
                took.append(sum(found.timings_ms.get(stage, 0.0) for stage in STAGES))
        medians[name] = statistics.median(took)
    return medians


def latencies(graph: Graph, questions: list[str]) -> dict[str, tuple[float, float]]:
    """Return (median, 95th percentile) of the milliseconds of a request by system."""
    with httpx.Client(base_url=graph.url, timeout=120) as http:
        found = {}
        for name in SYSTEMS:
            for body in questions[:5]:
                ask(http, body, name)
            took = [ask(http, body, name) for body in questions]
            found[name] = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    return found


def throughput(graph: Graph, questions: list[str], requests: int) -> dict[int, tuple[float, float]]:
    """Return (requests per second, CPU utilisation of the machine) by number of callers.

    Each number of callers asks different questions, so that no passage is cached.
    """
    found = {}
    turn = itertools.cycle(questions)
    with httpx.Client(base_url=graph.url, timeout=300) as http:
        for callers in CALLERS:
            bodies = list(itertools.islice(turn, requests))
            psutil.cpu_percent()
            begun = time.perf_counter()
            with ThreadPoolExecutor(callers) as pool:
                list(pool.map(lambda body: ask(http, body, "citeray"), bodies))
            rate = requests / (time.perf_counter() - begun)
            found[callers] = rate, psutil.cpu_percent() / 100
    return found


def main() -> None:
    parser = question_parser(__doc__, limit=60)
    parser.add_argument("--requests", type=int, default=64)
    given = parse_arguments(parser, SMALLEST)
    first = given.limit
    given.limit += len(CALLERS) * given.requests
    bodies = [row["body"] for row in asked(given)]
    questions, others = bodies[:first], bodies[first:]
    # Reject no requests, so that only the stages limit the throughput.
    settings = overrides(given, "serve.http.at_once=64", "serve.http.wait_s=200")
    with served_graph(settings) as graph:
        print("ready after", {stage: f"{s:.0f} s" for stage, s in graph.started.items()})
        time.sleep(10)
        held = graph.memory_mib()
        print(f"idle memory {sum(held.values()):,} MiB: {dict(held.most_common())}")
        over_http = latencies(graph, questions)
        batched = throughput(graph, others, given.requests)
    own = in_process(questions, [*settings, "llm.kind=none"])
    print("\n| system | over HTTP, median ms | 95th percentile | stages alone, median |")
    print("| --- | --- | --- | --- |")
    for name in SYSTEMS:
        middle, high = over_http[name]
        print(f"| `{name}` | {middle:.0f} | {high:.0f} | {own[name]:.0f} |")
    alone = ["llm.kind=none", "serve.encoder.batch=1", "serve.reranker.batch=1"]
    with served_graph([*settings, *alone]) as graph:
        single = throughput(graph, others, given.requests)
    print("\n| callers | requests a second | cores at work | with batches of one | cores |")
    print("| --- | --- | --- | --- | --- |")
    for callers in CALLERS:
        cells = [f"{rate:.2f} | {busy:.0%}" for rate, busy in (batched[callers], single[callers])]
        print(f"| {callers} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
