"""Which citations a search may find, as a request says it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, StrictInt

from cluster.index.filters.filters import MOST_VALUES, Filters
from cluster.study_design.designs import DESIGNS, Design, design_named

ListName = Literal["journals", "publication_types", "languages", "mesh", "authors"]
DesignName = Annotated[
    Design, BeforeValidator(lambda value: design_named(value) if isinstance(value, str) else value)
]
Values = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=MOST_VALUES)]


class FilterForm(BaseModel):
    """Every field that is given must hold; of a list one value is enough, whatever its case.

    `year_from` and `year_to` are inclusive, `until` is the last day of publication such as
    2024-05-31. `journals` are titles or ISO abbreviations in full, `languages` codes such as eng,
    `mesh` descriptor UIs such as D006801, `authors` names such as Smith J or John Smith, `design`
    study designs such as randomised_trial. `all_of` names the lists of which every value must
    match.
    """

    model_config = ConfigDict(extra="forbid")

    year_from: StrictInt | None = None
    year_to: StrictInt | None = None
    until: str | None = None
    journals: Values = []
    publication_types: Values = []
    languages: Values = []
    mesh: Values = []
    humans: StrictBool | None = None
    retracted: StrictBool | None = None
    has_abstract: StrictBool | None = None
    authors: Values = []
    design: Annotated[list[DesignName], Field(max_length=len(DESIGNS))] = []
    all_of: Annotated[list[ListName], Field(max_length=10)] = []

    def as_filters(self) -> Filters:
        """Raises InputError, which names the field, for values that make no sense."""
        return Filters(**self.model_dump())
