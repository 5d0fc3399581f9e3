"""Train a small model with its task's loss, and write the result and its card into one folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cluster.models.adapters import TRAINING, read_object
from cluster.models.hardware import choose_dtype
from cluster.models.store import checksum
from pipelines.train.jobs import Job, Task, base_model
from pipelines.train.run_trainer import (
    STATE,
    BatchTrainer,
    Measures,
    Report,
    check_begun,
    length_batches,
    run_trainer,
    training_arguments,
    write_card,
)

# Name in peft of one of the two matrices whose product is an adapter's change.
SECOND_FACTOR = "lora_B"
# Parameters of a recipe that do not change the steps of a training.
NOT_IN_STEPS = {"checkpoint_every", "measure_every", "mixing"}

Elsewhere = Callable[[Job], None]


class LossModule(nn.Module):
    """Module whose output is the loss of a task, so that torch can average its gradients."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.model = task.model
        self._task = task

    def forward(self, places: Sequence[int]) -> Tensor:
        """Return the loss of the examples at these positions."""
        return self._task.loss(places)


def run_job(job: Job, licence: str, report: Report, elsewhere: Elsewhere | None = None) -> Measures:
    """Train `job`, or resume an interrupted run of it, and return the measured quality.

    The steps run here, or in `elsewhere`, which leaves the last checkpoint in the job's folder.
    Raises the errors of reading the data, the model and the checkpoint, and StorageError if the
    folder cannot be written.
    """
    torch.set_num_threads(job.base.threads)
    task = job.task()
    recipe = job.recipe.model_dump_json(exclude=NOT_IN_STEPS)
    check_begun(job.folder / STATE, f"{task.identity} {recipe}")
    if elsewhere is not None:
        elsewhere(job)
    take_steps(job, task, report)
    measured = _finish(job, task)
    base = base_model(job.base)
    notes: dict[str, Any] = {}
    # The result also depends on the base's training data, and on their licence.
    if (base / TRAINING).is_file():
        notes["before"] = read_object(base / TRAINING)
    write_card(
        job.folder,
        kind=job.kind,
        base={"model": job.base.model, "sha256": checksum(base)},
        recipe=job.recipe,
        data=job.data,
        held_out=job.held_out,
        licence=licence,
        measured=measured,
        **notes,
    )
    return measured


def take_steps(job: Job, task: Task, report: Report) -> None:
    """Run the steps after the last checkpoint in the job's folder.

    In a torch process group, each process takes its share of every batch, and the gradients are
    averaged.
    """
    recipe, folder = job.recipe, job.folder / STATE
    arguments = training_arguments(recipe, recipe.learning_rate, folder, task.device)
    share = slice(arguments.process_index, None, arguments.world_size)
    trainer = BatchTrainer(
        model=LossModule(task),
        args=arguments,
        train_dataset=range(len(task.sizes)),
        data_collator=lambda places: {"places": places[share]},
        batches=length_batches(task.sizes, recipe.batch, recipe.steps, recipe.seed),
        loss=lambda module, batch: module(**batch),
        head=task.head,
        head_rate=recipe.head_learning_rate,
    )
    run_trainer(trainer, report, lambda: _measure(task), recipe.measure_every)


def _finish(job: Job, task: Task) -> Measures:
    """Write the trained weights, rounded to 16 bits, and measure the model with them."""
    if job.recipe.rank:
        with torch.no_grad():
            for name, parameter in task.model.named_parameters():
                if parameter.requires_grad:
                    share = job.recipe.mixing if SECOND_FACTOR in name else 1
                    parameter.copy_((parameter * share).half())
    task.save(job.base.model, job.folder)
    return _measure(task)


def _measure(task: Task) -> Measures:
    """Measure the model in evaluation mode, in the number type of its training."""
    task.model.eval()
    fast = choose_dtype("auto", task.device) == torch.bfloat16
    with torch.inference_mode(), torch.autocast(task.device, torch.bfloat16, enabled=fast):
        return task.measure()
