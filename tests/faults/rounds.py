"""Rounds by seed: the part of CiteRay that each tests, its steps, and its failure if any."""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol
from unittest.mock import patch

from tests.faults.batches import BATCH_FAULTS, BatchRound, draw_batches
from tests.faults.downloads import DOWNLOAD_FAULTS, DownloadRound, draw_downloads
from tests.faults.index_rounds import INDEX_FAULTS, IndexRound, draw_index
from tests.faults.steps import Step
from tests.faults.watches import WATCH_FAULTS, WatchRound, draw_watches


class Round(Protocol):
    """Run steps; `fired` names the faults that happened."""

    fired: list[str]

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps; raises DifferenceError or an unexpected error."""


DrawSteps = Callable[[random.Random, int], tuple[Step, ...]]
MakeRound = Callable[[Path, int], Round]
# Kinds of rounds, and how each is drawn and played.
KINDS: dict[str, tuple[DrawSteps, MakeRound]] = {
    "index in a folder": (
        partial(draw_index, in_store=False),
        partial(IndexRound, in_store=False),
    ),
    "index in a store": (partial(draw_index, in_store=True), partial(IndexRound, in_store=True)),
    "watches": (draw_watches, WatchRound),
    "batches": (draw_batches, BatchRound),
    "downloads": (
        partial(draw_downloads, in_store=False),
        partial(DownloadRound, in_store=False),
    ),
    "downloads to a store": (
        partial(draw_downloads, in_store=True),
        partial(DownloadRound, in_store=True),
    ),
}
# Half of the rounds test the index, which has the most complex protocol.
ORDER = (
    *("index in a folder", "index in a store", "watches", "index in a folder", "batches"),
    *("index in a folder", "downloads", "index in a store", "watches", "batches"),
    *("index in a folder", "downloads to a store"),
)
ALL_FAULTS = {*INDEX_FAULTS, *DOWNLOAD_FAULTS, *BATCH_FAULTS, *WATCH_FAULTS}


def kind_of(seed: int) -> str:
    """Return the kind of the round of `seed`."""
    return ORDER[seed % len(ORDER)]


def draw(seed: int) -> tuple[Step, ...]:
    """Return the steps of the round of `seed`."""
    kind, (turns, place) = kind_of(seed), divmod(seed, len(ORDER))
    turn = turns * ORDER.count(kind) + ORDER[:place].count(kind)
    draw_steps, _ = KINDS[kind]
    return draw_steps(random.Random(seed), turn)


def failure_of(seed: int, steps: Sequence[Step], kind: str = "") -> tuple[str, list[str]]:
    """Return the failure of a round ("" if none) and the faults that happened.

    `kind` overrides the kind that belongs to `seed`.
    """
    # A file system in memory, because the rounds simulate what a disk may lose.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=memory))
    _, make_round = KINDS[kind or kind_of(seed)]
    try:
        played = make_round(folder, seed)
        try:
            with patch.object(tempfile, "tempdir", str(folder)), _silent_log():
                played.run(steps)
        except Exception as error:
            return f"{type(error).__name__}: {error}", played.fired
        return "", played.fired
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _silent_log() -> Iterator[None]:
    """Suppress the log messages of injected failures."""
    log = logging.getLogger("citeray")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)
