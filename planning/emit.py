"""Convert a plan to a settings file for `--config`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import yaml

from cluster.settings.limits import questions_at_once
from cluster.settings.settings import Settings

if TYPE_CHECKING:
    from planning.plan import Plan

# Ratio of the maximum number of replicas of a stage to the number that the load needs.
HEADROOM = 2


def planned_settings(settings: Settings, plan: Plan) -> Settings:
    """Return `settings` with the plan's shards, encoders, replicas, cores and batch sizes.

    Stages whose times are unknown are unchanged, and so are GPUs.
    """
    stages = {}
    for stage in plan.serving.stages:
        # The plan does not change `models`, which sets the replicas of the other roles.
        if stage.name.startswith("llm-") or stage.name in plan.serving.unknown:
            continue
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
    planned = settings.model_copy(
        update={
            "index": settings.index.model_copy(update={"shards": plan.size.shards}),
            "encoder": settings.encoder.model_copy(update={"actors": plan.fleet.encoders}),
            "serve": settings.serve.model_copy(update=stages),
        }
    )
    return _admit(planned, plan.serving.in_flight)


def _admit(planned: Settings, in_flight: float) -> Settings:
    """Raise `at_once: auto` of the gateways to the questions that the load has in flight."""
    http, gateway = planned.serve.http, planned.serve.gateway
    needed = math.ceil(in_flight / gateway.min_replicas)
    if http.at_once != "auto" or needed <= questions_at_once(planned):
        return planned
    ongoing = max(gateway.max_ongoing, needed + http.waiting)
    stages = {
        "http": http.model_copy(update={"at_once": needed}),
        "gateway": gateway.model_copy(update={"max_ongoing": ongoing}),
    }
    return planned.model_copy(update={"serve": planned.serve.model_copy(update=stages)})


def header_comment(plan: Plan) -> str:
    """Return the comment for the top of a file: the request, and the origin of the figures."""
    ask = plan.ask
    return (
        f"# Written by `citeray plan` for {ask.citations:,} citations, {ask.qps:g} questions/s, "
        f"p95 {ask.p95_s:g} s.\n# {plan.assumptions[0]}\n"
    )


def config_yaml(settings: Settings, plan: Plan) -> str:
    """Return a complete settings file, which includes the overrides of the given settings."""
    data = planned_settings(settings, plan).model_dump(mode="json")
    return header_comment(plan) + yaml.safe_dump(data, sort_keys=False)
