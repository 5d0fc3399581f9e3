"""Rerankers that score passages against a question more precisely than the first stage.

A reranker only returns scores. The caller sorts, truncates and records when reranking was skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from cluster.errors import InputError
from cluster.index.tokens.stored import best_cosines, mean_max_sim

Pair = tuple[str, str]
Scores = NDArray[np.float32]
Halves = NDArray[np.float16]


class Reranker(Protocol):
    """Scores passages: float32 of shape (n,), higher is better, comparable between questions."""

    def score(self, question: str, passages: Sequence[str]) -> Scores:
        """Return one score per passage, in order."""
        return self.score_pairs([(question, passage) for passage in passages])

    def score_pairs(self, pairs: Sequence[Pair]) -> Scores:
        """Return one score per (question, passage), in order, so that requests can be batched."""
        ...


class TokenEncoder(Protocol):
    """Encoder that returns one vector per token, such as `cluster.models.encoder.Encoder`."""

    def token_vectors(self, texts: Sequence[str], batch_size: int | None = None) -> list[Scores]:
        """Return for each text its token vectors (tokens, width), of length 1."""
        ...


class LateInteractionReranker(Reranker):
    """Late interaction: mean over question tokens of the best cosine with a passage token, -1 to 1.

    This is ColBERT's MaxSim (Khattab and Zaharia 2020, section 3.3), with a mean instead of a sum
    so that scores of questions of different lengths are comparable, and with the token vectors of
    an encoder that was trained for single vectors. A question or passage without tokens scores 0.
    Token vectors are cached in 16 bits, least recently used first out, up to `cache_mb` MB.
    """

    def __init__(
        self, encoder: TokenEncoder, batch_size: int | None = None, cache_mb: int = 0
    ) -> None:
        self._encoder = encoder
        self._batch_size = batch_size
        self._kept: LRUCache[str, Halves] = LRUCache(cache_mb << 20, lambda vectors: vectors.nbytes)
        self._keeping = Lock()

    def score_pairs(self, pairs: Sequence[Pair]) -> Scores:
        """Return scores (n,), -1 to 1, in the order of `pairs`."""
        # Encode all distinct texts in one run, so that shared passages are encoded once.
        vectors = self._token_vectors(list(dict.fromkeys(text for pair in pairs for text in pair)))
        scores = np.zeros(len(pairs), dtype=np.float32)
        for question in dict.fromkeys(question for question, _ in pairs):
            places = [i for i, pair in enumerate(pairs) if pair[0] == question]
            scores[places] = late_scores(vectors[question], [vectors[pairs[i][1]] for i in places])
        return scores

    def _token_vectors(self, texts: Sequence[str]) -> dict[str, Scores]:
        with self._keeping:
            halves = {text: self._kept[text] for text in texts if text in self._kept}
        new = [text for text in texts if text not in halves]
        for text, vectors in zip(
            new, self._encoder.token_vectors(new, self._batch_size), strict=True
        ):
            halves[text] = vectors.astype(np.float16)
            # The cache raises ValueError for texts larger than its size, which may be 0.
            with self._keeping, suppress(ValueError):
                self._kept[text] = halves[text]
        return {text: vectors.astype(np.float32) for text, vectors in halves.items()}


def late_scores(question: Scores, passages: Sequence[Scores]) -> Scores:
    """Return scores (n,) of passages, each (tokens, d), for a question (tokens, d).

    All vectors have length 1.
    """
    counts = np.array([len(passage) for passage in passages], np.int64)
    tokens = np.concatenate([question[:0], *(p for p in passages if len(p))])
    return mean_max_sim(best_cosines(tokens, counts, question))


class CrossEncoderReranker(Reranker):
    """Sequence-classification model over "question [SEP] passage"; sigmoid scores, 0 to 1.

    Works with any Hugging Face cross-encoder that has one label. Pairs over the model's limit are
    truncated at the end of the longer text. Raises InputError for a folder that does not load or a
    model that has several labels.
    """

    def __init__(
        self,
        model_dir: Path,
        *,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 32,
    ) -> None:
        self._batch_size = batch_size
        self._model = _load_cross_encoder(model_dir, device, dtype)
        if self._model.num_labels != 1:
            raise InputError(
                f"{model_dir} gives {self._model.num_labels} scores a pair where a reranker needs "
                "one: name a model trained with one label"
            )

    def score_pairs(self, pairs: Sequence[Pair]) -> Scores:
        """Return scores (n,), 0 to 1, in the order of `pairs`."""
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        scores = self._model.predict(
            list(pairs),
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(scores, dtype=np.float32)


def _load_cross_encoder(model_dir: Path, device: str, dtype: str) -> Any:
    # Imported here because late interaction does not need it, and the import takes seconds.
    from sentence_transformers import CrossEncoder
    from torch.nn import Sigmoid

    from cluster.models.hardware import choose_device, choose_dtype

    if not (model_dir / "config.json").is_file():
        raise InputError(f"{model_dir} is not a model's folder (it has no config.json)")
    device = choose_device(device)
    try:
        return CrossEncoder(
            str(model_dir),
            activation_fn=Sigmoid(),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"dtype": choose_dtype(dtype, device), "use_safetensors": True},
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise InputError(
            f"{model_dir} does not load as a cross-encoder ({error}): fetch it again with "
            "`models pull`, or name another model"
        ) from error
