"""Training jobs: plain values from which any worker can create its task."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cluster.models.encoder import Encoder
from cluster.models.hardware import choose_device
from cluster.models.store import ModelStore, checksum
from cluster.settings.stages.encoder import EncoderSettings
from cluster.storage.object_store import File
from cluster.storage.whole_files import sha256_of
from pipelines.train.examples.mine_candidates import kept_candidates, mine_candidates
from pipelines.train.examples.read_questions import Corpus, read_corpus, read_questions
from pipelines.train.examples.tagged_texts import read_tagged_texts
from pipelines.train.recipe import Recipe, RetrievalRecipe
from pipelines.train.tasks.retrieval_task import MinedQuestion, RetrievalTask
from pipelines.train.tasks.tag_task import TagTask

MINED = ".training/mined-{}.json"


@dataclass(frozen=True, slots=True)
class TagJob:
    """Train a recogniser on texts with marked entities."""

    recipe: Recipe
    base: EncoderSettings
    data: tuple[Path, ...]
    held_out: tuple[Path, ...]
    folder: Path
    kind: str = "ner"

    def task(self) -> TagTask:
        """Read the texts and load the base model."""
        model = base_model(self.base)
        return TagTask(
            model,
            read_tagged_texts(self.data),
            read_tagged_texts(self.held_out),
            self.recipe,
            choose_device(self.base.device),
            identity(model, self.data),
        )


@dataclass(frozen=True, slots=True)
class RetrievalJob:
    """Train an encoder or reranker (`kind`) on questions in `data` with gold in `corpus`."""

    kind: str
    recipe: RetrievalRecipe
    base: EncoderSettings
    data: tuple[Path, ...]
    held_out: tuple[Path, ...]
    corpus: tuple[File, ...]
    folder: Path

    def task(self) -> RetrievalTask:
        """Mine the candidates of each question and load the base model."""
        model = base_model(self.base)
        corpus = read_corpus(self.corpus)
        files = (*self.data, *self.corpus)
        return RetrievalTask(
            model,
            corpus.texts,
            self._mined("train", self.data, corpus, model),
            self._mined("held-out", self.held_out, corpus, model),
            self.recipe,
            choose_device(self.base.device),
            identity(model, files),
            self.base.query_prefix,
        )

    def _mined(
        self, name: str, files: Sequence[Path], corpus: Corpus, model: Path
    ) -> list[MinedQuestion]:
        """Return the questions of `files` with their candidates, cached in the job's folder."""
        if not files:
            return []
        questions = read_questions(files, corpus)
        bodies = [question.text for question in questions]

        def mine() -> list[list[int]]:
            encoder = Encoder.by(self.base, model)
            queries = np.stack([vectors.vector for vectors in encoder.encode_queries(bodies)])
            return mine_candidates(
                corpus.texts, bodies, queries, encoder.encode, self.recipe.hardest
            )

        mined_of = f"{identity(model, (*files, *self.corpus))} {self.recipe.hardest}"
        found = kept_candidates(self.folder / MINED.format(name), mined_of, mine)
        return [MinedQuestion(*pair) for pair in zip(questions, found, strict=True)]


# A task has a model, its loss and its measures. `sizes` are the lengths of all examples, in any
# unit. `identity` distinguishes tasks whose checkpoints must not be mixed up. `head` is a part of
# the names of randomly initialised parameters.
Task = TagTask | RetrievalTask
Job = TagJob | RetrievalJob


def base_model(settings: EncoderSettings) -> Path:
    """Return the folder of the base model, fetched if missing.

    Raises the same errors as `ModelStore.resolve`.
    """
    return ModelStore().resolve(settings.model, settings.sha256 or None)


def identity(model: Path, files: Sequence[File]) -> str:
    """Return a checksum of the base model and the data."""
    sums = [checksum(model), *(sha256_of(file) for file in files)]
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()
