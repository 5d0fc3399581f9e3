"""Ray tasks of the index jobs, and the local copies of the models that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray

from cluster.index.manifest import Artefact, TermsEntry
from cluster.index.put_segment import remove_partials
from cluster.index.write_segment import SegmentPlan
from cluster.models.adapters import model_folder, weights_checksum
from cluster.models.store import ModelStore
from cluster.settings.settings import Settings
from cluster.storage.object_store import File
from cluster.storage.places import Place
from pipelines.indexing.publish_index import publish_terms, publish_vocabulary
from pipelines.indexing.shards.build_shard import sample_vectors, train_quantiser
from pipelines.indexing.staging.plan_build import Progress, Report, staged_codec
from pipelines.indexing.staging.staging_tasks import learn_codec_of
from pipelines.vocabulary.give_names import NameFiles, given_names


def _in_task(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return `work` as a function that runs in a Ray task instead of the driver."""
    task = ray.remote(max_retries=3)(work)
    return lambda *args: ray.get(task.remote(*args))


make_vocabulary: Callable[..., Artefact] = _in_task(publish_vocabulary)
make_terms: Callable[..., tuple[TermsEntry, ...]] = _in_task(publish_terms)


@ray.remote(max_retries=3)
def _shard_task(work: Callable[..., Any], *args: Any) -> Any:
    return work(*args)


@ray.remote
def train_task(
    directories: Sequence[Place], shards: int, limit: int, path: Place, plan: SegmentPlan
) -> None:
    """Ray task that writes the quantiser of the index, trained on at most `limit` vectors."""
    # Only sq8 is trained: it learns the range of each dimension.
    limit = limit if plan.vectors == "sq8" else 0
    train_quantiser(sample_vectors(directories, shards, plan.dimensions, limit), path, plan)


def codec_for(
    build: str, sources: Sequence[File], settings: Settings, models: Models
) -> Place | None:
    """Return the token codec of `build`: that of an interrupted run, or a new one.

    Returns None if token vectors are not stored. A new codec is learned in a Ray task with the
    resources of an encoder, not in the driver.
    """
    index, coded, encoder = settings.index.place, settings.index.token_codec, settings.encoder
    if coded is None:
        return None
    found = staged_codec(index, build)
    if found is None:
        # An encoder actor reuses the process of this task, in which torch is already imported.
        gpus = encoder.gpus or None
        task = ray.remote(max_retries=3, num_cpus=1, num_gpus=gpus)(learn_codec_of)
        call = task.remote(sources, index, settings.split, encoder, coded, models.encoder)
        found = ray.get(call)
    return found


def on_shards(
    work: Callable[..., Any], calls: Sequence[tuple[Any, ...]], plan: SegmentPlan, report: Report,
) -> list[Any]:  # fmt: skip
    """Run `work` on each call, one per shard, as Ray tasks; return results in the order of `calls`.

    The first argument of each call is the index. Partial files left by killed tasks are removed
    before and after.
    """
    index: Place = calls[0][0]
    remove_partials(index)
    task = _shard_task.options(num_cpus=1, num_gpus=plan.gpus)
    refs = [task.remote(work, *call) for call in calls]
    waiting = list(refs)
    while waiting:
        _, waiting = ray.wait(waiting, num_returns=1)
        report(Progress("index", len(refs) - len(waiting), len(refs), "shards"))
    results: list[Any] = ray.get(refs)
    remove_partials(index)
    return results


@dataclass(frozen=True, slots=True)
class Models:
    """Local paths of the settings' models and files of names; `checksum` is the encoder's."""

    encoder: Path
    checksum: str
    names: NameFiles


def fetch_models(settings: Settings, report: Report) -> Models:
    """Fetch the encoder and the files with names of concepts.

    Raises InputError if one of them cannot be fetched or has an unknown format.
    """
    store = ModelStore()
    report(Progress("models", 0, 1, "models"))
    model = model_folder(settings.encoder, store)
    chosen = settings.vocabulary
    sha256 = chosen.concepts_sha256 or None
    names = NameFiles(
        store.resolve(chosen.concepts, sha256) if chosen.concepts else None,
        tuple(map(store.resolve, chosen.lexicons)),
    )
    # Read one name, so that a file in an unknown format fails now and not after embedding.
    next(given_names(names), None)
    report(Progress("models", 1, 1, "models"))
    return Models(model, weights_checksum(settings.encoder, store), names)
