"""Measure latency and sentence support of the answers of a running endpoint.

    citeray serve --set index.path=DIR &
    python -m benchmarks.bench_answers QUESTIONS.json [--system NAME] [--limit 20]
        [--url http://127.0.0.1:8000 | --index INDEX] [--set support.kind=nli]

With `--index`, the benchmark serves that index itself. Prints every question with its answer; the
median latency in milliseconds of retrieval with reranking and of the whole answer; and the number
of sentences that a passage of their own citations supports, scored again by the support scorer and
threshold of the settings.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from benchmarks.served_graph import served_graph
from benchmarks.smallest import parse_arguments
from cluster.settings.settings import load_settings
from serve.formats.bioasq import read_questions
from serve.graph.load_stages import load_scorer
from serve.support.attribute_sentences import SupportScorer

SMALLEST = "QUESTIONS --index INDEX --limit 2 --set llm.kind=none"


def unsupported(answer: Mapping[str, Any], scorer: SupportScorer, threshold: float) -> list[str]:
    """Return the sentences that no cited passage supports with a score of at least `threshold`."""
    found = []
    for sentence in answer["ideal"]:
        passages = [item["passage"] for item in answer["evidence"]]
        cited = [p["text"] for p in passages if p["pmid"] in sentence["pmids"]]
        supports = scorer.score([(text, sentence["text"]) for text in cited])
        if max((support.score for support in supports), default=0.0) < threshold:
            found.append(sentence["text"])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--system")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--index", type=Path, help="serve this index instead of using --url")
    arguments = parse_arguments(parser, SMALLEST)
    if arguments.index is None:
        measure(arguments, arguments.url)
        return
    with served_graph([f"index.path={arguments.index.resolve()}", *arguments.overrides]) as graph:
        measure(arguments, graph.url)


def measure(arguments: argparse.Namespace, url: str) -> None:
    settings = load_settings(overrides=arguments.overrides)
    scorer, threshold = load_scorer(settings), settings.support.threshold
    searches, wholes, generated, said, bare = [], [], 0, 0, []
    for question in read_questions(arguments.questions)[: arguments.limit]:
        begun = time.perf_counter()
        request = {"question": question.body, "type": question.type, "system": arguments.system}
        reply = httpx.post(f"{url}/v1/answer", json=request, timeout=120)
        wholes.append((time.perf_counter() - begun) * 1000)
        answer = reply.raise_for_status().json()
        timings = answer["timings_ms"]
        searches.append(sum(ms for stage, ms in timings.items() if stage != "write"))
        generated += answer["origin"] == "generated"
        said += len(answer["ideal"])
        bare += unsupported(answer, scorer, threshold)
        print(f"{question.type}: {question.body}\n  exact: {answer['exact']}")
        for sentence in answer["ideal"]:
            print(f"  {sentence['text']} {sentence['pmids']}")
    print(f"{len(wholes)} answers, {generated} written by the model")
    print(f"{said - len(bare)} of {said} sentences supported by a passage that they cite")
    for sentence in bare:
        print(f"  not supported: {sentence}")
    print(f"retrieval + rerank: median {statistics.median(searches):.0f} ms")
    print(f"whole answer: median {statistics.median(wholes):.0f} ms, most {max(wholes):.0f} ms")


if __name__ == "__main__":
    main()
