"""Measure how long all BioASQ measures of a large run take, confidence intervals included.

    python -m benchmarks.bench_evaluate [QUESTIONS]

Generates 5,000 questions with 10 documents, 10 snippets, exact answers and ideal answers (150
words, two references) each, and a run over them. Prints the seconds spent on reading, scoring and
the bootstrap, on one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.smallest import parse_arguments
from evaluation.bioasq.evaluate_bioasq import evaluate_bioasq, read_answers, read_benchmark
from evaluation.bootstrap import RESAMPLES, intervals

SMALLEST = "40"

WORDS = [f"word{n}" for n in range(500)]
EXACT: dict[str, Any] = {
    "yesno": ["yes", "no"],
    "factoid": [[["a", "b"]], [["c"], ["a"]]],
    "list": [[["a"], ["b"], ["c"]], [["a"], ["d"]]],
    "summary": [None],
}


def entry(number: int, rng: random.Random, references: int) -> dict[str, Any]:
    kind = list(EXACT)[number % 4]
    documents = [f"http://www.ncbi.nlm.nih.gov/pubmed/{n}" for n in rng.sample(range(40), 10)]
    snippets = []
    for document in rng.choices(documents, k=10):
        begin = rng.randrange(1500)
        snippets.append(
            {
                "document": document,
                "beginSection": "abstract",
                "endSection": "abstract",
                "offsetInBeginSection": begin,
                "offsetInEndSection": begin + rng.randrange(50, 400),
                "text": "",
            }
        )
    row = {"id": str(number), "type": kind, "body": "?", "documents": documents}
    ideal = [" ".join(rng.choices(WORDS, k=150)) for _ in range(references)]
    return {
        **row,
        "snippets": snippets,
        "exact_answer": rng.choice(EXACT[kind]),
        "ideal_answer": ideal,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=int, nargs="?", default=5000)
    measure(parse_arguments(parser, SMALLEST).questions)


def measure(questions: int) -> None:
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        paths = [Path(folder) / name for name in ("gold.json", "run.json")]
        for path, references in zip(paths, (2, 1), strict=True):
            rows = [entry(n, rng, references) for n in range(questions)]
            path.write_text(json.dumps({"questions": rows}))
        begun = time.perf_counter()
        benchmark = read_benchmark(paths[0])
        run = read_answers(paths[1], benchmark)
        read = time.perf_counter()
        scores = evaluate_bioasq(run, benchmark).scores
        scored = time.perf_counter()
        intervals(scores)
        done = time.perf_counter()
    print(
        f"{questions:,} questions: read {read - begun:.1f} s, score {scored - read:.1f} s, "
        f"{RESAMPLES:,} resamples {done - scored:.1f} s, all {done - begun:.1f} s"
    )


if __name__ == "__main__":
    main()
