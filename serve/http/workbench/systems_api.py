"""List of presets for the web page, with their requirements.

GET /v1/systems
"""

from __future__ import annotations

from typing import Literal, get_args

from fastapi import FastAPI
from pydantic import BaseModel

from cluster.settings.presets import load_system, system_names
from cluster.settings.system_settings import PresetGroup, SystemSettings
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.http.service import Service

Need = Literal["writer", "rewriter", "ranker", "pubmed"]

WORDS: dict[Need, str] = {
    "writer": "a language model that writes",
    "rewriter": "a language model that rewrites the question",
    "ranker": "a language model that ranks",
    "pubmed": "PubMed over the internet",
}


class SystemCard(BaseModel):
    """Preset. `missing` lists those of its `needs` that this server lacks.

    If any is missing, the preset is not `available`, and `reason` says why; otherwise `reason` is
    "". PubMed is never listed as missing, as its availability is only known when it is queried.
    """

    name: str
    title: str
    about: str
    group: PresetGroup
    needs: list[Need]
    missing: list[Need]
    available: bool
    reason: str


class Systems(BaseModel):
    """Presets in display order; `recommended` is the server's default."""

    recommended: str
    systems: list[SystemCard]


LISTED = problems(*KEY_STATUSES)


def needs_of(system: SystemSettings) -> list[Need]:
    """Return the models and services that the preset needs in addition to the index."""
    parts = [system, *(system.at(rung) for rung in (system.ladder.rungs if system.ladder else ()))]
    passes = [rerank for part in parts for rerank in (part.rerank, part.refine)]
    wanted: dict[Need, bool] = {
        "writer": "model" in (system.answer.ideal_from, system.answer.exact_from)
        or system.self_check > 0,
        "rewriter": any(part.rewrite.kind != "none" for part in parts),
        "ranker": any(r.depth and r.by in ("listwise", "pointwise") for r in passes),
        "pubmed": system.online.when != "never",
    }
    return [need for need, is_wanted in wanted.items() if is_wanted]


def _missing(needs: list[Need], models: dict[str, str]) -> list[Need]:
    """Return the `needs` for which `models`, as in a Readiness, has no model.

    The model of the role `llm` also serves every role that has no model of its own.
    """
    if models.get("llm", "none") != "none":
        return []
    at_hand = {role.partition("-")[0] for role in models}
    return [need for need in needs if need != "pubmed" and need not in at_hand]


def _card(name: str, models: dict[str, str]) -> SystemCard:
    system = load_system(name)
    needs = needs_of(system)
    missing = _missing(needs, models)
    lacking = " and ".join(WORDS[need] for need in missing)
    return SystemCard(
        name=name,
        title=system.title or name,
        about=system.about,
        group=system.group,
        needs=needs,
        missing=missing,
        available=not missing,
        reason=f"It needs {lacking}; this server has none." if missing else "",
    )


def _place(name: str) -> tuple[int, int, str]:
    """Return the sort key of a preset in menus: its group, then its order, then its name."""
    system = load_system(name)
    return get_args(PresetGroup).index(system.group), system.order, name


def add_systems(api: FastAPI, service: Service, default_system: str) -> None:
    """Add the route to `api`."""

    @api.get("/v1/systems", responses=LISTED)
    async def systems() -> Systems:
        """List the presets with title, group, requirements and availability on this server."""
        models = (await service.graph.readiness()).models
        cards = [_card(name, models) for name in sorted(system_names(), key=_place)]
        return Systems(recommended=default_system, systems=cards)
