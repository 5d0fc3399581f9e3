"""Ray wiring of the index jobs: the only module of pipelines/ that imports Ray.

    sources --read, split--> batches --embed, stage--> parts --one task a shard--> segments

No text and no vector passes through the driver: it sees file names and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import ray.data

from cluster.index.manifest import EncoderEntry, Manifest, read_manifest
from cluster.index.put_segment import remove_partials
from cluster.index.write_segment import SegmentPlan
from cluster.models import ModelStore, checksum
from cluster.object_store import File
from cluster.places import Place
from cluster.settings import Settings
from cluster.storage import require_writable
from pipelines.build_shard import build_shard, sample_vectors, train_quantiser
from pipelines.compact_index import compact_shard
from pipelines.plan_build import (
    BYTES_PER_CITATION,
    BuildResult,
    Progress,
    Report,
    build_id,
    expected_citations,
    quantiser_of,
    segment_id,
    segment_plan,
    staged_account,
)
from pipelines.publish_index import publish_build, publish_compaction, publish_update
from pipelines.stage_citations import (
    ParsedSource,
    complete_account,
    drop_staging,
    runs_of,
    staged_dimensions,
    staged_positions,
    staging_directory,
)
from pipelines.stage_steps import EmbedAndStage, read_source_rows
from pipelines.update_index import applicable, check_settings, new_sources, update_shard

# An encoder leaves room on its CPU for readers: were all CPUs taken by encoders, as when a
# node was lost, no reader would ever start, and the build would wait for ever.
READ_CPUS, EMBED_CPUS = 0.001, 0.999
READERS_PER_ENCODER = 2
MIN_PART_ROWS, MAX_PART_ROWS = 256, 2048
# A block is about one part, so that counts come back part by part and memory stays small.
BLOCK_BYTES_PER_ROW = 2000


def _embed(
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


@ray.remote(max_retries=3)
def _shard_task(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


@ray.remote
def _train_task(
    directories: Sequence[Place], shards: int, limit: int, path: Place, plan: SegmentPlan
) -> None:
    # Nothing is learnt from a sample but the scalars' ranges.
    limit = limit if plan.vectors == "sq8" else 0
    train_quantiser(sample_vectors(directories, shards, plan.dimensions, limit), path, plan)


def _on_shards(
    work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], plan: SegmentPlan, report: Report,
) -> list[Any]:  # fmt: skip
    """`work` of each call, one a shard, as a Ray task; the results in the order of the calls.

    Each call begins with the index. What tasks that were killed left there is removed, of an
    earlier run before and of this one after.
    """
    index: Place = calls[0][0]
    remove_partials(index)
    gpus = 1 if plan.vectors == "flat" and ray.cluster_resources().get("GPU") else 0
    task = _shard_task.options(num_cpus=1, num_gpus=gpus)
    refs = [task.remote(work, *call) for call in calls]
    waiting = list(refs)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=1)
        report(Progress("index", len(refs) - len(waiting), len(refs), "shards"))
    results: list[Any] = ray.get(refs)
    remove_partials(index)
    return results


@dataclass(frozen=True, slots=True)
class _Models:
    """Local paths of what the settings name; `checksum` is the encoder's."""

    encoder: Path
    checksum: str
    mesh: Path | None


def _fetch_models(settings: Settings, report: Report) -> _Models:
    store = ModelStore()
    report(Progress("models", 0, 1, "models"))
    model = store.resolve(settings.encoder.model, settings.encoder.sha256 or None)
    mesh = settings.vocabulary.mesh_headings
    mesh_path = store.resolve(mesh, settings.vocabulary.mesh_sha256 or None) if mesh else None
    report(Progress("models", 1, 1, "models"))
    return _Models(model, checksum(model), mesh_path)


def _stage(
    places: Sequence[tuple[File, Place]], settings: Settings, models: _Models, report: Report
) -> tuple[ParsedSource, ...]:
    """Stage what an earlier, interrupted run has not; gives the accounts of all sources."""
    pending = [(p, d) for p, d in places if complete_account(d, p) is None]
    if pending:
        _embed(pending, settings, models.encoder, report)
    return tuple(staged_account(p, d) for p, d in places)


