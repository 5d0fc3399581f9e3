"""Compare the quality and latency of `auto` under several time budgets with fixed presets.

    python -m benchmarks.bench_budget QUESTIONS.json --index INDEX [--limit 100]
        [--budget 0 --budget 50] [--system citeray]

Searches in this process, one question at a time. Each system first answers up to ten warm-up
questions. Prints documents MAP@10, the latency of a search in milliseconds (mean, median, 95th
percentile), the number of searches over budget, and how often each cascade step was the last.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence

import numpy as np

from benchmarks.questions import Row, asked, average_precision, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.answers import Question
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from serve.contracts.request import Request
from serve.graph.local_graph import local_answerer
from serve.pipeline.answer_question import QuestionAnswerer

SMALLEST = "QUESTIONS --index INDEX --limit 3 --budget 50 --system citeray"

BUDGETS = [30, 60, 150, 450, 0]
SYSTEMS = ["dense", "bm25", "hybrid", "citeray"]
WARM = 10
FOUND = 10


async def measure(
    answerer: QuestionAnswerer, rows: Sequence[Row], name: str, budget_ms: int
) -> str:
    """Measure a system and return its row of the table."""
    system = load_system(name)
    precision, took, rungs = [], [], Counter[str]()
    warm = rows[:WARM]
    for number, row in enumerate([*warm, *rows]):
        question = Question(row["id"], row["body"], row["type"], budget_ms=budget_ms)
        found = await answerer.search(Request(question, system, FOUND))
        if number < len(warm) or found.spent is None:
            continue
        precision.append(average_precision(row, (c.pmid for c in found.citations)))
        took.append(found.spent.ms)
        rungs[" > ".join(found.spent.rungs)] += 1
    p50, p95 = np.percentile(took, (50, 95))
    budget = f"{budget_ms} ms" if budget_ms else "none"
    over = sum(ms > budget_ms for ms in took) if budget_ms else 0
    steps = ", ".join(f"{rung} {count}" for rung, count in rungs.most_common() if rung) or "-"
    return (
        f"| `{name}` | {budget} | {np.mean(precision):.3f} | {np.mean(took):.0f} | {p50:.0f}, "
        f"{p95:.0f} | {over} | {steps} |"
    )


async def compare(given: argparse.Namespace) -> None:
    answerer = local_answerer(load_settings(given.config, overrides(given, "llm.kind=none")))
    rows = asked(given)
    print(f"{len(rows)} questions\n")
    print("| system | budget | MAP@10 | mean ms | p50, p95 ms | over budget | rungs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.system or SYSTEMS:
        print(await measure(answerer, rows, name, 0), flush=True)
    for budget in BUDGETS if given.budget is None else given.budget:
        print(await measure(answerer, rows, "auto", budget), flush=True)


def main() -> None:
    parser = question_parser(__doc__)
    parser.add_argument(
        "--budget", type=int, action="append", help="budget in ms (0: none); repeatable"
    )
    parser.add_argument("--system", action="append", help="fixed preset; repeatable")
    asyncio.run(compare(parse_arguments(parser, SMALLEST)))


if __name__ == "__main__":
    main()
