"""Read, split, embed and stage sources in one streaming pass of Ray Data.

    sources --read, split--> batches --embed, stage--> parts

For encoders on GPUs, actors between the two tokenise on all free CPUs, one thread each, because one
thread could not keep a GPU busy. An encoder on CPUs tokenises its own input.

The driver handles only file names and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray.data

from cluster.settings.settings import Settings
from cluster.settings.stages.encoder import EncoderSettings
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from pipelines.indexing.staging.plan_build import ExpectedCitations, Progress, Report
from pipelines.indexing.staging.read_source import BYTES_PER_CITATION
from pipelines.indexing.staging.stage_citations import runs_of, staged_positions
from pipelines.indexing.staging.staging_tasks import (
    CodedTokens,
    EmbedAndStage,
    TokenisePassages,
    read_source_rows,
)

# An encoder leaves part of its CPU to readers. If encoders used all CPUs, for example after a node
# was lost, no reader could start and the build would deadlock.
READ_CPUS, EMBED_CPUS = 0.001, 0.999
# Less than 1, so that a tokeniser fits on two CPUs together with an encoder and its readers.
TOKENISE_CPUS = 0.9
READERS_PER_ENCODER = 2
# One table is written to disk while the GPU embeds the next.
TABLES_PER_GPU = 2
MIN_PART_ROWS, MAX_PART_ROWS = 256, 2048
# A block is about one part, so that progress is reported part by part and memory stays small.
BLOCK_BYTES_PER_ROW = 2000


def _at_once(encoder: EncoderSettings) -> dict[str, Any]:
    """Return the actor options that set the number of concurrent tables: more than one on a GPU."""
    if not encoder.gpus:
        return {}
    return {"max_concurrent_calls_per_actor": TABLES_PER_GPU, "enable_true_multi_threading": True}


def _set_context(rows: int) -> None:
    """Configure Ray Data, with blocks of about `rows` rows."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.verbose_progress = False
    # A slow model must not be mistaken for a stall.
    context.execution_no_progress_timeout_s = -1
    # Keep the message of an exception raised in an encoder.
    context.raise_original_map_exception = True
    # Replace a worker or node that is lost while an encoder loads.
    context.max_consecutive_actor_init_deaths = 3
    context.target_max_block_size = rows * BLOCK_BYTES_PER_ROW


def _read(
    items: list[dict[str, str]], settings: Settings, weights: str, directories: dict[str, Location]
) -> ray.data.Dataset:
    """Return the passages of the sources in `items`, tokenised if the encoder has a GPU."""
    dataset = ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        read_source_rows,
        fn_args=(settings.split, settings.encoder, weights, directories),
        batch_size=1,
        batch_format="pyarrow",
        compute=ray.data.TaskPoolStrategy(size=READERS_PER_ENCODER * settings.encoder.actors),
        # Must differ from the next step's, or Ray Data would fuse both and read in the encoder.
        num_cpus=READ_CPUS,
    )
    if not settings.encoder.gpus:
        return dataset
    return dataset.map_batches(
        TokenisePassages,
        fn_constructor_args=(settings.encoder, weights),
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=1),
        num_cpus=TOKENISE_CPUS,
    )


def embed_sources(
    pending: Sequence[tuple[File, Location]],
    settings: Settings,
    weights: str,
    tokens: CodedTokens | None,
    report: Report,
) -> None:
    """Read the `pending` sources, and split, embed and stage the citations not staged yet.

    `weights` is the checksum of the encoder, which each node loads by its name.
    """
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
    dataset = _read(items, settings, weights, directories).map_batches(
        EmbedAndStage,
        fn_constructor_args=(settings.encoder, weights, directories, settings.index.shards, tokens),
        batch_size=rows,
        batch_format="pyarrow",
        # With a minimum of one, idle encoders stop at the end and free room for an encoder whose
        # node was lost. Otherwise its batch could wait forever.
        compute=ray.data.ActorPoolStrategy(
            min_size=1, initial_size=encoders, max_size=encoders, **_at_once(settings.encoder)
        ),
        num_cpus=EMBED_CPUS,
        num_gpus=settings.encoder.gpus or None,
    )
    done = sum(map(len, staged))
    expected = ExpectedCitations(pending)
    for row in dataset.iter_rows():
        done += int(row["citations"])
        total = expected.after(row["source"], int(row["citations"]))
        report(Progress("embed", done, max(total, done), "citations"))
