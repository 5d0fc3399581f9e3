"""What a plan gives to others: settings for `--config`, values for the Kubernetes manifests."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from cluster.settings.settings import Settings
from cluster.storage.whole_files import write_atomically
from planning.plan import Plan
from planning.units import gibibytes

# Between the replicas that the load needs and what autoscaling may add.
HEADROOM = 2


def planned_settings(settings: Settings, plan: Plan) -> Settings:
    """`settings` with the plan's shards, encoders, and each stage's replicas, cores and batch.

    GPUs stay as the settings have them: a plan made without one knows nothing of them.
    """
    stages = {}
    for stage in plan.serving.stages:
        before = getattr(settings.serve, stage.name)
        wanted = {
            "min_replicas": stage.replicas,
            "max_replicas": max(HEADROOM * stage.replicas, before.max_replicas),
            "cpus": stage.cpus,
            "max_ongoing": max(before.max_ongoing, 2 * stage.batch),
        }
        if stage.name in ("encoder", "reranker"):
            wanted["batch"] = stage.batch
        stages[stage.name] = before.model_copy(update=wanted)
    return settings.model_copy(
        update={
            "index": settings.index.model_copy(update={"shards": plan.size.shards}),
            "encoder": settings.encoder.model_copy(update={"actors": plan.fleet.encoders}),
            "serve": settings.serve.model_copy(update=stages),
        }
    )


def _head(plan: Plan) -> str:
    ask = plan.ask
    return (
        f"# Written by `citeray plan` for {ask.citations:,} citations, {ask.qps:g} questions/s, "
        f"p95 {ask.p95_s:g} s.\n# {plan.assumptions[0]}\n"
    )


def config_yaml(settings: Settings, plan: Plan) -> str:
    """A complete settings file, so that what was laid over laptop.yaml is in it."""
    data = planned_settings(settings, plan).model_dump(mode="json")
    return _head(plan) + yaml.safe_dump(data, sort_keys=False)


def values(plan: Plan) -> dict[str, Any]:
    """Worker groups and volumes, in the quantities of Kubernetes; sizes rounded up."""
    disk = {f.name: f.value for f in plan.disk}
    groups = {
        g.name: {
            "replicas": g.nodes,
            "maxReplicas": g.nodes if g.name == "build" else HEADROOM * g.nodes,
            "cpu": math.ceil(g.cpus),
            "memory": gibibytes(g.memory_bytes),
            "gpu": math.ceil(g.gpus),
            "ephemeralStorage": gibibytes(g.disk_bytes),
        }
        for g in plan.groups
    }
    driver = next(f.value for f in plan.memory if f.name == "driver")
    return {
        "citations": plan.ask.citations,
        "questionsPerSecond": plan.ask.qps,
        "index": {"shards": plan.size.shards},
        "head": {"cpu": 4, "memory": gibibytes(4 * 2**30 + 2 * driver)},
        "workerGroups": groups,
        "storage": {
            "index": gibibytes(disk["index store"]),
            "downloads": gibibytes(disk["downloads"]),
        },
    }


def values_yaml(plan: Plan) -> str:
    """The plan's values for the Kubernetes manifests as YAML, under a comment with the ask."""
    return _head(plan) + yaml.safe_dump(values(plan), sort_keys=False)


def write_text(text: str, path: Path) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    write_atomically(path, text.encode())
