"""Traces of requests across the stages, sent to an OpenTelemetry collector.

Where to is told by OpenTelemetry's own environment variables on every node, such as
`OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318`.
"""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def span_processors() -> list[SpanProcessor]:
    """What Ray Serve runs in each of its processes; spans leave in batches, off the path."""
    return [BatchSpanProcessor(OTLPSpanExporter())]
