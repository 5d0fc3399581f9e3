"""Run saved questions, stored as HTTP request bodies, against a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import ValidationError

from cluster.answers import Answer
from cluster.errors import InputError
from cluster.records import Citation
from serve.http.request_forms import AnswerRequest, explain_problems
from serve.request import Request


class Answering(Protocol):
    """Service that answers: that of a gateway, or the graph in this process."""

    async def answer(self, request: Request) -> Answer:
        """See `Service.answer`."""
        ...

    async def citation(self, pmid: int) -> Citation | None:
        """See `Service.citation`."""
        ...


class ServiceAsk:
    """See `serve.saved.watches.check_watches.Ask`."""

    def __init__(self, service: Answering, default_system: str) -> None:
        self._service = service
        self._default_system = default_system

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        """Return the answer to a stored request body.

        Raise InputError if the request is no longer valid, and the errors of the service.
        """
        try:
            asked = AnswerRequest.model_validate(dict(request))
        except ValidationError as error:
            raise InputError(explain_problems(error.errors())) from error
        return await self._service.answer(asked.as_request(self._default_system))

    async def citation(self, pmid: int) -> Citation | None:
        """See `Service.citation`."""
        return await self._service.citation(pmid)
