"""Words for pydantic's validation errors."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from cluster.problem_words import WORDS, problem_words


def refuse(value: str) -> str:
    raise ValueError(f"{value}, that is not a day")


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=1, le=100)] = 1
    share: Annotated[float, Field(ge=0, le=1)] = 0.5
    sort: Literal["date", "design"] = "date"
    text: Annotated[str, Field(min_length=1, max_length=5)] = "a"
    names: Annotated[list[str], Field(max_length=2)] = []
    on: bool = False
    day: Annotated[str, AfterValidator(refuse)] = ""
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"count": 101}, "must be at most 100"),
        ({"count": 0}, "must be at least 1"),
        ({"count": "x"}, "must be a whole number"),
        ({"share": 7}, "must be at most 1"),
        ({"share": "x"}, "must be a number"),
        ({"sort": "size"}, "must be 'date' or 'design'"),
        ({"text": ""}, "is empty"),
        ({"text": "abcdef"}, "must have at most 5 characters"),
        ({"text": 5}, "must be text"),
        ({"names": ["a", "b", "c"]}, "must have at most 2 items"),
        ({"names": "a"}, "must be a list"),
        ({"on": "perhaps"}, "must be true or false"),
        ({"day": "Monday"}, "Monday, that is not a day"),
        ({"inner": 4}, "must be a mapping of keys to values"),
        ({"more": 4}, "is unknown"),
    ],
)
def test_validation_errors_have_plain_words(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(given)
    (problem,) = caught.value.errors()
    assert problem_words(problem) == words


def test_unknown_kind_of_error_has_words() -> None:
    assert "time_delta_type" not in WORDS
    assert problem_words({"type": "time_delta_type", "msg": "Input should be"}) == "is not valid"
