"""Train a small language model to complete prompts (LoRA, Hu et al. 2021).

`citeray train writer` trains it to write answers, and `citeray train namer` to name them.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    set_seed,
)

from cluster.errors import InputError
from cluster.models.adapters import quiet_loading
from cluster.models.hardware import choose_device
from cluster.models.load_safely import SAFE_WEIGHTS, SAFELY
from cluster.models.store import ModelStore, as_transformers_folder, checksum
from cluster.storage.whole_files import sha256_of
from pipelines.train.adapt import add_adapter, save_adapter
from pipelines.train.reader.bioasq import AnsweredQuestion, read_answered
from pipelines.train.reader.reader_trainer import UNKNOWN
from pipelines.train.recipe import NamerRecipe, WriterRecipe
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
from pipelines.train.writer.namer_examples import namer_examples

# Returns prompts and their completions, given the questions and the model's tokeniser.
Complete = Callable[[Sequence[AnsweredQuestion], Any], Iterator[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class WriterJob:
    """A training run: its recipe, base model, BioASQ files, examples, and the result's folder."""

    kind: Literal["writer", "namer"]
    recipe: WriterRecipe | NamerRecipe
    base: str
    sha256: str
    questions: tuple[Path, ...]
    held_out: tuple[Path, ...]
    examples: Complete
    folder: Path


def writer_completions(
    questions: Sequence[AnsweredQuestion], tokenizer: Any, *, recipe: WriterRecipe, ask: Ask
) -> Iterator[tuple[str, str]]:
    """Yield the examples of a writer: prompts made by `ask`, and gold answers."""
    for example in writer_examples(questions, ask, recipe, random.Random(recipe.seed)):
        prompt = tokenizer.apply_chat_template(
            list(example.messages), add_generation_prompt=True, tokenize=False
        )
        yield prompt, example.answer + tokenizer.eos_token


def namer_completions(
    questions: Sequence[AnsweredQuestion], tokenizer: Any, *, recipe: NamerRecipe
) -> Iterator[tuple[str, str]]:
    """Yield the examples of a namer: prompts, and gold names from their sentences."""
    return namer_examples(questions, recipe, random.Random(recipe.seed))


def train_writer(job: WriterJob, licence: str, report: Report) -> Measures:
    """Train the model, write its adapter and card to `job.folder`, and return its quality.

    Resumes from the last checkpoint in the folder. Raises the errors of reading the data and the
    base model, and InputError if no example fits.
    """
    recipe = job.recipe
    set_seed(recipe.seed)
    stored = ModelStore().resolve(job.base, job.sha256 or None)
    base, found = as_transformers_folder(stored), checksum(stored)
    tokenizer = AutoTokenizer.from_pretrained(base, **SAFELY)
    # The padding is on the left, so that the answers of a batch end together.
    tokenizer.pad_token, tokenizer.padding_side = tokenizer.eos_token, "left"
    collate = DataCollatorForSeq2Seq(tokenizer, label_pad_token_id=UNKNOWN)
    rows = _rows(job, job.questions, tokenizer)
    measured_on = _rows(job, job.held_out, tokenizer) if job.held_out else []
    sums = " ".join(map(sha256_of, job.questions))
    check_begun(job.folder / STATE, f"{found} {sums} {recipe.model_dump_json()}")
    with quiet_loading():
        model = AutoModelForCausalLM.from_pretrained(base, **SAFE_WEIGHTS, dtype=torch.float32)
    adapted = add_adapter(model, recipe, "CAUSAL_LM")
    before = _perplexity(adapted, measured_on, collate)
    device = choose_device("auto")
    trainer = BatchTrainer(
        model=adapted,
        args=training_arguments(
            recipe, recipe.learning_rate, job.folder / STATE, device, recipe.epochs
        ),
        train_dataset=rows,
        data_collator=collate,
        batches=token_batches([len(r["input_ids"]) for r in rows], recipe.tokens, recipe.seed),
        loss=writing_loss,
    )
    run_trainer(trainer, report)
    after = _perplexity(adapted, measured_on, collate)
    measured = {"perplexity before": before, "perplexity": after} if measured_on else {}
    save_adapter(adapted, job.base, job.folder)
    write_card(
        job.folder,
        kind=job.kind,
        base={"model": job.base, "sha256": found},
        recipe=recipe,
        data=job.questions,
        held_out=job.held_out,
        licence=licence,
        measured=measured,
    )
    return measured


