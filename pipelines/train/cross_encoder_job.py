"""One stage of training the cross-encoder: on gold documents or on pseudo-documents.

The recipe is that of paper 003 (Huang, BioASQ 12b), section 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import InputError
from cluster.models.hardware import choose_device
from cluster.models.store import ModelStore, checksum
from cluster.settings.stages.encoder import EncoderSettings
from cluster.storage.object_store import File
from pipelines.train.examples.mine_candidates import best_by_bm25, kept_candidates
from pipelines.train.examples.read_questions import (
    Corpus,
    read_corpus,
    read_questions,
    read_unanswered,
)
from pipelines.train.examples.read_written import read_written
from pipelines.train.examples.relevance_pairs import make_pairs
from pipelines.train.jobs import base_model, identity
from pipelines.train.recipe import CrossEncoderRecipe
from pipelines.train.tasks.cross_encoder_task import CrossEncoderTask, PairModel
from pipelines.train.tasks.retrieval_task import MinedQuestion

# Number of BM25's best documents that are reranked for each held-out question.
RERANKED = 50
KEPT = ".training/kept-written.json"

Written = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class CrossEncoderJob:
    """Train a cross-encoder on questions with gold documents or pseudo-documents.

    `written` are files of pseudo-documents for `questions`; negatives are drawn from `corpus`. With
    `adapt`, the gold of `questions` is not read, and the base must be a trained cross-encoder. The
    model `discriminator`, if given, decides which pseudo-documents to leave out.
    """

    recipe: CrossEncoderRecipe
    base: EncoderSettings
    questions: tuple[Path, ...]
    written: tuple[Path, ...]
    held_out: tuple[Path, ...]
    corpus: tuple[File, ...]
    folder: Path
    adapt: bool = False
    discriminator: str = ""
    kind: str = "cross-encoder"

    @property
    def data(self) -> Sequence[File]:
        """Files to learn from."""
        return (*self.questions, *self.written)

    def task(self) -> CrossEncoderTask:
        """Filter the pseudo-documents, pair questions with documents and load the base model."""
        model, recipe, corpus = base_model(self.base), self.recipe, read_corpus(self.corpus)
        questions = (
            read_unanswered(self.questions)
            if self.adapt
            else read_questions(self.questions, corpus)
        )
        files = identity(model, (*self.data, *self.corpus))
        return CrossEncoderTask(
            model,
            make_pairs(questions, self._kept(), corpus.texts, recipe.negatives, recipe.seed),
            corpus.texts,
            _candidates(self.held_out, corpus),
            recipe,
            choose_device(self.base.device),
            f"{files} adapt={self.adapt} {self._judge_sum()}",
            trained=self.adapt,
        )

    def notes(self) -> dict[str, Any]:
        """Return additions to the card: pseudo-documents left out, and questions adapted to."""
        kept, notes = self._kept(), dict[str, Any]()
        if self.adapt:
            notes["adapted_to"] = [known for known in self._asked() if known in kept]
        if self.discriminator:
            count = _count(self._written())
            notes["discriminator"] = {
                "model": self.discriminator,
                "sha256": self._judge_sum(),
                "left_out": count - _count(kept),
                "of": count,
            }
        return notes

    def _asked(self) -> dict[str, str]:
        """Return the questions by id."""
        return {one.id: one.text for one in read_unanswered(self.questions)}

    def _written(self) -> Written:
        """Return the pseudo-documents by question id, for questions that have any."""
        if not self.written:
            return {}
        written: Written = {}
        asked = self._asked()
        for one in read_written(self.written):
            if one.question in asked:
                written.setdefault(one.question, []).append(one.text)
        if not written:
            names, questions = (
                ", ".join(map(str, files)) for files in (self.written, self.questions)
            )
            raise InputError(
                f"{names}: no pseudo-document for a question of {questions}; write them with "
                "`citeray train pseudo-documents QUESTIONS --out FILE`"
            )
        return written

    def _kept(self) -> Written:
        """Return the pseudo-documents that the discriminator finds relevant.

        All without a discriminator. The choice is stored in the job's folder for resumed runs.
        """
        written = self._written()
        if not self.discriminator or not written:
            return written
        recipe = self.recipe
        data = identity(self._judge(), self.data)
        judged_of = f"{data} {recipe.least_relevance} {recipe.max_tokens}"
        places = kept_candidates(self.folder / KEPT, judged_of, lambda: self._relevant(written))
        kept = {
            known: [texts[place] for place in chosen]
            for (known, texts), chosen in zip(written.items(), places, strict=True)
            if chosen
        }
        if not kept:
            raise InputError(
                f"{self.discriminator}: gives no pseudo-document a relevance of "
                f"{recipe.least_relevance:g}; lower it with --with least_relevance=SHARE, or "
                "leave out --discriminator"
            )
        return kept

    def _relevant(self, written: Written) -> list[list[int]]:
        """Return the indices of each question's texts that the discriminator finds relevant."""
        device = choose_device(self.base.device)
        model = PairModel(self._judge(), device, self.recipe.max_tokens, trained=True)
        asked, least = self._asked(), self.recipe.least_relevance
        pairs = [(asked[known], text) for known, texts in written.items() for text in texts]
        scores = iter(model.scores(pairs))
        return [
            [place for place in range(len(texts)) if next(scores) >= least]
            for texts in written.values()
        ]

    def _judge(self) -> Path:
        return ModelStore().resolve(self.discriminator)

    def _judge_sum(self) -> str:
        return checksum(self._judge()) if self.discriminator else ""


def _candidates(files: Sequence[Path], corpus: Corpus) -> list[MinedQuestion]:
    questions = read_questions(files, corpus) if files else []
    found = best_by_bm25(corpus.texts, [one.text for one in questions], RERANKED)
    return [MinedQuestion(*pair) for pair in zip(questions, found, strict=True)]


def _count(written: Mapping[str, Sequence[str]]) -> int:
    return sum(map(len, written.values()))
