"""Base class and field types of the settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
# The upper limit keeps socket timeouts in their valid range.
Seconds = Annotated[float, Field(gt=0, le=10**6)]
Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """Base class of all settings: immutable; rejects unknown keys, infinities and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ModelSettings(Strict):
    """A model by name, with an optional adapter (see `cluster.models.adapters`).

    If `model` is an adapter, its base model is used with it, or with `adapter` if that is set.
    Without `model`, `adapter` is used with its base model. `sha256` is the expected checksum of the
    base model; "" expects the pinned one, if any.
    """

    model: str = ""
    sha256: str = ""
    adapter: str = ""
