"""Run one build or update in its own process with the stand-in encoder, and print its duration.

    python -m benchmarks.scale_job build|update SHARDS INDEX SOURCE...

Runs the real jobs on a real Ray; only `load_encoder` is replaced, in the workers too. Prints JSON
with the number of citations, the seconds in total and the seconds of each stage.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import ray.cloudpickle

from benchmarks.stand_in import BagOfWords
from cluster.ray.session import ray_session
from cluster.settings.settings import Settings, load_settings
from pipelines.indexing import jobs
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.indexing.staging import staging_tasks
from pipelines.indexing.staging.plan_build import Progress


class StageClock:
    """Time of the last progress message of each stage, in seconds since the clock was created."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._last: dict[str, float] = {}

    def __call__(self, progress: Progress) -> None:
        self._last[progress.stage] = time.monotonic() - self._begun

    def stages(self) -> dict[str, float]:
        """Return the seconds between the last messages of stages in turn; `publish` is the rest."""
        ends = [*self._last.items(), ("publish", time.monotonic() - self._begun)]
        begins = [0.0, *(end for _, end in ends[:-1])]
        pairs = zip(ends, begins, strict=True)
        return {stage: round(end - begin, 2) for (stage, end), begin in pairs}


def stand_in_settings(index: Path, shards: int) -> Settings:
    """Return the settings of a build into `index` with the stand-in encoder."""
    model = index.parent / "stand-in"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text('{"stand-in": "benchmarks.stand_in"}')
    overrides = {
        "index.path": index,
        "index.shards": shards,
        "encoder.model": f"file:{model.resolve()}",
        "vocabulary.concepts": "",
        # The stand-in has no token vectors.
        "index.token_vectors": "none",
    }
    return load_settings(None, [f"{name}={value}" for name, value in overrides.items()])


def use_stand_in() -> None:
    """Replace the encoder in this process and in the Ray workers that it starts."""
    staging_tasks.load_encoder = lambda _settings, _model: BagOfWords()  # type: ignore[assignment,return-value]
    staging_tasks.find_encoder = staging_tasks.load_encoder
    # Pickle the module by value; otherwise workers would import it again, with the real encoder.
    ray.cloudpickle.register_pickle_by_value(staging_tasks)


def run(job: str, shards: str, index: Path, sources: Sequence[str]) -> None:
    settings = stand_in_settings(index, int(shards))
    use_stand_in()
    clock = StageClock()
    files = find_sources(sources)
    with ray_session(settings.ray):
        if job == "build":
            result = jobs.build_index(files, settings, clock)
        else:
            # The number of the update is higher than that of any source of the corpus.
            result = jobs.update_index(files, settings, clock, allow_gap=True)
    stages = clock.stages()
    citations = sum(source.kept for source in result.sources)
    print(json.dumps({"citations": citations, "seconds": sum(stages.values()), "stages": stages}))


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
