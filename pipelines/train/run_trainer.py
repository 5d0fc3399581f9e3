"""Training with transformers' Trainer: batches, learning rates, checkpoints, progress and cards."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_pt_utils import LengthGroupedSampler

from cluster.errors import CiteRayError, InputError
from cluster.models.adapters import TRAINING
from cluster.models.hardware import choose_dtype, keep_freed_memory
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of, write_atomically
from pipelines.train.card import CARD, render_card
from pipelines.train.recipe import TrainerRecipe

# Folder of files that only the run needs; checksums of models skip names that start with a dot.
STATE = ".training"
LOG = "log.jsonl"
# Each new padded length makes oneDNN build new kernels, which takes seconds: pad to multiples.
PAD_TO = 64
LOGGING_STEPS = 20

Report = Callable[[str], None]
Measures = dict[str, float]
Batches = Sequence[list[int]]


@dataclass
class OneDeviceArguments(TrainingArguments):
    """Trainer's arguments for training on `one_device`, such as "cuda:1", and on no other device.

    Trainer would use the first GPU and split batches over all visible ones (torch's DataParallel).
    """

    one_device: str = "cpu"

    @property
    def device(self) -> torch.device:
        """The device to train on; a numbered GPU also becomes Accelerate's, the current one."""
        found, chosen = super().device, torch.device(self.one_device)
        if chosen.index is None:
            return found
        torch.cuda.set_device(chosen)
        return chosen

    @property
    def n_gpu(self) -> int:
        """The number of GPUs: 0 or 1."""
        visible: int = super().n_gpu
        return min(visible, 1)


def training_arguments(
    recipe: TrainerRecipe, learning_rate: float, folder: Path, device: str, epochs: int = 1
) -> TrainingArguments:
    """Return Trainer's arguments; checkpoints are in `folder`.

    Uses bfloat16 if the hardware supports it; float16 would need scaled losses.
    """
    return OneDeviceArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=recipe.weight_decay,
        warmup_steps=recipe.warmup,
        lr_scheduler_type="linear",
        max_grad_norm=recipe.clip,
        bf16=choose_dtype("auto", device) == torch.bfloat16,
        use_cpu=device == "cpu",
        logging_steps=min(LOGGING_STEPS, recipe.checkpoint_every),
        logging_nan_inf_filter=False,
        save_steps=recipe.checkpoint_every,
        save_total_limit=1,
        seed=recipe.seed,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        one_device=device,
    )


