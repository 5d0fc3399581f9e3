"""The training loop: AdamW over a task's examples, resumable to the same result.

Each step seeds itself and draws its examples by its number, so that what a run does from a step
on depends on the weights and on nothing else that would have to be kept.
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

# Batches of like lengths are cut from so many at a time, so that little is padded.
POOL = 16


class Task(Protocol):
    """What is learned: a model, how wrong it is on some examples, and how good it is at last.

    `sizes` are the lengths of all examples, in any unit; `identity` tells apart tasks whose
    checkpoints must not be mixed up. `head` is in the names of the parameters that start from
    noise.
    """

    model: nn.Module
    device: str
    sizes: Sequence[int]
    identity: str
    head: str

    def loss(self, places: Sequence[int]) -> Tensor:
        """Scalar loss of the examples at `places`, with gradients."""
        ...

    def measure(self) -> Measures:
        """Measures of the model on held-out examples by name; {} where there are none."""
        ...


def _alone(gradients: list[Tensor]) -> None:
    """The gradients of one worker are their own mean."""


def _averaged(gradients: list[Tensor]) -> None:
    for gradient in gradients:
        torch.distributed.all_reduce(gradient)
        gradient /= torch.distributed.get_world_size()


@dataclass(frozen=True, slots=True)
class Worker:
    """One of `count` that train together; `average` makes gradients the mean over all of them."""

    rank: int = 0
    count: int = 1
    average: Callable[[list[Tensor]], None] = _alone

    @classmethod
    def of_group(cls) -> Worker:
        """The worker that this process is in torch's process group, which must be set up."""
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size(), _averaged)


@dataclass(frozen=True, slots=True)
class Report:
    """How a run stands: the mean loss since the last report, and what was measured, if it was."""

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
    """Train `task` to the recipe's last step, from the step of `checkpoint` if there is one.

    Gives the same weights as a run that was never interrupted. Raises CiteRayError if the loss is
    no longer a number, InputError for a checkpoint of another recipe or of other data.
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
    """Equal for runs that may go on from one another's checkpoints."""
    no_step_depends_on = {"checkpoint_every", "measure_every", "mixing"}
    return f"{task.identity} {recipe.model_dump_json(exclude=no_step_depends_on)}"


def measure(task: Task) -> Measures:
    """How good the model is now; nothing about it changes."""
    task.model.eval()
    with torch.inference_mode(), autocast(task.device):
        return task.measure()


def autocast(device: str) -> torch.autocast:
    """bfloat16 where the hardware multiplies in it; float16 would need its losses scaled."""
    fast = choose_dtype("auto", device) == torch.bfloat16
    return torch.autocast(device.partition(":")[0], torch.bfloat16, enabled=fast)


def batches(sizes: Sequence[int], recipe: Recipe, begun: int) -> Iterator[list[int]]:
    """The examples of each step from `begun` on: all of them once an epoch, newly shuffled."""
    for number in range(begun // POOL, math.ceil(recipe.steps / POOL)):
        pool = _pool(sizes, recipe, number)
        first = number * POOL
        yield from pool[max(begun - first, 0) : recipe.steps - first]


def _pool(sizes: Sequence[int], recipe: Recipe, number: int) -> list[list[int]]:
    """The batches of POOL steps from step `number` * POOL on, each of examples of like sizes."""
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
    """One step of the optimizer; gives the loss before it."""
    # For dropout. With the generator's state in the checkpoint instead, GPUs would need theirs.
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
    """The share of the learning rate that `step` (from 0) gets: a climb, then a fall to 0."""
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
