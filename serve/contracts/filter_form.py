"""Filters of a search request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    create_model,
)

from cluster.index.filters.filters import FLAGS, MOST_VALUES, Filters
from cluster.study_design.designs import DESIGNS, Design, design_named

ListName = Literal["journals", "publication_types", "languages", "mesh", "authors"]
DesignName = Annotated[
    Design, BeforeValidator(lambda value: design_named(value) if isinstance(value, str) else value)
]
Values = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=MOST_VALUES)]


class ValuesForm(BaseModel):
    """Filters on citations that are not flags."""

    model_config = ConfigDict(extra="forbid")

    year_from: StrictInt | None = None
    year_to: StrictInt | None = None
    until: str | None = None
    journals: Values = []
    publication_types: Values = []
    languages: Values = []
    mesh: Values = []
    authors: Values = []
    design: Annotated[list[DesignName], Field(max_length=len(DESIGNS))] = []
    all_of: Annotated[list[ListName], Field(max_length=10)] = []


if TYPE_CHECKING:
    _Fields = ValuesForm
else:
    _flags = dict.fromkeys(FLAGS, (StrictBool | None, None))
    _Fields = create_model("_Fields", __base__=ValuesForm, **_flags)


class FilterForm(_Fields):
    """Filters on citations. A citation must match every given field.

    For a list it must match at least one value, regardless of case; for the lists named in
    `all_of`, every value. `year_from` and `year_to` are inclusive; `until` is the last day of
    publication, such as 2024-05-31. `journals` are full titles or ISO abbreviations, `languages`
    codes such as eng, `mesh` descriptor UIs such as D006801, `authors` names such as Smith J or
    John Smith, and `design` study designs such as randomised_trial.
    """

    def as_filters(self) -> Filters:
        """Return the filters; raise InputError with the field's name for an invalid value."""
        return Filters(**self.model_dump())
