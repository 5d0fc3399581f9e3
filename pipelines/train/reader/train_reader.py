"""Train the reader, from its data to the adapter: `citeray train reader`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn
from transformers import AutoModelForTokenClassification, AutoTokenizer, set_seed

from cluster.errors import InputError
from cluster.models.adapters import (
    TRAINING,
    is_adapter,
    model_folder,
    read_object,
    weights_checksum,
)
from cluster.models.hardware import choose_device
from cluster.models.load_safely import SAFELY
from cluster.models.readings import LABELS
from cluster.models.store import ModelStore
from cluster.settings.stages.encoder import EncoderSettings
from pipelines.train.adapt import load_with_head, low_rank, save_model
from pipelines.train.jobs import identity
from pipelines.train.reader.bioasq import read_answered
from pipelines.train.reader.make_examples import ReaderData, make_examples
from pipelines.train.reader.measure_reader import measure_reader
from pipelines.train.reader.reader_trainer import (
    HEAD,
    collate,
    encode_example,
    reader_loss,
    trained_parameters,
)
from pipelines.train.reader.records import ReaderExample
from pipelines.train.reader.tables import TABLES
from pipelines.train.recipe import ReaderPass, ReaderRecipe
from pipelines.train.run_trainer import (
    STATE,
    BatchTrainer,
    Measures,
    Report,
    check_begun,
    run_trainer,
    token_batches,
    training_arguments,
    write_card,
)

# The change of an adapter that is trained directly is multiplied by this.
LORA_SCALE = 2


@dataclass(frozen=True, slots=True)
class ReaderJob:
    """A training run: its recipe, data and base model, and the folder of the result."""

    recipe: ReaderRecipe
    base: EncoderSettings
    data: ReaderData
    folder: Path


def train_reader(job: ReaderJob, licence: str, report: Report) -> Measures:
    """Train the reader, write its adapter and card to `job.folder`, and return its quality.

    Resumes from the last checkpoint in the folder. Raises the errors of reading the data
    and the base model.
    """
    torch.set_num_threads(job.base.threads)
    recipe = job.recipe
    before = earlier_training(job)
    # Merging adapters draws random numbers, so it comes before the seed is set.
    base = model_folder(job.base)
    set_seed(recipe.seed)
    passes = make_examples(job.data, recipe)
    tokenizer = AutoTokenizer.from_pretrained(base, **SAFELY)
    model = add_low_rank(load_base(base), recipe) if recipe.targets else load_base(base)
    learned = [*job.data.files, *sorted(TABLES.iterdir())]
    check_begun(job.folder / STATE, f"{identity(base, learned)} {recipe.model_dump_json()}")
    averaged: list[dict[str, torch.Tensor]] = []
    for number, (part, examples) in enumerate(zip(recipe.passes, passes, strict=True), start=1):
        report(f"pass {number} of {len(passes)}: {len(examples):,} examples")
        state = job.folder / STATE / f"pass-{number}"
        run_pass(model, tokenizer, examples, job, part, state, report)
        if number > len(passes) - recipe.averaged:
            averaged.append({name: p.detach().clone() for name, p in model.named_parameters()})
    model.load_state_dict(mean_weights(averaged), strict=False)
    adapted = model
    if not isinstance(model, PeftModel):
        adapted = extract_adapter(load_base(base), model, recipe.rank)
    save_model(adapted.base_model.model, tokenizer, adapted, job.base.model, job.folder)
    measured = {}
    if job.data.held_out:
        questions = read_answered(job.data.held_out)
        measured = measure_reader(adapted, tokenizer, questions, recipe.max_tokens)
    write_card(
        job.folder,
        kind="reader",
        base={"model": job.base.model, "sha256": weights_checksum(job.base)},
        recipe=recipe,
        data=job.data.files,
        held_out=job.data.held_out,
        licence=licence,
        measured=measured,
        **before,
    )
    return measured


def earlier_training(job: ReaderJob) -> dict[str, Any]:
    """Return the training of the base model as `before`, for the card; nothing if it has none.

    Raises InputError if the base model is an adapter of another kind, or would be overwritten.
    """
    base = ModelStore().resolve(job.base.model)
    known = read_object(base / TRAINING) if (base / TRAINING).is_file() else {}
    if is_adapter(base) and known.get("kind") != "reader":
        raise InputError(
            f"{job.base.model} is an adapter, but no reader: name a plain model or a reader as "
            "the base"
        )
    if base.resolve() == job.folder.resolve():
        raise InputError(f"{job.folder} is the base model: write the reader to another folder")
    return {"before": known} if known else {}


def mean_weights(states: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Return the mean of each weight over `states`, all of one model."""
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