def _rows(job: WriterJob, files: Sequence[Path], tokenizer: Any) -> list[dict[str, Any]]:
    """Return the token ids and labels of the examples that fit into `max_tokens`."""
    examples = job.examples(read_answered(files), tokenizer)
    rows = [encode_completion(tokenizer, *example) for example in examples]
    rows = [row for row in rows if len(row["input_ids"]) <= job.recipe.max_tokens]
    if not rows:
        raise InputError(
            f"{', '.join(map(str, files))}: no answer fits the recipe; raise its limits, such "
            "as max_tokens"
        )
    return rows


def encode_completion(tokenizer: Any, prompt: str, answer: str) -> dict[str, Any]:
    """Return the token ids of the prompt and the answer; only the answer's tokens have labels."""
    asked = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    said = tokenizer(answer, add_special_tokens=False)["input_ids"]
    return {"input_ids": [*asked, *said], "labels": [*[UNKNOWN] * len(asked), *said]}


def writing_loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the answers' tokens.

    Logits are computed only from the first answer token of the batch on, because the projection to
    the vocabulary takes a large share of a small model's time.
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


@torch.no_grad()
def _perplexity(model: Any, rows: Sequence[dict[str, Any]], collate: Any) -> float:
    """Return the perplexity of the answers' tokens; `nan` without rows."""
    model.eval()
    total, count = 0.0, 0
    for row in rows:
        batch = collate([row]).to(model.device)
        answered = int((batch["labels"] != UNKNOWN).sum())
        total += float(writing_loss(model, batch)) * answered
        count += answered
    model.train()
    return math.exp(total / count) if count else math.nan


# Returns the chat messages of the prompt for a question, given the texts of its evidence.
Ask = Callable[[AnsweredQuestion, Sequence[str]], Sequence[Any]]

_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class WriterExample:
    """The messages of a prompt, and the answer to learn."""

    messages: tuple[Any, ...]
    answer: str


def writer_examples(
    questions: Sequence[AnsweredQuestion], ask: Ask, recipe: WriterRecipe, draw: random.Random
) -> Iterator[WriterExample]:
    """Yield one example of each question whose snippets contain most words of a gold answer.

    An answer with other words would teach the writer to add what the evidence does not say. The
    prompts do not state the study design and year of passages, which snippets do not have.
    """
    for question in questions:
        texts = _snippets(question, recipe.evidence_characters, draw)
        answers = [" ".join(answer.split()) for answer in question.ideal]
        usable = [a for a in answers if _is_usable(a, texts, recipe)]
        if usable:
            yield WriterExample(tuple(ask(question, texts)), draw.choice(usable))


def _snippets(question: AnsweredQuestion, characters: int, draw: random.Random) -> list[str]:
    """Return snippets in random order that have at most `characters` together, at least one."""
    order = draw.sample(question.snippets, len(question.snippets))
    chosen, left = order[:1], characters - len(order[0])
    for text in order[1:]:
        if len(text) <= left:
            chosen.append(text)
            left -= len(text)
    return chosen


def _is_usable(answer: str, texts: Sequence[str], recipe: WriterRecipe) -> bool:
    if len(answer.split()) > recipe.max_words:
        return False
    words = set(_WORD.findall(answer.lower()))
    found = set(_WORD.findall(" ".join(texts).lower()))
    return bool(words) and len(words & found) >= recipe.least_covered * len(words)
