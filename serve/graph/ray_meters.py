"""Metrics of the graph through Ray, and the addresses of all nodes' metrics pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ray
from ray.serve import metrics

from serve.http.middleware.request_log import Meters

# Histogram buckets in seconds: a search takes about 0.1 s, a language model's answer up to 60 s.
BOUNDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 60.0]


class RayMeters(Meters):
    """Request metrics in Ray, which prefixes names with `ray_` and tags them by replica."""

    def __init__(self) -> None:
        self._requests = metrics.Counter(
            "citeray_requests", "HTTP requests by route and status.", ("path", "status")
        )
        self._seconds = metrics.Histogram(
            "citeray_request_seconds", "Duration of a request.", BOUNDS, ("path",)
        )
        self._questions = metrics.Counter(
            "citeray_questions", "Searches and answers by system.", ("kind", "system")
        )
        self._stages = metrics.Histogram(
            "citeray_stage_seconds", "Duration of a stage.", BOUNDS, ("stage", "system")
        )
        self._losses = metrics.Counter(
            "citeray_losses", "Stages lost in a reply.", ("stage", "system")
        )
        self._running = metrics.Gauge("citeray_running", "Questions running in a gateway.")
        self._waiting = metrics.Gauge("citeray_waiting", "Questions waiting for their turn.")

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request by route and status, and record its duration."""
        self._requests.inc(tags={"path": route, "status": str(status)})
        self._seconds.observe(seconds, tags={"path": route})

    def question(
        self, kind: str, system: str, timings_ms: Mapping[str, float], degraded: Sequence[str]
    ) -> None:
        """Count a question and its failed stages, and record its stage durations."""
        self._questions.inc(tags={"kind": kind, "system": system})
        for stage, ms in timings_ms.items():
            self._stages.observe(ms / 1000, tags={"stage": stage, "system": system})
        for loss in degraded:
            stage, _, _ = loss.partition(":")
            self._losses.inc(tags={"stage": stage, "system": system})

    def load(self, running: int, waiting: int) -> None:
        """Set the numbers of running and waiting questions of this replica."""
        self._running.set(running)
        self._waiting.set(waiting)


def metric_pages() -> list[str]:
    """Return the URL of the metrics page of each live node."""
    nodes = [node for node in ray.nodes() if node["Alive"] and node.get("MetricsExportPort")]
    return [
        f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics" for node in nodes
    ]
