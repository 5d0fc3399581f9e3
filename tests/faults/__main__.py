"""The simulator of faults: random operations and faults, against a sequential reading.

    python -m tests.faults --seed 0 --rounds 500

Round n has the seed `seed + n`, which says what it is about: an index in a folder or a store with
its readers, downloads, batches of questions, or saved questions. Prints each round that fails, with
its seed and the fewest steps that fail as well; exit code 1 if there is one. Real processes on real
nodes are killed by `python -m tests.bench.bench_crash`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.faults.rounds import draw, failure_of, kind_of
from tests.faults.steps import shrink


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=500)
    given = parser.parse_args()
    begun, failed, happened, kinds = time.monotonic(), 0, Counter[str](), Counter[str]()
    for seed in range(given.seed, given.seed + given.rounds):
        steps = draw(seed)
        kinds[kind_of(seed)] += 1
        failure, fired = failure_of(seed, steps)
        happened.update(fired)
        if failure:
            failed += 1
            fewest = shrink(steps, lambda fewer, seed=seed: bool(failure_of(seed, fewer)[0]))
            print(f"seed {seed} ({kind_of(seed)}): {failure_of(seed, fewest)[0]}", flush=True)
            print(*(f"    {step}" for step in fewest), sep="\n", flush=True)
    seconds = time.monotonic() - begun
    print(f"{given.rounds} rounds from seed {given.seed} in {seconds:.0f} s: {failed} failed")
    print(f"rounds by what they are about: {dict(kinds)}")
    print(f"faults that happened: {dict(happened.most_common())}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
