"""Run saved questions, stored as HTTP request bodies, against a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from cluster.answers import Answer
from cluster.errors import InputError
from cluster.exposure import Exposure
from cluster.records import Citation
from serve.contracts.request_forms import AnswerRequest, explain_problems
from serve.pipeline.answer_question import QuestionAnswerer


class ServiceAsk:
    """Asks saved questions through the service; implements `check_watches.Ask`."""

    def __init__(self, answerer: QuestionAnswerer, default_system: str) -> None:
        self._answerer = answerer
        self._default_system = default_system

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        """Return the answer to a stored request body.

        Raise InputError if the request is no longer valid, and the errors of `QuestionAnswerer`.
        """
        try:
            asked = AnswerRequest.model_validate(dict(request))
        except ValidationError as error:
            raise InputError(explain_problems(error.errors())) from error
        return await self._answerer.answer(asked.as_request(self._default_system))

    async def citation(self, pmid: int) -> Citation | None:
        """Return the complete record, or None if the index does not have it."""
        return await self._answerer.citation(pmid)

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        """Return the exposure of articles to retractions; None if a shard does not answer."""
        return await self._answerer.exposure(pmids)
