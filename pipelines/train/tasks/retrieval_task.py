"""Training task of the encoder and the late-interaction reranker, on questions with citations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device
from torch import Tensor
from torch.nn.functional import normalize, pad

from cluster.errors import InputError
from cluster.models.adapters import quiet_loading
from cluster.models.encoder import edge_tokens
from cluster.models.load_safely import SAFELY
from pipelines.train.adapt import add_adapter, save_adapter
from pipelines.train.examples.mine_candidates import Vectors, best_by_vectors
from pipelines.train.examples.read_questions import GoldQuestion
from pipelines.train.losses import contrastive_loss, mean_max_sim
from pipelines.train.recipe import RetrievalRecipe
from pipelines.train.run_trainer import Measures

BATCH = 32
# Number of texts of similar length that are padded together.
ALIKE = 12
# Cut-off ranks of recall and of BioASQ's MAP.
FOUND, JUDGED = 100, 10


@dataclass(frozen=True, slots=True)
class MinedQuestion:
    """A question with the rows nearest to it, which may include gold."""

    question: GoldQuestion
    candidates: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Embedded:
    """One vector per text and per token, of length 1; `mask` is true for tokens, not padding."""

    texts: Tensor
    tokens: Tensor
    mask: Tensor


class RetrievalTask:
    """Trains on `mined` and measures on `held_out`; rows are those of `texts`."""

    head = ""

    def __init__(
        self,
        base: Path,
        texts: Sequence[str],
        mined: Sequence[MinedQuestion],
        held_out: Sequence[MinedQuestion],
        recipe: RetrievalRecipe,
        device: str,
        identity: str = "",
        query_prefix: str = "",
    ) -> None:
        self.device = device
        self.identity = identity
        self._recipe = recipe
        self._prefix = query_prefix
        self._texts = texts
        self._held_out = held_out
        self._pairs = _pairs(mined, recipe)
        # Equal sizes, because in batches of similar lengths negatives would be too easy to detect.
        self.sizes: Sequence[int] = [0] * len(self._pairs)
        with quiet_loading():
            self.model = SentenceTransformer(
                str(base),
                device=device,
                **SAFELY,
                model_kwargs={"use_safetensors": True, "dtype": torch.float32},
            )
        self._most_tokens = self.model.max_seq_length
        self.adapted = add_adapter(self.model[0].auto_model, recipe, "FEATURE_EXTRACTION")

    def loss(self, places: Sequence[int]) -> Tensor:
        """Return the contrastive loss of the pairs at `places`: dense, MaxSim, or their sum."""
        recipe = self._recipe
        pairs = [self._pairs[position] for position in places]
        rows = [pair.own for pair in pairs] + [row for pair in pairs for row in self._drawn(pair)]
        asked = self._embed([pair.question.text for pair in pairs], question=True)
        passages = self._embed([self._texts[row] for row in rows])
        own = torch.arange(len(pairs), device=self.device)
        others = torch.tensor(
            [
                [
                    row in pair.question.gold and position != line
                    for position, row in enumerate(rows)
                ]
                for line, pair in enumerate(pairs)
            ],
            device=self.device,
        )
        losses = []
        if recipe.dense_scale:
            scores = asked.texts @ passages.texts.T * recipe.dense_scale
            losses.append(contrastive_loss(scores, own, others))
        if recipe.maxsim_scale:
            scores = _late(asked, passages) * recipe.maxsim_scale
            losses.append(contrastive_loss(scores, own, others))
        return torch.stack(losses).sum()

    def _drawn(self, pair: _Pair) -> list[int]:
        # Trainer restores torch's random state, so that a resumed run draws the same rows.
        order = torch.randperm(len(pair.hard))[: self._recipe.negatives]
        return [pair.hard[position] for position in order.tolist()]

    def measure(self) -> Measures:
        """Return means over the held-out questions.

        For dense search in all texts: MAP@10 as BioASQ defines it, and recall@100. For their
        candidates ranked by late interaction: MAP@10.
        """
        if not self._held_out:
            return {}
        queries = self.encode([q.question.text for q in self._held_out], question=True)
        found = best_by_vectors(self._texts, queries, self.encode, FOUND).tolist()
        golds = [q.question.gold for q in self._held_out]
        ranked = [self._rank(q) for q in self._held_out]
        return {
            "dense MAP@10": _mean(map(average_precision, found, golds)),
            "dense recall@100": _mean(
                len(gold.intersection(rows)) / len(gold)
                for rows, gold in zip(found, golds, strict=True)
            ),
            "late interaction MAP@10": _mean(map(average_precision, ranked, golds)),
        }

    def encode(self, texts: Sequence[str], question: bool = False) -> Vectors:
        """Return vectors (n, width) of length 1, in the order of `texts`."""
        recipe = self._recipe
        self.model.max_seq_length = recipe.query_tokens if question else recipe.max_tokens
        prefix = self._prefix if question else ""
        vectors: Vectors = self.model.encode(
            [f"{prefix}{text}" for text in texts],
            # Do not add the model's own prompt.
            prompt="",
            batch_size=BATCH,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors

    def _rank(self, mined: MinedQuestion) -> list[int]:
        asked = self._embed([mined.question.text], question=True)
        scores: list[float] = []
        for first in range(0, len(mined.candidates), BATCH):
            rows = mined.candidates[first : first + BATCH]
            scores += _late(asked, self._embed([self._texts[r] for r in rows]))[0].tolist()
        best = sorted(zip(scores, mined.candidates, strict=True), key=lambda pair: -pair[0])
        return [row for _, row in best]

    def _embed(self, texts: Sequence[str], question: bool = False) -> _Embedded:
        recipe = self._recipe
        self.model.max_seq_length = recipe.query_tokens if question else recipe.max_tokens
        order = sorted(range(len(texts)), key=lambda position: len(texts[position]))
        asked = [(self._prefix if question else "") + texts[position] for position in order]
        parts = [self._alike(asked[first : first + ALIKE]) for first in range(0, len(asked), ALIKE)]
        width = max(part.mask.shape[1] for part in parts)
        back = torch.tensor(np.argsort(order), device=self.device)
        return _Embedded(
            torch.cat([part.texts for part in parts])[back],
            torch.cat([pad(p.tokens, (0, 0, 0, width - p.mask.shape[1])) for p in parts])[back],
            torch.cat([pad(p.mask, (0, width - p.mask.shape[1])) for p in parts])[back],
        )

    def _alike(self, texts: list[str]) -> _Embedded:
        features = batch_to_device(self.model.preprocess(texts), torch.device(self.device))
        output = self.model(features)
        edges = edge_tokens(self.model.tokenizer).to(self.device)
        return _Embedded(
            normalize(output["sentence_embedding"].float(), dim=-1),
            normalize(output["token_embeddings"].float(), dim=-1),
            # As in the reranker, special tokens are excluded.
            ~torch.isin(output["input_ids"], edges) & output["attention_mask"].bool(),
        )

    def save(self, base: str, folder: Path) -> None:
        """Write the model with its original token limit, or only the adapter if one was trained."""
        self.model.max_seq_length = self._most_tokens
        if self.adapted is None:
            self.model.save(str(folder), create_model_card=False)
        else:
            save_adapter(self.adapted, base, folder)


@dataclass(frozen=True, slots=True)
class _Pair:
    question: GoldQuestion
    own: int
    hard: tuple[int, ...]


def _pairs(mined: Sequence[MinedQuestion], recipe: RetrievalRecipe) -> list[_Pair]:
    """Pair each question that has a candidate other than gold with some of its gold rows."""
    pairs = []
    for one in mined:
        hard = tuple(row for row in one.candidates if row not in one.question.gold)
        gold = sorted(one.question.gold)[: recipe.positives]
        pairs += [_Pair(one.question, row, hard) for row in gold if hard]
    if not pairs:
        raise InputError(
            "no question has a candidate that is not its gold: the corpus needs other citations "
            "too, to learn what does not answer"
        )
    return pairs


def _late(asked: _Embedded, passages: _Embedded) -> Tensor:
    return mean_max_sim(asked.tokens, asked.mask, passages.tokens, passages.mask)


def average_precision(rows: Sequence[int], gold: frozenset[int]) -> float:
    """Return the average precision of the first 10 rows, as BioASQ defines it.

    The sum is divided by 10, or by the number of gold rows if that is smaller.
    """
    hits, total = 0, 0.0
    for rank, row in enumerate(rows[:JUDGED], 1):
        if row in gold:
            hits += 1
            total += hits / rank
    return total / min(JUDGED, len(gold))


def _mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))
