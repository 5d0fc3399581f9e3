"""How wrong is a plan? A real build here, and its figures beside the predicted ones."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cluster.object_store import File
from cluster.settings import Settings, load_system
from pipelines.generate_citations import generate_citations
from planning.calibrate import QUESTION_SEED, load_encoder
from planning.coefficients import Coefficients
from planning.estimate_build import (
    Fleet,
    Size,
    artefact_bytes,
    build_phases,
    core_seconds,
    process_memory,
    total,
)
from planning.figures import Figure
from planning.measure_search import Asked, measure_searching
from planning.sample_corpus import sample_files
from planning.watch_build import BuildMeasured, build_watched

QUESTIONS = 60


@dataclass(frozen=True, slots=True)
class Compared:
    """`error` is relative: 0.1 where the prediction is a tenth too large."""

    name: str
    unit: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1 if self.measured else 0.0


def check_plan(
    found: Coefficients,
    settings: Settings,
    citations: int,
    tell: Callable[[str], None],
    given: Sequence[File] = (),
) -> list[Compared]:
    """Build so many citations on this machine through Ray, search them, and compare.

    `given` sources are built whole in place of generated ones. Raises CiteRayError when the
    build fails.
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
    return compare(found, here, real, searches)


def _search_seconds(real: BuildMeasured, settings: Settings) -> float:
    """The median seconds of a search of the first shard."""
    questions = tuple(c.title for c in generate_citations(QUESTIONS, QUESTION_SEED))
    vectors = load_encoder(settings).encode_queries(list(questions))
    asked = Asked(questions, vectors, load_system(settings.serve.system))
    entry = real.manifest.shards[0].segments[0]
    spent = measure_searching(settings.index.place, entry, asked, settings).spent
    return median(spent["search"])


def compare(
    found: Coefficients, settings: Settings, real: BuildMeasured, searches: float
) -> list[Compared]:
    """What was predicted for as many citations as were built, beside what was measured."""
    shards, limit = settings.index.shards, settings.index.training_vectors
    size = Size.of(found, real.manifest.citations, shards)
    phases = {f.name: f for f in build_phases(found, size, Fleet.here(settings))}
    # The clock of a real build sees training as part of what follows it.
    indexing = total("index", [phases["train quantiser"], phases["index"]])
    wall = total("all", list(phases.values()))
    cores = core_seconds(found, size, limit)
    s = found.serving
    search = (
        s.dense_seconds.at(size.shard_passages)
        + s.bm25_seconds.at(size.shard_citations)
        + s.join_seconds
    )
    rows = [
        Compared("passages", "", size.passages, real.manifest.passages),
        Compared("core seconds", "seconds", cores.value, real.core_seconds),
        _timed(wall, real), _timed(phases["parse, embed"], real), _timed(indexing, real),
        _timed(phases["publish"], real),
    ]  # fmt: skip
    rows += [
        Compared(f"bytes of {f.name}", "bytes", f.value, real.bytes.get(f.name, 0))
        for f in artefact_bytes(found, size)
    ]
    rows += [
        Compared(f"memory of {f.name}", "bytes", f.value, real.memory[f.name])
        for f in process_memory(found, size, limit)
        if f.name in real.memory
    ]
    return [*rows, Compared("search of a shard", "seconds", search, searches)]


def _timed(predicted: Figure, real: BuildMeasured) -> Compared:
    return Compared(
        f"time: {predicted.name}", "seconds", predicted.value, real.seconds[predicted.name]
    )