def token_batches(lengths: Sequence[int], tokens: int, seed: int) -> list[list[int]]:
    """Return shuffled batches of about `tokens` tokens, each of texts of similar length."""
    draw = random.Random(seed)
    buckets: dict[int, list[int]] = {}
    batches = []
    for position in draw.sample(range(len(lengths)), len(lengths)):
        padded = -(-lengths[position] // PAD_TO) * PAD_TO
        bucket = buckets.setdefault(padded, [])
        bucket.append(position)
        if len(bucket) * padded >= tokens:
            batches.append(buckets.pop(padded))
    batches += buckets.values()
    draw.shuffle(batches)
    return batches


def length_batches(lengths: Sequence[int], batch: int, steps: int, seed: int) -> list[list[int]]:
    """Return `steps` batches of `batch` examples of similar length, reshuffled in each epoch."""
    generator = torch.Generator().manual_seed(seed)
    sampler = LengthGroupedSampler(batch, lengths=list(lengths), generator=generator)
    places = chain.from_iterable(repeat(sampler))
    return [list(islice(places, batch)) for _ in range(steps)]


class BatchTrainer(Trainer):
    """Trainer with given batches and loss, and a separate learning rate for a new head.

    `loss` returns the scalar loss of a model for a batch. `head` is a part of the names of the
    head's parameters; if it is empty, all parameters have the same learning rate.
    """

    def __init__(
        self,
        *,
        batches: Batches,
        loss: Callable[[Any, Any], Tensor],
        head: str = "",
        head_rate: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._batches = batches
        self._loss = loss
        self._head = head
        self._head_rate = head_rate

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches; every process of a distributed training gets all of them."""
        dataset: Any = self.train_dataset
        return DataLoader(dataset, batch_sampler=self._batches, collate_fn=self.data_collator)

    def create_optimizer(self, *unused: Any) -> torch.optim.Optimizer:
        """Return AdamW with a separate learning rate for the head."""
        groups: dict[bool, list[nn.Parameter]] = {False: [], True: []}
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                groups[bool(self._head) and self._head in name].append(parameter)
        rates = {False: self.args.learning_rate, True: self._head_rate}
        self.optimizer = torch.optim.AdamW(
            [{"params": found, "lr": rates[head]} for head, found in groups.items() if found],
            weight_decay=self.args.weight_decay,
        )
        return self.optimizer

    def compute_loss(self, model: Any, inputs: Any, *unused: Any, **options: Any) -> Tensor:
        """Return the loss of a batch. Raises CiteRayError if it is not finite."""
        loss = self._loss(model, inputs)
        if not torch.isfinite(loss):
            raise CiteRayError(
                f"the loss at step {self.state.global_step + 1} is {loss.item()}: train again "
                "with a lower learning rate"
            )
        return loss


class _Progress(TrainerCallback):
    """Reports the loss, and the measures after each `every` steps, and appends both to `log`."""

    def __init__(
        self, report: Report, log: Path, measure: Callable[[], Measures] | None, every: int
    ) -> None:
        self._report = report
        self._log = log
        self._measure = measure
        self._every = every

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Log the last step, and measure the model if it is due."""
        last = state.global_step == state.max_steps
        control.should_log = control.should_log or last
        due = self._every and state.global_step % self._every == 0 and not last
        if due and self._measure and state.is_world_process_zero:
            self._write(state, self._measure())

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Report the mean loss since the previous report."""
        if logs and "loss" in logs and state.is_world_process_zero:
            self._write(state, {"loss": float(logs["loss"])})

    def _write(self, state: Any, values: Measures) -> None:
        row = {"step": state.global_step, "steps": state.max_steps, **values}
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        shown = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        self._report(f"step {state.global_step:,} of {state.max_steps:,}: {shown}")


def run_trainer(
    trainer: Trainer,
    report: Report,
    measure: Callable[[], Measures] | None = None,
    measure_every: int = 0,
) -> None:
    """Train, or resume from the last complete checkpoint in the trainer's folder.

    Raises CiteRayError if the loss is not finite, and InputError for a damaged checkpoint.
    """
    keep_freed_memory()
    # PrinterCallback prints to standard output, which is for the command's result.
    trainer.remove_callback(PrinterCallback)
    folder = Path(str(trainer.args.output_dir))
    folder.mkdir(parents=True, exist_ok=True)
    trainer.add_callback(_Progress(report, folder / LOG, measure, measure_every))
    # Trainer writes the state last: a checkpoint without it is incomplete.
    complete = [path.parent for path in folder.glob("checkpoint-*/trainer_state.json")]
    last = max(complete, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    try:
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    except SafetensorError as error:
        raise InputError(
            f"{last}: damaged checkpoint ({error}); remove it to start again"
        ) from error


def check_begun(state: Path, identity: str) -> None:
    """Record the training's identity; raise InputError if the folder holds another training's.

    `identity` is one line that differs for other data, another recipe or another base model.
    """
    path = state / "identity.txt"
    found = f"{identity}\n"
    if path.is_file() and path.read_text(encoding="utf-8") != found:
        raise InputError(
            f"{state}: left by a training with other data, another recipe or another base "
            "model; train into another folder, or remove it to train anew"
        )
    state.mkdir(parents=True, exist_ok=True)
    write_atomically(path, found.encode())


def write_card(
    folder: Path,
    *,
    kind: str,
    base: Mapping[str, str],
    recipe: TrainerRecipe,
    data: Iterable[File],
    held_out: Iterable[File],
    licence: str,
    measured: Measures,
    **notes: Any,
) -> None:
    """Write the training to training.json, and the card that is rendered from it.

    `base` is the name of the base model (`model`) and its checksum (`sha256`); `notes` are further
    keys of training.json.
    """
    training = {
        "kind": kind,
        "base": base,
        "recipe": recipe.model_dump(),
        "data": _described(data),
        "held_out": _described(held_out),
        "licence": licence,
        "measured": measured,
        **notes,
    }
    text = json.dumps(training, indent=1, ensure_ascii=False)
    write_atomically(folder / TRAINING, f"{text}\n".encode())
    # From the text, so that the card can be rendered again from the file.
    write_atomically(folder / CARD, render_card(json.loads(text)).encode())


def _described(files: Iterable[File]) -> list[dict[str, str]]:
    return [{"file": file.name, "sha256": sha256_of(file)} for file in files]
