"""Train a job to its end and write the result and its card into one folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from cluster.models.adapters import TRAINING, read_object
from cluster.models.store import checksum
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of, write_atomically
from pipelines.train.card import render_card
from pipelines.train.cross_encoder_job import CrossEncoderJob
from pipelines.train.jobs import Job, Trainable, base_model
from pipelines.train.loop import Measures, Report, Worker, measure, train

CARD, LOG = "README.md", "log.jsonl"
# Files that only a run needs; the store's checksums skip names that start with a dot.
STATE = ".training"
CHECKPOINT = f"{STATE}/checkpoint.safetensors"
# Name in peft of one of the two matrices whose product is an adapter's change.
SECOND_FACTOR = "lora_B"

Tell = Callable[[Report], None]
Elsewhere = Callable[[Job], None]


def run_job(job: Job, licence: str, tell: Tell, elsewhere: Elsewhere | None = None) -> Measures:
    """Train `job`, or resume an interrupted run of it, and return the measured quality.

    The steps run here, or in `elsewhere`, which leaves the last checkpoint in the job's folder.
    Raises the errors of reading the data, the model and the checkpoint, and StorageError if the
    folder cannot be written.
    """
    torch.set_num_threads(job.base.threads)
    (job.folder / STATE).mkdir(parents=True, exist_ok=True)
    task = job.task()
    if elsewhere is not None:
        elsewhere(job)
    take_steps(job, task, tell)
    measured = finish(job, task)
    training = _training(job, licence, measured)
    text = json.dumps(training, indent=1, ensure_ascii=False)
    write_atomically(job.folder / TRAINING, text.encode())
    write_atomically(job.folder / CARD, render_card(training).encode())
    return measured


def take_steps(job: Job, task: Trainable, tell: Tell, worker: Worker | None = None) -> None:
    """Run the steps after the checkpoint in the job's folder; each report is logged there."""

    def note(report: Report) -> None:
        with (job.folder / STATE / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(asdict(report)) + "\n")
        tell(report)

    train(task, job.recipe, job.folder / CHECKPOINT, note, worker)


def finish(job: Job, task: Trainable) -> Measures:
    """Write the trained weights, and measure them as they are written."""
    if job.recipe.rank:
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                if parameter.requires_grad:
                    share = job.recipe.mixing if SECOND_FACTOR in name else 1
                    parameter.copy_((parameter * share).half())
    task.save(job.base.model, job.folder)
    return measure(task)


def _training(job: Job, licence: str, measured: Measures) -> dict[str, Any]:
    base = base_model(job.base)
    training = {
        "kind": job.kind,
        "base": {"model": job.base.model, "sha256": checksum(base)},
        "recipe": job.recipe.model_dump(),
        "data": [_described(file) for file in job.data],
        "held_out": [_described(file) for file in job.held_out],
        "licence": licence,
        "measured": measured,
    }
    # The result also depends on the base's training data, and on their licence.
    if (base / TRAINING).is_file():
        training["before"] = read_object(base / TRAINING)
    if isinstance(job, CrossEncoderJob):
        training |= job.notes()
    return training


def _described(file: File) -> dict[str, str]:
    return {"file": file.name, "sha256": sha256_of(file)}
