"""Play rounds on real Ray processes and report the result of each."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.end_to_end.index_jobs import Jobs, write_corpus
from tests.faults.on_ray.draw_rounds import KINDS, SERVING, RayRound, draw_rounds
from tests.faults.on_ray.job_rounds import job_rounds
from tests.faults.on_ray.served_graph import served_graph
from tests.faults.on_ray.serving_rounds import ServingRounds
from tests.tiny_models import make_tiny_encoder


class Played(Protocol):
    """Result of a round: the injected faults and the failures; `str` adds measurements."""

    happened: list[str]
    failures: list[str]


class Player(Protocol):
    """Play rounds of one kind, one after the other."""

    def play(self, round_: RayRound) -> Played: ...


@dataclass
class Broken:
    """Result of a round that could not be completed."""

    failures: list[str]
    happened: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "not played to its end"


Open = Callable[[Path, Path], AbstractContextManager[Player]]


def index_rounds(folder: Path, encoder: Path) -> AbstractContextManager[Player]:
    return job_rounds(Jobs(folder, encoder, write_corpus(folder / "pubmed")))


@contextmanager
def serving_rounds(folder: Path, encoder: Path) -> Iterator[ServingRounds]:
    with served_graph(folder, encoder) as graph:
        yield ServingRounds(graph)


OPEN: dict[str, Open] = {"index": index_rounds, SERVING: serving_rounds}


class Stage:
    """The cluster or graph for rounds of a kind, opened again after a failed round."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._opened = ExitStack()
        self._player: Player | None = None

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        self._player = None
        self._opened.close()

    def play(self, round_: RayRound) -> Played:
        if self._player is None:
            folder = tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True)
            path = Path(self._opened.enter_context(folder))
            opened = OPEN[self._kind](path, make_tiny_encoder(path))
            self._player = self._opened.enter_context(opened)
        played: Played
        try:
            played = self._player.play(round_)
        except Exception as error:
            played = Broken([f"{type(error).__name__}: {str(error)[-2000:]}"])
        if played.failures:
            self._close()
        return played


def play_rounds(seed: int, rounds: int, kinds: Sequence[str] = KINDS) -> int:
    """Play `rounds` rounds of `kinds` from `seed` on; return the number of failures.

    Kinds run one after the other, so that only one Ray runs at a time.
    """
    begun, failed, happened = time.monotonic(), 0, Counter[str]()
    drawn = draw_rounds(seed, rounds, kinds)
    for kind in kinds:
        with Stage(kind) as stage:
            for round_ in (r for r in drawn if (r.about == SERVING) == (kind == SERVING)):
                played = play_and_tell(stage, round_)
                happened.update(f"{round_.about}: {fault}" for fault in played.happened)
                failed += bool(played.failures)
    seconds = time.monotonic() - begun
    print(f"{rounds} rounds from seed {seed} in {seconds:.0f} s: {failed} failed")
    print(f"faults that happened: {dict(sorted(happened.items()))}", flush=True)
    return failed


def play_and_tell(stage: Stage, round_: RayRound) -> Played:
    begun = time.monotonic()
    played = stage.play(round_)
    how = "FAILED" if played.failures else "holds"
    print(f"{round_}: {how} in {time.monotonic() - begun:.0f} s; {played}", flush=True)
    print(*(f"    {failure}\n" for failure in played.failures), sep="", end="", flush=True)
    return played
