"""Search and ask on a running endpoint, over every second question of the sample corpus.

    citeray serve --set index.path=DIR &
    python -m tests.bench.bench_answers QUESTIONS.json [--url http://127.0.0.1:8000]

Prints the median milliseconds of retrieval with reranking and of the whole answer, and
each question with its answer, to be read.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import httpx

from serve.formats.bioasq import read_questions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    arguments = parser.parse_args()
    searches, wholes, generated = [], [], 0
    for question in read_questions(arguments.questions)[::2]:
        begun = time.perf_counter()
        request = {"question": question.body, "type": question.type}
        reply = httpx.post(f"{arguments.url}/v1/answer", json=request, timeout=120)
        wholes.append((time.perf_counter() - begun) * 1000)
        answer = reply.raise_for_status().json()
        timings = answer["timings_ms"]
        searches.append(sum(ms for stage, ms in timings.items() if stage != "write"))
        generated += answer["origin"] == "generated"
        print(f"{question.type}: {question.body}\n  exact: {answer['exact']}")
        for sentence in answer["ideal"]:
            print(f"  {sentence['text']} {sentence['pmids']}")
    print(f"{len(wholes)} answers, {generated} written by the model")
    print(f"retrieval + rerank: median {statistics.median(searches):.0f} ms")
    print(f"whole answer: median {statistics.median(wholes):.0f} ms, most {max(wholes):.0f} ms")


if __name__ == "__main__":
    main()
