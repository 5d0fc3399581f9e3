"""Measure yes/no answers on whole abstracts: PubMedQA's questions, and findings of trials.

    python -m benchmarks.bench_stances --index INDEX --questions questions.json [--ids IDS.json]
    python -m benchmarks.bench_stances --index INDEX --findings trials.jsonl [--every 5]
        [--limit N] [--set KEY=VALUE]

The index must hold the articles. A finding is asked as a question drawn by seed from templates;
`--every N` asks only the findings of articles whose PMID is a multiple of N, which
`citeray train reader` should not have seen. `--ids` limits the questions to a JSON list of ids,
such as one fold of a cross-validation. Prints accuracy and macro F1 of the best guess ("maybe" is
left out), the share right among the most certain answers ("maybe" counts as wrong), and the
coverage and the wrong share of the answers that are stated.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.smallest import parse_arguments
from cluster.settings.settings import load_settings
from commands.options import open_client
from pipelines.train.reader.abstracts import ask_of, read_findings
from pipelines.train.reader.measure_reader import macro_f1
from pipelines.train.reader.records import YES

SMALLEST = "--index INDEX --questions QUESTIONS --limit 2"
COVERAGES = (0.3, 0.5, 0.6, 0.7, 0.9)


def asked(arguments: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield each question with its answer: yes, no or maybe."""
    if arguments.findings:
        draw = random.Random(arguments.seed)
        for finding in read_findings(arguments.findings):
            if finding.in_abstract and finding.pmid % arguments.every == 0:
                question, stance = ask_of(finding, draw)
                yield question, "yes" if stance == YES else "no"
        return
    ids = set(json.loads(arguments.ids.read_text())) if arguments.ids else None
    for row in json.loads(arguments.questions.read_text(encoding="utf-8"))["questions"]:
        if row.get("type", "yesno") == "yesno" and (ids is None or row["id"] in ids):
            yield row.get("question") or row["body"], row.get("answer") or row["exact_answer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--ids", type=Path)
    parser.add_argument("--every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    arguments = parse_arguments(parser, SMALLEST)
    fixed = [f"index.path={arguments.index}", "llm.kind=none"]
    settings = load_settings(None, [*fixed, *arguments.overrides])
    results = []
    with open_client(settings, answers=True) as client:
        for question, gold in list(asked(arguments))[: arguments.limit]:
            reply = client.answer({"question": question, "type": "yesno", "guess": True})
            results.append((gold, reply))
    report(results)


def report(results: list[tuple[str, dict[str, Any]]]) -> None:
    said = [
        (gold, (reply["guess"] or reply)["exact"], reply["confidence"]) for gold, reply in results
    ]
    sided = [(gold == "yes", exact == "yes") for gold, exact, _ in said if gold in ("yes", "no")]
    right = sum(gold == exact for gold, exact in sided) / max(1, len(sided))
    print(f"{len(said)} questions: accuracy {right:.3f}, macro F1 {macro_f1(sided):.3f}")
    ranked = sorted(said, key=lambda row: -row[2])
    for share in COVERAGES:
        first = ranked[: max(1, round(share * len(ranked)))]
        correct = sum(gold == exact for gold, exact, _ in first) / len(first)
        print(f"  right among the most certain {share:.0%}: {correct:.3f}")
    stated = [(gold, reply["exact"]) for gold, reply in results if reply["verdict"] == "answered"]
    wrong = sum(gold != exact for gold, exact in stated)
    mixed = sum(reply["verdict"] == "mixed" for _, reply in results)
    share = wrong / max(1, len(stated))
    print(f"  stated {len(stated)}, wrong {wrong} ({share:.3f}), mixed {mixed}")


if __name__ == "__main__":
    main()
