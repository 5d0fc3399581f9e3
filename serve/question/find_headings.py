"""Find MeSH headings by name, and suggest the closest ones for other texts."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.errors import InputError, cut
from cluster.index.filters.inspect_filters import either
from serve.contracts.stage_calls import StageCalls, require
from serve.question.understand_question import CLOSEST_HEADINGS, HEADINGS, Heading

_LOST = "MeSH headings cannot be looked up now; try again in a moment, or leave out [mh]"


async def find_headings(names: Sequence[str], stages: StageCalls) -> dict[str, Heading]:
    """Return the heading of each of `names` that has one; raises StageLostError."""
    if not names:
        return {}
    return await require(stages.backend, stages.settings, _LOST, HEADINGS, names)


async def unknown_heading(said: str, name: str, stages: StageCalls) -> InputError:
    """Return the error `said`, with the headings of the index that are closest to `name`."""
    close = await stages.call(CLOSEST_HEADINGS, name)
    return InputError(f"{said}; did you mean {either(close)}?" if close else said)


def mapped_note(name: str, heading: Heading) -> str | None:
    """Return a note if `name` is an entry term, and not the name of its heading."""
    if name.casefold() == heading.name.casefold():
        return None
    return f'"{cut(name)}" is searched as the MeSH heading "{heading.name}"'
