"""Train a small language model to write answers (LoRA, Hu et al. 2021): `citeray train writer`."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Trainer,
    set_seed,
)

from cluster.errors import InputError
from cluster.models.adapters import quiet_loading
from cluster.models.load_safely import SAFE_WEIGHTS, SAFELY
from cluster.models.store import ModelStore, as_transformers_folder, checksum
from cluster.storage.whole_files import sha256_of
from pipelines.train.adapt import save_adapter
from pipelines.train.reader.bioasq import read_answered
from pipelines.train.reader.reader_trainer import UNKNOWN, Encoded, TokenBatches
from pipelines.train.recipe import WriterRecipe
from pipelines.train.run_trainer import (
    STATE,
    Measures,
    Report,
    check_begun,
    run_trainer,
    training_arguments,
    write_card,
)
from pipelines.train.writer.writer_examples import Ask, WriterExample, writer_examples


@dataclass(frozen=True, slots=True)
class WriterJob:
    """A training run: its recipe, base model, BioASQ files, prompt, and the result's folder."""

    recipe: WriterRecipe
    base: str
    sha256: str
    questions: tuple[Path, ...]
    held_out: tuple[Path, ...]
    ask: Ask
    folder: Path


def train_writer(job: WriterJob, licence: str, report: Report) -> Measures:
    """Train the writer, write its adapter and card to `job.folder`, and return its quality.

    Resumes from the last checkpoint in the folder. Raises the errors of reading the data and the
    base model, and InputError if no example fits.
    """
    recipe = job.recipe
    set_seed(recipe.seed)
    stored = ModelStore().resolve(job.base, job.sha256 or None)
    base, found = as_transformers_folder(stored), checksum(stored)
    tokenizer = AutoTokenizer.from_pretrained(base, **SAFELY)
    rows = _rows(job, job.questions, tokenizer)
    measured_on = _rows(job, job.held_out, tokenizer) if job.held_out else []
    sums = " ".join(map(sha256_of, job.questions))
    check_begun(job.folder / STATE, f"{found} {sums} {recipe.model_dump_json()}")
    adapted = _with_adapter(base, recipe)
    before = _perplexity(adapted, measured_on, tokenizer)
    trainer = WriterTrainer(
        model=adapted,
        args=training_arguments(recipe, recipe.learning_rate, job.folder / STATE, recipe.epochs),
        train_dataset=Encoded(rows),
        tokens=recipe.tokens,
        pad_id=tokenizer.eos_token_id,
    )
    run_trainer(trainer, report)
    after = _perplexity(adapted, measured_on, tokenizer)
    measured = {"perplexity before": before, "perplexity": after} if measured_on else {}
    save_adapter(adapted, job.base, job.folder)
    named = {"model": job.base, "sha256": found}
    files, held_out = job.questions, job.held_out
    write_card(job.folder, "writer", named, recipe, files, held_out, licence, measured)
    return measured


def _with_adapter(base: Path, recipe: WriterRecipe) -> PeftModel:
    """Return the model in `base` with a new adapter, which changes nothing yet."""
    with quiet_loading():
        model = AutoModelForCausalLM.from_pretrained(base, **SAFE_WEIGHTS, dtype=torch.float32)
    options = LoraConfig(
        task_type="CAUSAL_LM",
        r=recipe.rank,
        lora_alpha=recipe.alpha,
        target_modules=recipe.targets,
    )
    return get_peft_model(model, options)


def _rows(job: WriterJob, files: Sequence[Path], tokenizer: Any) -> list[dict[str, Any]]:
    """Return the token ids and labels of the examples that fit into `max_tokens`."""
    draw = random.Random(job.recipe.seed)
    examples = writer_examples(read_answered(files), job.ask, job.recipe, draw)
    rows = [encode_writing(tokenizer, example) for example in examples]
    rows = [row for row in rows if len(row["input_ids"]) <= job.recipe.max_tokens]
    if not rows:
        raise InputError(
            f"{', '.join(map(str, files))}: no answer fits the recipe: raise max_tokens or "
            "max_words, or lower least_covered"
        )
    return rows


def encode_writing(tokenizer: Any, example: WriterExample) -> dict[str, Any]:
    """Return the token ids of the prompt and the answer; only the answer's tokens have labels."""
    prompt = tokenizer.apply_chat_template(
        list(example.messages), add_generation_prompt=True, tokenize=False
    )
    asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    answer = tokenizer(example.answer, add_special_tokens=False)["input_ids"]
    answer = [*answer, tokenizer.eos_token_id]
    return {"input_ids": [*asked, *answer], "labels": [*[UNKNOWN] * len(asked), *answer]}


def collate_writing(rows: Sequence[dict[str, Any]], pad_id: int) -> dict[str, Tensor]:
    """Return padded `input_ids`, `attention_mask` and `labels`, each (rows, tokens).

    Padding is on the left, so that the answers end together and `writing_loss` needs only the last
    logits.
    """
    longest = max(len(row["input_ids"]) for row in rows)

    def padded(name: str, filler: int) -> Tensor:
        found = [[filler] * (longest - len(row[name])) + row[name] for row in rows]
        return torch.tensor(found)

    lengths = [len(row["input_ids"]) for row in rows]
    mask = [[0] * (longest - length) + [1] * length for length in lengths]
    return {
        "input_ids": padded("input_ids", pad_id),
        "attention_mask": torch.tensor(mask),
        "labels": padded("labels", UNKNOWN),
    }


def writing_loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the answers' tokens.

    Logits are computed only from the first answer token of the batch on: a small model spends a
    third of its time on its vocabulary.
    """
    labels = batch["labels"]
    answered = int((labels != UNKNOWN).sum(1).max())
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        logits_to_keep=answered + 1,
    ).logits[:, :-1]
    return cross_entropy(
        logits.float().flatten(0, 1), labels[:, -answered:].flatten(), ignore_index=UNKNOWN
    )


class WriterTrainer(Trainer):
    """Trainer with batches of constant token count, and a loss on the answers only."""

    def __init__(self, *args: Any, tokens: int, pad_id: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tokens = tokens
        self._pad_id = pad_id

    def get_train_dataloader(self) -> DataLoader[Any]:
        """Return the batches; raises ValueError if the training set is not Encoded."""
        if not isinstance(self.train_dataset, Encoded):
            raise ValueError("the writer trains on encoded examples")
        lengths = [len(row["input_ids"]) for row in self.train_dataset.rows]
        return DataLoader(
            self.train_dataset,
            batch_sampler=TokenBatches(lengths, self._tokens, self.args.seed),
            collate_fn=lambda rows: collate_writing(rows, self._pad_id),
        )

    def compute_loss(
        self, model: Any, inputs: dict[str, Tensor], *unused: Any, **options: Any
    ) -> Tensor:
        """Return the loss of a batch."""
        return writing_loss(model, inputs)


@torch.no_grad()
def _perplexity(model: Any, rows: Sequence[dict[str, Any]], tokenizer: Any) -> float:
    """Return the perplexity of the answers' tokens; `nan` without rows."""
    model.eval()
    total, count = 0.0, 0
    for row in rows:
        batch = collate_writing([row], tokenizer.eos_token_id)
        batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
        answered = int((batch["labels"] != UNKNOWN).sum())
        total += float(writing_loss(model, batch)) * answered
        count += answered
    model.train()
    return math.exp(total / count) if count else math.nan
