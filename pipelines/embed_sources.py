"""Reads sources, splits, embeds and stages them, as one streaming pass of Ray Data.

    sources --read, split--> batches --embed, stage--> parts

The driver sees file names and counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import ray.data

from cluster.object_store import File
from cluster.places import Place
from cluster.settings import Settings
from pipelines.plan_build import BYTES_PER_CITATION, Progress, Report, expected_citations
from pipelines.stage_citations import runs_of, staged_positions
from pipelines.stage_steps import EmbedAndStage, read_source_rows

# An encoder leaves room on its CPU for readers: were all CPUs taken by encoders, as when a
# node was lost, no reader would ever start, and the build would wait for ever.
READ_CPUS, EMBED_CPUS = 0.001, 0.999
READERS_PER_ENCODER = 2
MIN_PART_ROWS, MAX_PART_ROWS = 256, 2048
# A block is about one part, so that counts come back part by part and memory stays small.
BLOCK_BYTES_PER_ROW = 2000


def embed_sources(
    pending: Sequence[tuple[File, Place]], settings: Settings, model: Path, report: Report
) -> None:
    """Read the sources that are not staged yet; split, embed and stage what they lack."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # A large shard or a slow model is no stall.
    context.execution_no_progress_timeout_s = -1
    # Or an error of an encoder arrives without what was said.
    context.raise_original_map_exception = True
    # A worker or a node lost while an encoder loads is replaced like any other.
    context.max_consecutive_actor_init_deaths = 3
    size = sum(path.stat().st_size for path, _ in pending)
    rows = min(max(size // BYTES_PER_CITATION // 50, MIN_PART_ROWS), MAX_PART_ROWS)
    context.target_max_block_size = rows * BLOCK_BYTES_PER_ROW
    directories = {path.name: directory for path, directory in pending}
    encoders = settings.encoder.actors
    staged = [staged_positions(directory) for _, directory in pending]
    items = [
        {"path": str(path), "staged": " ".join(runs_of(positions))}
        for (path, _), positions in zip(pending, staged, strict=True)
    ]
    dataset = (
        ray.data.from_items(items, override_num_blocks=len(items))
        .map_batches(
            read_source_rows,
            fn_args=(settings.split, settings.encoder, model, directories),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.TaskPoolStrategy(size=READERS_PER_ENCODER * encoders),
            # Unlike the next step's, or Ray Data would fuse the two and read in the encoder.
            num_cpus=READ_CPUS,
        )
        .map_batches(
            EmbedAndStage,
            fn_constructor_args=(settings.encoder, model, directories, settings.index.shards),
            batch_size=rows,
            batch_format="pyarrow",
            # The least is one, so that in the end idle encoders make way for one whose node was
            # lost and for which no other has room, or its batch would wait for ever.
            compute=ray.data.ActorPoolStrategy(
                min_size=1, initial_size=encoders, max_size=encoders
            ),
            num_cpus=EMBED_CPUS,
            num_gpus=settings.encoder.gpus or None,
        )
    )
    done = sum(map(len, staged))
    for row in dataset.iter_rows():
        done += int(row["citations"])
        report(Progress("embed", done, expected_citations(pending, done), "citations"))
