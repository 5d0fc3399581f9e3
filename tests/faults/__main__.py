"""Simulator of faults: random operations and faults, compared with a sequential reading.

    python -m tests.faults --seed 0 --rounds 500
    python -m tests.faults --on-ray --seed 0 --rounds 12 [--kinds index serving]

Round n has the seed `seed + n`, which determines its subject: an index in a folder or a store with
its readers, downloads, batches of questions, or saved questions. Prints each round that fails, with
its seed and the fewest steps that still fail; the exit code is 1 if a round fails.

With `--on-ray`, rounds kill (-9) and stop real processes instead: the driver, a worker or a node of
a build, update or compaction, or the gateway, proxy, controller, a stage or the model of a graph
that is asked continuously. A round takes a minute or two and prints one line.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.faults.on_ray.draw_rounds import KINDS as RAY_KINDS
from tests.faults.rounds import draw, failure_of, kind_of
from tests.faults.steps import shrink


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, help="500 by default, 12 on Ray")
    parser.add_argument("--on-ray", action="store_true", help="real processes, struck by signals")
    parser.add_argument("--kinds", nargs="+", choices=RAY_KINDS, default=RAY_KINDS)
    given = parser.parse_args()
    if given.on_ray:
        # Imported only here, because it imports models, which the simulator does not need.
        from tests.faults.on_ray.play_rounds import play_rounds

        failed = play_rounds(given.seed, given.rounds or 12, given.kinds)
    else:
        failed = simulate(given.seed, given.rounds or 500)
    sys.exit(1 if failed else 0)


def simulate(first: int, rounds: int) -> int:
    """Play `rounds` rounds from seed `first` on, and return the number of failed rounds."""
    begun, failed, happened, kinds = time.monotonic(), 0, Counter[str](), Counter[str]()
    for seed in range(first, first + rounds):
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
    print(f"{rounds} rounds from seed {first} in {seconds:.0f} s: {failed} failed")
    print(f"rounds by what they are about: {dict(kinds)}")
    print(f"faults that happened: {dict(happened.most_common())}")
    return failed


if __name__ == "__main__":
    main()
