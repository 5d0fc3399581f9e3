"""A plan as a settings file for `--config`."""

from __future__ import annotations

from pathlib import Path

import yaml

from cluster.settings.settings import Settings
from cluster.storage.whole_files import write_atomically
from planning.plan import Plan

# Between the replicas that the load needs and what autoscaling may add.
HEADROOM = 2


def planned_settings(settings: Settings, plan: Plan) -> Settings:
    """`settings` with the plan's shards, encoders, and each stage's replicas, cores and batch.

    GPUs stay as the settings have them: a plan made without one knows nothing of them.
    """
    stages = {}
    for stage in plan.serving.stages:
        if stage.name.startswith("llm-"):
            continue  # a role's replicas stand in `models`, which the plan leaves as it is
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
    gateway = settings.serve.gateway
    most = max(gateway.max_replicas, HEADROOM * plan.serving.gateways)
    if plan.serving.gateways > gateway.min_replicas:
        stages["gateway"] = gateway.model_copy(
            update={"min_replicas": plan.serving.gateways, "max_replicas": most}
        )
    return settings.model_copy(
        update={
            "index": settings.index.model_copy(update={"shards": plan.size.shards}),
            "encoder": settings.encoder.model_copy(update={"actors": plan.fleet.encoders}),
            "serve": settings.serve.model_copy(update=stages),
        }
    )


def head_of(plan: Plan) -> str:
    """The comment above a written file: what was asked for, and what the figures rest on."""
    ask = plan.ask
    return (
        f"# Written by `citeray plan` for {ask.citations:,} citations, {ask.qps:g} questions/s, "
        f"p95 {ask.p95_s:g} s.\n# {plan.assumptions[0]}\n"
    )


def config_yaml(settings: Settings, plan: Plan) -> str:
    """A complete settings file, so that what was laid over laptop.yaml is in it."""
    data = planned_settings(settings, plan).model_dump(mode="json")
    return head_of(plan) + yaml.safe_dump(data, sort_keys=False)


def write_text(text: str, path: Path) -> None:
    """Write `text` to `path` atomically, as UTF-8."""
    write_atomically(path, text.encode())
