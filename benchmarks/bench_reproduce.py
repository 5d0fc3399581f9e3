"""Measure how long `citeray reproduce` takes for all papers at small scale.

    python -m benchmarks.bench_reproduce [--limit 20] [--papers 003 004]

Asks `--limit` questions of the sample corpus, balanced by type, with a local PubMed server that
searches that corpus. Prints the seconds of each paper and their sum. The target is 25 minutes on
two cores for 20 questions and all five papers together.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from benchmarks.bench_systems import Row, local_pubmed, sample_by_type
from benchmarks.smallest import parse_arguments
from cluster.settings.presets import system_names
from evaluation.reproduce.read_paper import paper_names, read_paper
from pipelines.sample.write_sample import write_sample
from tests.end_to_end.command import BIN, run, with_settings

SMALLEST = "--limit 1 --papers 003"

AT_MOST_S = 3600


def write_questions(rows: list[Row], folder: Path) -> tuple[Path, Path]:
    """Write the questions in BioASQ's format and as topics of BioGen's task B."""
    bioasq, biogen = folder / "questions.json", folder / "topics.jsonl"
    bioasq.write_text(json.dumps({"questions": rows}), encoding="utf-8")
    topics = ({"topic_id": row["id"], "question": row["body"]} for row in rows)
    biogen.write_text("".join(f"{json.dumps(topic)}\n" for topic in topics), encoding="utf-8")
    return bioasq, biogen


def reproduce(
    number: str, questions: Path, folder: Path, more: list[str], overrides: list[str]
) -> float:
    """Run `citeray reproduce`, print each system's degradations, and return the seconds."""
    command = [str(BIN / "citeray"), "reproduce", number, "--scale", "small", "--json"]
    command += ["--questions", str(questions), "--gold", str(questions)]
    command += ["--corpus", str(folder / "sample"), "--output", str(folder / number), *more]
    begun = time.monotonic()
    done = run(with_settings(command, overrides), timeout_s=AT_MOST_S, cwd=folder)
    spent = time.monotonic() - begun
    if done.returncode:
        raise SystemExit(f"paper {number}: {done.stderr}")
    for system, losses in json.loads(done.stdout)["degraded"].items():
        for loss, count in losses.items():
            print(f"  {system}: {count} questions: {loss}")
    print(f"{number}: {spent:.0f} s", flush=True)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=20, help="questions")
    parser.add_argument("--concurrent", default="20")
    parser.add_argument("--papers", nargs="*", default=paper_names())
    args = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        sample = write_sample(folder / "sample")
        rows = json.loads(sample.questions.read_text(encoding="utf-8"))["questions"]
        bioasq, biogen = write_questions(sample_by_type(rows, args.limit, seed=42), folder)
        with local_pubmed(folder / "sample", system_names()) as overrides:
            total = sum(
                reproduce(
                    number, bioasq if read_paper(number).of_form("bioasq") else biogen,
                    folder, ["--concurrent", args.concurrent], overrides,
                )
                for number in args.papers
            )  # fmt: skip
    print(f"{args.limit} questions, {len(args.papers)} papers: {total:.0f} s")


if __name__ == "__main__":
    main()
