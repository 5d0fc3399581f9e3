"""Settings of the reader, which reads the evidence, and of the check that evidence supports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from cluster.settings.fields import ModelSettings, Positive, Share


class ReaderSettings(ModelSettings):
    """The model that reads the evidence: `model`, or `adapter` with its base model.

    It reads a citation in windows of `max_tokens` tokens, question and text together.
    `calibration` is a file that `citeray train calibration` made for this reader; None uses the
    calibration of the shipped reader. A `zero-shot` reader has no model of its own: the reranker's
    cross-encoder predicts the relevance, and the NLI model of `support` predicts the stance.
    """

    kind: Literal["trained", "zero-shot"] = "trained"
    max_tokens: Annotated[int, Field(ge=64)]
    batch_size: Positive
    calibration: Path | None = None


class NamerSettings(ModelSettings):
    """The language model that ranks the names of factoid answers; none if `model` is empty.

    It is not loaded if another language model chooses the names (`llm.exact_from: model`).
    """


class SupportSettings(ModelSettings):
    """How a sentence is checked against the evidence.

    A sentence with a support score below `threshold` is dropped. A passage contradicts a sentence
    if its contradiction score is at least `contradiction`.
    """

    kind: Literal["similarity", "nli"]
    threshold: Share
    contradiction: Share
