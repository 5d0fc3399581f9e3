"""Parts of a training with transformers' Trainer that the reader and the writer share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from cluster.errors import InputError
from cluster.models.adapters import TRAINING
from cluster.models.hardware import choose_device
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of, write_atomically
from pipelines.train.card import render_card
from pipelines.train.recipe import TrainerRecipe

STATE = ".training"
Report = Callable[[str], None]
Measures = dict[str, float]


def training_arguments(
    recipe: TrainerRecipe, learning_rate: float, folder: Path, epochs: int = 1
) -> TrainingArguments:
    """Return the arguments of a training in bfloat16 whose checkpoints are in `folder`."""
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        learning_rate=learning_rate,
        weight_decay=recipe.weight_decay,
        warmup_steps=recipe.warmup,
        lr_scheduler_type="linear",
        max_grad_norm=recipe.clip,
        bf16=True,
        use_cpu=choose_device("auto") == "cpu",
        logging_steps=20,
        save_steps=recipe.checkpoint_every,
        save_total_limit=1,
        seed=recipe.seed,
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )


def run_trainer(trainer: Trainer, report: Report) -> None:
    """Train, or resume from the last checkpoint in the trainer's folder."""
    # PrinterCallback prints to standard output, which is for the command's result.
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Reporter(report))
    folder = Path(str(trainer.args.output_dir))
    trainer.train(resume_from_checkpoint=any(folder.glob("checkpoint-*")))


class _Reporter(TrainerCallback):
    def __init__(self, report: Report) -> None:
        self._report = report

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Report the loss."""
        if logs and "loss" in logs:
            loss = float(logs["loss"])
            self._report(f"step {state.global_step:,} of {state.max_steps:,}: loss {loss:.4f}")


def check_begun(state: Path, identity: str) -> None:
    """Record the training beside its checkpoints; raise InputError if they are of another one.

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
    kind: str,
    base: Mapping[str, str],
    recipe: TrainerRecipe,
    data: Iterable[File],
    held_out: Iterable[File],
    licence: str,
    measured: Measures,
) -> None:
    """Write the training to training.json, and the card that is rendered from it.

    `base` is the name of the base model (`model`) and its checksum (`sha256`).
    """
    training = {
        "kind": kind,
        "base": base,
        "recipe": recipe.model_dump(),
        "data": _described(data),
        "held_out": _described(held_out),
        "licence": licence,
        "measured": measured,
    }
    text = json.dumps(training, indent=1, ensure_ascii=False)
    write_atomically(folder / TRAINING, f"{text}\n".encode())
    write_atomically(folder / "README.md", render_card(training).encode())


def _described(files: Iterable[File]) -> list[dict[str, str]]:
    return [{"file": file.name, "sha256": sha256_of(file)} for file in files]
