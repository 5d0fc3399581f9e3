"""Settings of the reranker."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cluster.settings.fields import ModelSettings, Positive


class RerankerSettings(ModelSettings):
    """The reranker.

    `model` is a cross-encoder. Late interaction uses the encoder instead, with `adapter` if one is
    given. Without an adapter, passages of the index are scored by their stored token vectors; the
    token vectors of other passages are cached in at most `cache_mb` MB.
    """

    kind: Literal["late-interaction", "cross-encoder"]
    batch_size: Positive
    cache_mb: Annotated[int, Field(ge=0)] = 0

    @property
    def is_stage(self) -> bool:
        """Whether it loads its own model; late interaction without an adapter does not."""
        return self.kind == "cross-encoder" or bool(self.adapter)