def build_index(sources: Sequence[File], settings: Settings, report: Report) -> BuildResult:
    """Build a version from `sources`, in their order, and publish it.

    Citations staged by an earlier, interrupted run are not embedded again. A source that
    cannot be read is left out whole and named in the result; the staging is then kept,
    so that a rerun reads only that source. Raises CiteRayError when none can be read.
    """
    index = settings.index.place
    require_writable(index)
    models = _fetch_models(settings, report)
    build = index / "staging" / build_id(settings, models.checksum)
    places = [(path, staging_directory(build, path)) for path in sources]
    result = BuildResult(None, _stage(places, settings, models, report))
    good = [(d, a) for (_, d), a in zip(places, result.sources, strict=True) if not a.error]
    if not good:
        return result
    directories = [d for d, _ in good]
    encoder = EncoderEntry(
        model=settings.encoder.model,
        sha256=models.checksum,
        dimensions=staged_dimensions(directories),
        max_tokens=settings.encoder.max_tokens,
    )
    name = segment_id(build.name, settings.index, [a for _, a in good])
    quantiser = build / f"quantiser-{name}.faiss"
    plan = segment_plan(name, quantiser, encoder.dimensions, settings.index)
    shards = settings.index.shards
    limit = settings.index.training_vectors
    # Segments that a rerun keeps were coded by this very one.
    if not quantiser.is_file():
        ray.get(_train_task.remote(directories, shards, limit, quantiser, plan))
    calls = [(index, shard, directories, plan) for shard in range(shards)]
    summaries = _on_shards(build_shard, calls, plan, report)
    manifest = publish_build(
        index, quantiser, settings, encoder, models.mesh, result.sources, summaries
    )
    if not result.failed:
        drop_staging(index)
    return BuildResult(manifest, result.sources)


def update_index(
    sources: Sequence[File], settings: Settings, report: Report, *, each: bool = False
) -> BuildResult:
    """Publish a version with what of `sources` is new since the published one.

    `each` publishes one for every source, so that the state after each can be asked for.
    Staging and resuming are as in a build. What follows a source that cannot be read must
    wait for it, so that only the sources before it are applied. The result names the new
    sources alone; without any, it is the published version. Raises InputError for sources
    out of order or changed, and for settings that must be those of the build.
    """
    index = settings.index.place
    manifest = read_manifest(index)
    new = new_sources(manifest, sources)
    if not new:
        # A run that was killed after it had published left its own.
        drop_staging(index)
        return BuildResult(manifest, ())
    require_writable(index)
    quantiser = quantiser_of(index, manifest)
    models = _fetch_models(settings, report)
    check_settings(manifest, settings, models.checksum)
    build = index / "staging" / build_id(settings, models.checksum)
    places = [(path, staging_directory(build, path)) for path in new]
    accounts = _stage(places, settings, models, report)
    result = BuildResult(None, accounts)
    good = applicable(accounts)
    groups = [[account] for account in good] if each else [good]
    directories = {path.name: directory for path, directory in places}
    for group in filter(None, groups):
        name = segment_id(build.name, settings.index, group, manifest)
        plan = segment_plan(name, quantiser, manifest.encoder.dimensions, settings.index)
        staged = [directories[account.name] for account in group]
        calls = [(index, n, shard, staged, plan) for n, shard in enumerate(manifest.shards)]
        updates = _on_shards(update_shard, calls, plan, report)
        told = (*group, *result.failed)
        manifest = publish_update(index, manifest, settings.vocabulary, models.mesh, told, updates)
        result = BuildResult(manifest, accounts)
    if not result.failed:
        drop_staging(index)
    return result


def compact_index(settings: Settings, report: Report) -> Manifest:
    """Publish a version with one segment a shard, and the same citations and scores.

    Nothing is encoded and no setting but `index.build_threads` matters. Interrupted, a
    rerun keeps the shards that are whole.
    """
    index = settings.index.place
    manifest = read_manifest(index)
    require_writable(index)
    kept = {"vectors": manifest.vectors, "bm25_over": manifest.bm25_over}
    like = settings.index.model_copy(update=kept)
    quantiser = quantiser_of(index, manifest)
    plan = segment_plan("", quantiser, manifest.encoder.dimensions, like)
    calls = [(index, number, shard, plan) for number, shard in enumerate(manifest.shards)]
    return publish_compaction(index, manifest, _on_shards(compact_shard, calls, plan, report))
