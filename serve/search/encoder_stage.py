"""The encoder stage: vectors of questions and passages, late interaction, and snippets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cluster.answers import Evidence
from cluster.index.vectors import Vectors
from cluster.models.embedded import QuestionVectors
from cluster.records import Passage
from serve.contracts.stage_calls import stage_method
from serve.search.choose_snippets import choose_snippets

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder
    from cluster.models.model_cache.converted_encoder import ConvertedEncoder
    from serve.search.rerank_passages import Reranker

    QueryEncoder = Encoder | ConvertedEncoder


class EncoderStage:
    """Local counterpart of `serve.graph.deployments.EncoderDeployment`, without batching."""

    def __init__(self, encoder: QueryEncoder, late: Reranker) -> None:
        self._encoder = encoder
        self._late = late

    def encode(self, text: str) -> QuestionVectors:
        """Return the vectors of a question."""
        return self._encoder.encode_queries([text])[0]

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors (n, d) of passages."""
        return self._encoder.encode(texts)

    def score(self, question: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return late-interaction scores (n,) of passages without stored token vectors."""
        return self._late.score(question, texts)

    def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        """Return the best snippets of the evidence, of up to `sentences` sentences each."""
        return choose_snippets(question, evidence, self._encoder.encode, window=sentences)


ENCODE = stage_method("encoder", EncoderStage.encode, "encode", "BM25 only")
EMBED = stage_method("encoder", EncoderStage.encode_passages, "embed")
SNIPPETS = stage_method("encoder", EncoderStage.snippets, "snippets", "no snippets")
# Method of the encoder stage; with a reranker stage, call `RERANK.at("reranker")`.
RERANK = stage_method(
    "encoder",
    EncoderStage.score,
    "rerank",
    "first-stage order kept",
    limit="reranker",
    spare=True,
)
