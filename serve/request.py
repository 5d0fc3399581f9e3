"""What is asked of the question's path, as one record from the door to the stages."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.answers import Question, Turn
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.settings.system_settings import SystemSettings
from cluster.weighing import Sort


@dataclass(frozen=True, slots=True)
class Request:
    """A question, the preset that answers it, and how many citations the reply has at most.

    `snippets` adds the sentences of the evidence that answer, as BioASQ wants them. `filters` say
    which citations may be found; given evidence is not found, and passes. `sort` is the order in
    which the reply shows what was found, and changes nothing else. `turns` were
    asked and answered before, the oldest first.
    """

    question: Question
    system: SystemSettings
    limit: int = 10
    snippets: bool = False
    filters: Filters = NO_FILTERS
    sort: Sort = "relevance"
    turns: tuple[Turn, ...] = ()
