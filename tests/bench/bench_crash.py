"""kill -9 of the driver, a worker or a node in build, update and compaction, and what is left.

    python -m tests.bench.bench_crash --rounds 50 --seed 0

Each round kills once at a seeded moment, runs the command again until it is done, and
compares what is live with an uninterrupted run, while a reader opens the published
version over and over. Prints a line a round and a table; exit code 1 if a round failed.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.end_to_end.crashes import JOBS, VICTIMS, Bench, Round, plan_of
from tests.end_to_end.index_jobs import Jobs, write_corpus
from tests.end_to_end.two_nodes import two_nodes
from tests.tiny_models import make_tiny_encoder


def run_rounds(folder: Path, rounds: int, seed: int) -> list[Round]:
    done = []
    with two_nodes() as nodes:
        corpus = write_corpus(folder / "pubmed")
        bench = Bench(Jobs(folder, make_tiny_encoder(folder), corpus, nodes.driver), nodes)
        for number, (job, victim) in enumerate(plan_of(seed, rounds)):
            chance = random.Random(f"{seed}-{number}")
            done.append(bench.round(number, job, victim, chance))
            print(done[-1], flush=True)
    return done


def print_table(rounds: Sequence[Round]) -> None:
    heads = ("job", "killed", "rounds", "survived", "staged twice, most", "opened", "failures")
    print("".join(f"{head:>20}" for head in heads))
    for job in JOBS:
        for victim in VICTIMS:
            these = [r for r in rounds if (r.job, r.victim) == (job, victim)]
            row = (
                job,
                victim,
                len(these),
                sum(r.survived for r in these),
                max((r.staged_twice for r in these), default=0),
                sum(r.opened for r in these),
                sum(bool(r.failures) for r in these),
            )
            print("".join(f"{value:>20}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        rounds = run_rounds(Path(folder), given.rounds, given.seed)
    print_table(rounds)
    failed = [f"{r.number} {r.job} {r.victim}: {f}" for r in rounds for f in r.failures]
    print(f"{len(rounds)} rounds, {len(failed)} failures", *failed, sep="\n")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
