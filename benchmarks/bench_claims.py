"""Measure the reader alone on sentences that affirm or deny a fact in other words.

    python -m benchmarks.bench_claims [ROWS.jsonl] [--pairs 10] [--set KEY=VALUE]

ROWS are contrast sets of the form of configs/training/claims.jsonl; the default,
benchmarks/claims.jsonl, has facts that the reader was not trained on. For each row, `--pairs`
questions are drawn with a sentence that answers and with one that does not. Prints the share of
questions whose side is read correctly, by right answer; the same share among the most confident
readings; and the share of sentences without an answer that are read as such.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.smallest import parse_arguments
from cluster.settings.settings import load_settings
from pipelines.train.examples.read_lines import read_lines
from serve.graph.load_stages import load_reader

SMALLEST = "--pairs 1"
HELD_OUT = Path(__file__).with_name("claims.jsonl")
COVERAGES = (0.3, 0.5, 0.7)


def draw_pairs(path: Path, count: int, seed: int = 1) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (question, sentence that answers it, one that does not, whether "yes" is right)."""
    draw = random.Random(seed)
    for _, row in read_lines(path):
        for _ in range(count):
            asked, side = draw.choice(["ask", "opposite"]), draw.choice(["affirms", "denies"])
            is_yes = (asked == "ask") == (side == "affirms")
            yield draw.choice(row[asked]), draw.choice(row[side]), draw.choice(row["open"]), is_yes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path, nargs="?", default=HELD_OUT)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    arguments = parse_arguments(parser, SMALLEST)
    reader = load_reader(load_settings(None, arguments.overrides))
    results: list[tuple[float, bool, bool]] = []
    silent = 0
    for question, says, leaves_open, is_yes in draw_pairs(arguments.rows, arguments.pairs):
        found, other = reader.read(question, [says, leaves_open])
        clearness = found.relevance * abs(found.yes - found.no)
        results.append((clearness, is_yes, (found.yes > found.no) == is_yes))
        silent += other.relevance * (1 - other.silent) < 0.5
    print(f"{len(results)} questions")
    for name, side in (("yes", True), ("no", False)):
        right = [is_right for _, is_yes, is_right in results if is_yes is side]
        print(f"  right where {name} is: {sum(right) / max(1, len(right)):.3f}")
    ranked = sorted(results, reverse=True)
    for share in COVERAGES:
        first = ranked[: max(1, round(share * len(ranked)))]
        print(
            f"  right among the clearest {share:.0%}: {sum(r for *_, r in first) / len(first):.3f}"
        )
    print(f"  open sentences read as silent: {silent / max(1, len(results)):.3f}")


if __name__ == "__main__":
    main()
