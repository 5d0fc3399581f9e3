"""Base class and field types of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

Positive = Annotated[int, Field(gt=0)]
# The upper limit keeps socket timeouts in their valid range.
Seconds = Annotated[float, Field(gt=0, le=10**6)]
Share = Annotated[float, Field(ge=0, le=1)]


def _types(annotation: Any) -> Iterator[Any]:
    """Yield the type of a field and the types that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _types(part)


def _home_expanded(path: str) -> str:
    if not path.strip():
        raise ValueError("is empty; give a path")
    try:
        return str(Path(path).expanduser()) if path.startswith("~") else path
    except RuntimeError:
        raise ValueError("names the home folder of an unknown user; give another path") from None


class Strict(BaseModel):
    """Base class of all settings: immutable; rejects unknown keys, infinities and NaN."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _check_type(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject a boolean that pydantic would read as 1 or 0, and an empty path; expand `~`."""
        types = list(_types(cls.model_fields[str(info.field_name)].annotation))
        if isinstance(value, bool) and bool not in types and {int, float} & set(types):
            raise ValueError("is a boolean; give a value of another type")
        if Path in types and isinstance(value, str):
            return _home_expanded(value)
        return value


class ModelSettings(Strict):
    """A model by name, with an optional adapter (see `cluster.models.adapters`).

    If `model` is an adapter, its base model is used with it, or with `adapter` if that is set.
    Without `model`, `adapter` is used with its base model. A base model may be an adapter, too.
    `sha256` is the expected checksum of the base model; "" expects the pinned one, if any.
    """

    model: str = ""
    sha256: str = ""
    adapter: str = ""
