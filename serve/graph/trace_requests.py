"""Traces of requests across the stages, sent to an OpenTelemetry collector.

OpenTelemetry's own environment variables name the collector on every node, such as
`OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318`.
"""

from __future__ import annotations

import os

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import (
    OTEL_EXPORTER_OTLP_ENDPOINT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
)
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from requests import Session

from cluster.loopback import is_loopback_url
from cluster.requests_adapter import DirectOnLoopback

DEFAULT_ENDPOINT = "http://localhost:4318"


def span_processors() -> list[SpanProcessor]:
    """Return the span processors of each Ray Serve process; spans are exported in batches."""
    return [BatchSpanProcessor(OTLPSpanExporter(session=_session()))]


def _session() -> Session | None:
    """Return a session without proxies if the collector is on this machine, otherwise None.

    None selects the exporter's own session, which may come from a credential provider.
    """
    names = (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT)
    endpoint = next(filter(None, map(os.environ.get, names)), DEFAULT_ENDPOINT)
    if not is_loopback_url(endpoint):
        return None
    session = Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, DirectOnLoopback())
    return session
