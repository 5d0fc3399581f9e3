"""Merge the metrics of several nodes into one page in Prometheus' text format."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

import httpx
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from cluster.http_clients import open_async_client

log = logging.getLogger("citeray")

TIMEOUT_S = 5.0


class _Joined(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def join_metrics(pages: Sequence[str]) -> bytes:
    """Return one page with the samples of all `pages`, grouped by metric as the format requires."""
    metrics: dict[str, Metric] = {}
    for page in pages:
        for family in text_string_to_metric_families(page):
            kept = metrics.setdefault(family.name, family)
            if kept is not family:
                kept.samples.extend(family.samples)
    registry = CollectorRegistry()
    registry.register(_Joined(metrics.values()))
    return generate_latest(registry)


async def fetch_metrics(urls: Sequence[str]) -> bytes:
    """Return the merged metrics of all `urls` that respond; log those that do not."""
    async with open_async_client(timeout=TIMEOUT_S) as client:
        replies = await asyncio.gather(*(client.get(url) for url in urls), return_exceptions=True)
    pages = []
    for url, reply in zip(urls, replies, strict=True):
        if isinstance(reply, httpx.Response) and reply.is_success:
            pages.append(reply.text)
        else:
            log.warning("no metrics from %s: %r", url, reply)
    return join_metrics(pages)
