"""Reads sources, splits, embeds and stages them, as one streaming pass of Ray Data.

    sources --read, split--> batches --embed, stage--> parts

For encoders on GPUs a step of its own tokenises between the two, on as many CPUs as are free: one
thread beside a GPU could not keep it fed. An encoder on CPUs tokenises what is next by itself.

The driver sees file names and counts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray.data

from cluster.settings.settings import EncoderSettings, Settings
from cluster.storage.object_store import File
from cluster.storage.places import Place
from pipelines.build.plan_build import Progress, Report, expected_citations
from pipelines.build.read_source import BYTES_PER_CITATION
from pipelines.build.stage_citations import runs_of, staged_positions
from pipelines.build.stage_steps import (
    CodedTokens,
    EmbedAndStage,
    read_source_rows,
    tokenise_passages,
)

# An encoder leaves room on its CPU for readers: were all CPUs taken by encoders, as when a
# node was lost, no reader would ever start, and the build would wait for ever.
READ_CPUS, EMBED_CPUS = 0.001, 0.999
# Less than all that an encoder and its readers leave of two CPUs, for the same reason.
TOKENISE_CPUS = 0.9
READERS_PER_ENCODER = 2
# On a GPU one table is written while the next is on the card.
TABLES_PER_GPU = 2
MIN_PART_ROWS, MAX_PART_ROWS = 256, 2048
# A block is about one part, so that counts come back part by part and memory stays small.
BLOCK_BYTES_PER_ROW = 2000


def _at_once(encoder: EncoderSettings) -> dict[str, Any]:
    """How many tables an encoder works on; one, where it has no GPU to keep busy."""
    if not encoder.gpus:
        return {}
    return {"max_concurrent_calls_per_actor": TABLES_PER_GPU, "enable_true_multi_threading": True}


def _set_context(rows: int) -> None:
    """Tell Ray Data how to run here, in blocks of about `rows`."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # A large shard or a slow model is no stall.
    context.execution_no_progress_timeout_s = -1
    # Or an error of an encoder arrives without what was said.
    context.raise_original_map_exception = True
    # A worker or a node lost while an encoder loads is replaced like any other.
    context.max_consecutive_actor_init_deaths = 3
    context.target_max_block_size = rows * BLOCK_BYTES_PER_ROW


def _read(
    items: list[dict[str, str]], settings: Settings, model: Path, directories: dict[str, Place]
) -> ray.data.Dataset:
    """The passages of the sources of `items`; tokenised too where the encoder has a GPU."""
    dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        read_source_rows,
        fn_args=(settings.split, settings.encoder, model, directories),
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.TaskPoolStrategy(size=READERS_PER_ENCODER * settings.encoder.actors),
        # Unlike the next step's, or Ray Data would fuse the two and read in the encoder.
        num_cpus=READ_CPUS,
    )
    if not settings.encoder.gpus:
        return dataset
    return dataset.map_batches(
        tokenise_passages,
        fn_args=(settings.encoder, model),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=TOKENISE_CPUS,
    )


def embed_sources(
    pending: Sequence[tuple[File, Place]],
    settings: Settings,
    model: Path,
    tokens: CodedTokens | None,
    report: Report,
) -> None:
    """Read the sources that are not staged yet; split, embed and stage what they lack."""
    size = sum(path.stat().st_size for path, _ in pending)
    rows = min(max(size // BYTES_PER_CITATION // 50, MIN_PART_ROWS), MAX_PART_ROWS)
    _set_context(rows)
    directories = {path.name: directory for path, directory in pending}
    encoders = settings.encoder.actors
    staged = [staged_positions(directory) for _, directory in pending]
    items = [
        {"path": str(path), "staged": " ".join(runs_of(positions))}
        for (path, _), positions in zip(pending, staged, strict=True)
    ]
    dataset = _read(items, settings, model, directories).map_batches(
        EmbedAndStage,
        fn_constructor_args=(settings.encoder, model, directories, settings.index.shards, tokens),
        batch_size=rows,
        batch_format="pyarrow",
        # The least is one, so that in the end idle encoders make way for one whose node was
        # lost and for which no other has room, or its batch would wait for ever.
        compute=ray.data.ActorPoolStrategy(
            min_size=1, initial_size=encoders, max_size=encoders, **_at_once(settings.encoder)
        ),
        num_cpus=EMBED_CPUS,
        num_gpus=settings.encoder.gpus or None,
    )
    done = sum(map(len, staged))
    for row in dataset.iter_rows():
        done += int(row["citations"])
        report(Progress("embed", done, expected_citations(pending, done), "citations"))
