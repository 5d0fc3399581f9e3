"""Play rounds on real Ray processes and report the result of each."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from tests.end_to_end.index_jobs import Jobs, write_corpus
from tests.faults.on_ray.draw_rounds import KINDS, SERVING, RayRound, draw_rounds
from tests.faults.on_ray.job_rounds import JobRounds, job_rounds
from tests.faults.on_ray.served_graph import served_graph
from tests.faults.on_ray.serving_rounds import ServingRounds
from tests.tiny_models import make_tiny_encoder

Rounds = JobRounds | ServingRounds


def index_rounds(folder: Path, encoder: Path) -> AbstractContextManager[JobRounds]:
    return job_rounds(Jobs(folder, encoder, write_corpus(folder / "pubmed")))


@contextmanager
def serving_rounds(folder: Path, encoder: Path) -> Iterator[ServingRounds]:
    with served_graph(folder, encoder) as graph:
        yield ServingRounds(graph)


OPEN: dict[str, Callable[[Path, Path], AbstractContextManager[Rounds]]] = {
    "index": index_rounds,
    SERVING: serving_rounds,
}


def play_rounds(seed: int, rounds: int, kinds: Sequence[str] = KINDS) -> int:
    """Play `rounds` rounds of `kinds` from `seed` on; return the number of failures.

    Kinds run one after the other, so that only one Ray runs at a time.
    """
    begun, failed, happened = time.monotonic(), 0, Counter[str]()
    drawn = draw_rounds(seed, rounds, kinds)
    for kind in kinds:
        left = [r for r in drawn if (r.about == SERVING) == (kind == SERVING)]
        while left:
            failed += play_until_one_fails(kind, left, happened)
    seconds = time.monotonic() - begun
    print(f"{rounds} rounds from seed {seed} in {seconds:.0f} s: {failed} failed")
    print(f"faults that happened: {dict(sorted(happened.items()))}", flush=True)
    return failed


def play_until_one_fails(kind: str, left: list[RayRound], happened: Counter[str]) -> bool:
    """Remove rounds from `left` and play them until one fails, and return whether one did.

    A failed round may leave the cluster or graph unusable, so the next one needs a new one.
    """
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True)
        path = Path(stack.enter_context(folder))
        player = stack.enter_context(OPEN[kind](path, make_tiny_encoder(path)))
        failures: list[str] = []
        while left and not failures:
            round_, begun = left.pop(0), time.monotonic()
            try:
                played = player.play(round_)
                text, failures = f"{played}", played.failures
                happened.update(f"{round_.about}: {fault}" for fault in played.happened)
            except Exception as error:
                text = "not played to its end"
                failures = [f"{type(error).__name__}: {str(error)[-2000:]}"]
            how = "FAILED" if failures else "holds"
            print(f"{round_}: {how} in {time.monotonic() - begun:.0f} s; {text}", flush=True)
            print(*(f"    {failure}\n" for failure in failures), sep="", end="", flush=True)
    return bool(failures)
