"""An OpenTelemetry collector on loopback that stores the received spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from fastapi import FastAPI, Request, Response
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.serve.http_server import serving


@dataclass
class Collector:
    url: str = ""
    spans: list[Span] = field(default_factory=list)

    def trace_with(self, name: str) -> list[Span]:
        """Return all spans of the first trace that has a span of that name."""
        of = next((span.trace_id for span in self.spans if span.name == name), None)
        return [span for span in self.spans if span.trace_id == of]


@contextmanager
def trace_collector() -> Iterator[Collector]:
    collector = Collector()
    api = FastAPI()

    @api.post("/v1/traces")
    async def take(request: Request) -> Response:
        sent = ExportTraceServiceRequest.FromString(await request.body())
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                collector.spans += scope.spans
        return Response()

    with serving(api) as port:
        collector.url = f"http://127.0.0.1:{port}"
        yield collector