def load_base(folder: Path) -> Any:
    """Load a base model with a new head for the reader's labels, without dropout."""
    # On a CPU, dropout takes more time than the matrix products.
    dropout = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    return load_with_head(AutoModelForTokenClassification, folder, LABELS, **dropout)


def add_low_rank(model: nn.Module, recipe: ReaderRecipe) -> PeftModel:
    """Return `model` with a new adapter of the recipe's `targets`, which includes the head."""
    config = LoraConfig(
        task_type="TOKEN_CLS",
        r=recipe.rank,
        lora_alpha=LORA_SCALE * recipe.rank,
        target_modules=recipe.targets,
        modules_to_save=[HEAD],
    )
    return get_peft_model(model, config)


def run_pass(
    model: Any,
    tokenizer: Any,
    examples: Sequence[ReaderExample],
    job: ReaderJob,
    part: ReaderPass,
    folder: Path,
    report: Report,
) -> None:
    """Train `model` for one pass over `examples`; resumes from a checkpoint in `folder`."""
    recipe, device = job.recipe, choose_device(job.base.device)
    trained_parameters(model, part.frozen_layers)
    rows = [encode_example(tokenizer, example, recipe.max_tokens) for example in examples]

    def loss(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        outputs = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        return reader_loss(outputs.logits.float(), batch, part.losses)

    trainer = BatchTrainer(
        model=model,
        args=training_arguments(recipe, part.learning_rate, folder, device),
        train_dataset=rows,
        data_collator=partial(collate, pad_id=tokenizer.pad_token_id),
        batches=token_batches([len(r["input_ids"]) for r in rows], recipe.tokens, recipe.seed),
        loss=loss,
        head=HEAD,
        head_rate=recipe.head_rate * part.learning_rate,
    )
    run_trainer(trainer, report)


def extract_adapter(base: nn.Module, trained: nn.Module, rank: int) -> PeftModel:
    """Return `base` with an adapter of `rank` that approximates `trained`.

    Both are token classifiers of one architecture; `base` is changed in place. The head is part of
    the adapter.
    """
    before = {name: p.detach().clone() for name, p in base.named_parameters()}
    # The trained model may be on a GPU; the base model is on the CPU.
    after = {name: p.detach().to(before[name]) for name, p in trained.named_parameters()}
    changed = [name for name in _matrices(base) if not torch.equal(before[name], after[name])]
    targets = [name.removesuffix(".weight") for name in changed]
    config = LoraConfig(
        task_type="TOKEN_CLS",
        r=rank,
        lora_alpha=rank,
        target_modules=targets,
        modules_to_save=[HEAD],
    )
    adapted = get_peft_model(base, config)
    with torch.no_grad():
        for name, target in zip(changed, targets, strict=True):
            layer: Any = adapted.base_model.model.get_submodule(target)
            b, a = low_rank(after[name] - before[name], rank)
            layer.lora_A["default"].weight.copy_(a)
            layer.lora_B["default"].weight.copy_(b)
        head: Any = adapted.base_model.model.get_submodule(HEAD)
        head.modules_to_save["default"].load_state_dict(trained.get_submodule(HEAD).state_dict())
    return adapted


def _matrices(model: nn.Module) -> list[str]:
    return [n for n, p in model.named_parameters() if ".layer." in n and p.ndim == 2]
