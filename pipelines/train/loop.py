"""The training loop: AdamW over a task's examples, which resumes to the same result.

The seed and the examples of each step depend only on its number, so that a checkpoint needs no
other state than the parameters, the optimizer and the step.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
import torch.distributed
from torch import Tensor, nn
from torch.nn.parameter import Parameter

from cluster.errors import CiteRayError
from cluster.models.hardware import choose_dtype
from pipelines.train.checkpoint import read_checkpoint, write_checkpoint
from pipelines.train.recipe import Recipe

Measures = dict[str, float]

# Batches of examples of similar length are made from this many steps at a time, to limit padding.
POOL = 16


class Task(Protocol):
    """A training task: a model, its loss and its measures.

    `sizes` are the lengths of all examples, in any unit. `identity` distinguishes tasks whose
    checkpoints must not be mixed up. `head` is a part of the names of randomly initialised
    parameters.
    """

    model: nn.Module
    device: str
    sizes: Sequence[int]
    identity: str
    head: str

    def loss(self, places: Sequence[int]) -> Tensor:
        """Return the scalar loss of the examples at `places`, with gradients."""
        ...

    def measure(self) -> Measures:
        """Return named measures of the model on held-out examples; {} if there are none."""
        ...


def _alone(gradients: list[Tensor]) -> None:
    """No-op: with one worker, the gradients are already the mean."""


def _averaged(gradients: list[Tensor]) -> None:
    for gradient in gradients:
        torch.distributed.all_reduce(gradient)
        gradient /= torch.distributed.get_world_size()


@dataclass(frozen=True, slots=True)
class Worker:
    """One of `count` workers; `average` replaces gradients with their mean over all workers."""

    rank: int = 0
    count: int = 1
    average: Callable[[list[Tensor]], None] = _alone

    @classmethod
    def of_group(cls) -> Worker:
        """Return this process's worker in torch's process group, which must be initialised."""
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size(), _averaged)


@dataclass(frozen=True, slots=True)
class Report:
    """Progress of a run: the mean loss since the last report, and the measures, if any."""

    step: int
    steps: int
    loss: float
    measures: Measures


def train(
    task: Task,
    recipe: Recipe,
    checkpoint: Path,
    tell: Callable[[Report], None],
    worker: Worker | None = None,
) -> None:
    """Train `task` to the recipe's last step, resuming from `checkpoint` if it exists.

    A resumed run gives the same weights as an uninterrupted one. Raises CiteRayError if the loss is
    not finite, and InputError for a checkpoint of another recipe or other data.
    """
    worker = worker or Worker()
    parameters = {name: p for name, p in task.model.named_parameters() if p.requires_grad}
    optimizer = _optimizer(parameters, task.head, recipe)
    identity = run_identity(task, recipe)
    begun = read_checkpoint(checkpoint, identity, parameters, optimizer)
    losses: list[float] = []
    for step, places in enumerate(batches(task.sizes, recipe, begun), begun):
        losses.append(_step(task, recipe, optimizer, places, step, worker))
        done = step + 1
        last = done == recipe.steps
        if worker.rank or not (last or _due(done, recipe.checkpoint_every)):
            continue
        write_checkpoint(checkpoint, identity, done, parameters, optimizer)
        measures = measure(task) if not last and _due(done, recipe.measure_every) else {}
        tell(Report(done, recipe.steps, sum(losses) / len(losses), measures))
        losses.clear()


def run_identity(task: Task, recipe: Recipe) -> str:
    """Return an identity that is equal for runs that may resume from each other's checkpoints."""
    no_step_depends_on = {"checkpoint_every", "measure_every", "mixing"}
    return f"{task.identity} {recipe.model_dump_json(exclude=no_step_depends_on)}"


def measure(task: Task) -> Measures:
    """Measure the model in evaluation mode, without gradients."""
    task.model.eval()
    with torch.inference_mode(), autocast(task.device):
        return task.measure()


def autocast(device: str) -> torch.autocast:
    """Return an autocast to bfloat16, enabled where the hardware supports it.

    float16 would need scaled losses.
    """
    fast = choose_dtype("auto", device) == torch.bfloat16
    return torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=fast)


def batches(sizes: Sequence[int], recipe: Recipe, begun: int) -> Iterator[list[int]]:
    """Yield the examples of each step from `begun` on; each epoch has all of them, reshuffled."""
    for number in range(begun // POOL, math.ceil(recipe.steps / POOL)):
        pool = _pool(sizes, recipe, number)
        first = number * POOL
        yield from pool[max(begun - first, 0) : recipe.steps - first]


def _pool(sizes: Sequence[int], recipe: Recipe, number: int) -> list[list[int]]:
    """Return the batches of POOL steps from step `number` * POOL on, each of similar sizes."""
    count = POOL * recipe.batch
    draws = range(number * count, (number + 1) * count)
    epochs = {
        epoch: _epoch(len(sizes), recipe.seed, epoch) for epoch in {d // len(sizes) for d in draws}
    }
    drawn = [epochs[draw // len(sizes)][draw % len(sizes)] for draw in draws]
    drawn.sort(key=lambda place: sizes[place])
    cut = [drawn[first : first + recipe.batch] for first in range(0, count, recipe.batch)]
    random.Random(f"{recipe.seed} pool {number}").shuffle(cut)
    return cut


def _epoch(examples: int, seed: int, epoch: int) -> list[int]:
    order = list(range(examples))
    random.Random(f"{seed} epoch {epoch}").shuffle(order)
    return order


def _step(
    task: Task,
    recipe: Recipe,
    optimizer: torch.optim.Optimizer,
    places: Sequence[int],
    step: int,
    worker: Worker,
) -> float:
    """Run one step of the optimizer and return the loss before it."""
    # Seed dropout by step; the generators' states on CPU and GPU then need no checkpoint.
    torch.manual_seed((recipe.seed * recipe.steps + step) * worker.count + worker.rank)
    task.model.train()
    with autocast(task.device):
        loss = task.loss(places[worker.rank :: worker.count])
    if not torch.isfinite(loss):
        raise CiteRayError(
            f"the loss at step {step + 1} is {loss.item()}: train again with a lower learning rate"
        )
    torch.autograd.backward(loss)
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    worker.average([p.grad for p in trained if p.grad is not None])
    nn.utils.clip_grad_norm_(trained, recipe.clip)
    for group in optimizer.param_groups:
        group["lr"] = group["top"] * rate(step, recipe)
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.item())


def rate(step: int, recipe: Recipe) -> float:
    """Return the learning-rate factor of `step` (from 0): linear warm-up, then decay to 0."""
    warm = max(1, round(recipe.warmup * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return (recipe.steps - step) / (recipe.steps - warm + 1)


def _due(done: int, every: int) -> bool:
    return every > 0 and done % every == 0


def _optimizer(
    parameters: dict[str, Parameter], head: str, recipe: Recipe
) -> torch.optim.Optimizer:
    heads = [p for name, p in parameters.items() if head and head in name]
    rest = [p for name, p in parameters.items() if not (head and head in name)]
    groups = [
        {"params": rest, "top": recipe.learning_rate},
        {"params": heads, "top": recipe.head_learning_rate},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], weight_decay=recipe.weight_decay)
