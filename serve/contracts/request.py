"""Request to the pipeline, as one record from the HTTP service to the stages."""

from __future__ import annotations

from dataclasses import dataclass

from cluster.answers import Question, Turn
from cluster.appraisal import Sort
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.settings.system_settings import SystemSettings


@dataclass(frozen=True, slots=True)
class Request:
    """A question, the preset that answers it, and the maximum number of citations.

    `snippets` adds the evidence sentences that answer, in BioASQ's form. `filters` restrict the
    search; they do not apply to evidence given with the question. `sort` only changes the order in
    which results are shown. `turns` are the previous questions and answers, oldest first.
    """

    question: Question
    system: SystemSettings
    limit: int = 10
    snippets: bool = False
    filters: Filters = NO_FILTERS
    sort: Sort = "relevance"
    turns: tuple[Turn, ...] = ()
