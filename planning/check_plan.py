"""Compare a plan with a real build on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.settings.settings import Settings
from cluster.storage.object_store import File
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    core_seconds,
    process_memory,
)
from planning.measure.calibrate import load_encoder
from planning.measure.coefficients import Coefficients
from planning.measure.measure_search import Asked, measure_searching
from planning.measure.sample_corpus import sample_files
from planning.measure.watch_build import BuildMeasured, build_watched

QUESTIONS = 60


@dataclass(frozen=True, slots=True)
class Compared:
    """A predicted and a measured value."""

    name: str
    unit: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error: 0.1 if the prediction is 10% too large, 0 if 0 was measured."""
        return self.predicted / self.measured - 1 if self.measured else 0.0


def check_plan(
    found: Coefficients,
    settings: Settings,
    citations: int,
    tell: Callable[[str], None],
    given: Sequence[File] = (),
) -> tuple[int, list[Compared]]:
    """Index `citations` generated citations on this machine with Ray, search them, and compare.

    Returns (number of indexed citations, comparisons). If `given` is not empty, these sources are
    indexed instead. Raises CiteRayError if the build fails.
    """
    with tempfile.TemporaryDirectory(prefix="citeray-check-") as name:
        folder = Path(name)
        tell(f"writing {citations:,} citations" if not given else "taking the given files")
        sources = sample_files(folder / "sources", citations, given)
        index = settings.index.model_copy(update={"path": folder / "index"})
        here = settings.model_copy(update={"index": index})
        tell("building the index through Ray")
        real = build_watched(sources, here)
        tell(f"searching it with {QUESTIONS} questions")
        searches = _search_seconds(real, here)
    return real.manifest.citations, compare(found, here, real, searches)


def _search_seconds(real: BuildMeasured, settings: Settings) -> float:
    """Return the median seconds of a search of the first shard."""
    asked = Asked.of(load_encoder(settings), settings, QUESTIONS, settings.index.shards)
    entry = real.manifest.shards[0].segments[0]
    return measure_searching(settings.index.place, entry, asked, settings).median("search")


def compare(
    found: Coefficients, settings: Settings, real: BuildMeasured, searches: float | None = None
) -> list[Compared]:
    """Return predictions for the number of citations that were built, and the measured values.

    `searches` is the measured seconds of a search of one shard, or None if it was not measured.
    """
    limit = settings.index.training_vectors
    size = Size.of(found, real.manifest.citations, settings.index.shards)
    phases = build_phases(found, size, Fleet.here(settings))
    seconds = {f.name: f.value for f in phases}
    seconds["all"] = sum(seconds.values())
    # A real build reports the training of the quantiser as part of indexing.
    seconds["index"] += seconds.pop("train quantiser")
    search = found.serving.search_seconds(size.shards, size.shard_passages, size.shard_citations)
    memory = process_memory(found, size, limit)
    return [
        Compared("passages", "", size.passages, real.manifest.passages),
        Compared("core seconds", "seconds", core_seconds(found, size, limit), real.core_seconds),
        *(
            Compared(f"time: {name}", "seconds", seconds[name], real.seconds[name])
            for name in ("all", "parse, embed", "index", "publish")
        ),
        *(
            Compared(f"bytes of {f.name}", "bytes", f.value, real.bytes.get(f.name, 0))
            for f in artefact_bytes(found, size)
        ),
        *(
            Compared(f"memory of {f.name}", "bytes", f.value, real.memory[f.name])
            for f in memory
            if f.name in real.memory
        ),
        *([Compared("search of a shard", "seconds", search, searches)] if searches else []),
    ]
