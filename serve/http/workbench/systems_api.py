"""List of presets for the web page: titles, groups and requirements.

GET /v1/systems
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fastapi import FastAPI
from pydantic import BaseModel

from cluster.settings.presets import load_system, shipped_systems, system_names
from cluster.settings.system_settings import SystemSettings
from serve.contracts.problem_forms import KEY_STATUSES, problems
from serve.http.service import Service

Group = Literal["ours", "ranking", "papers", "own"]
Need = Literal["writer", "rewriter", "ranker", "pubmed"]

# Titles of the presets in display order.
OURS = {
    "citeray": "CiteRay",
    "citeray-model": "CiteRay, written by the language model",
    "citeray-ner": "CiteRay, for everyday words and trade names",
    "auto": "CiteRay, as fast as the question allows",
    "auto-model": "CiteRay, fast, with the language model for hard questions",
}
RANKING = {
    "hybrid": "Words and meaning",
    "bm25": "Words only (BM25)",
    "dense": "Meaning only (vectors)",
}
PAPERS = {
    "aqams": "AQAMS, search with PubMed (BioASQ 13b)",
    "aqams2": "AQAMS, answers by numbered passages (BioASQ 13b)",
    "biorag": "BioRAG",
    "huang": "Huang (BioASQ 12b)",
    "sinai": "SINAI (BioASQ Synergy 13)",
    "udine-a": "Udine, task A (TREC BioGen 2025)",
    "udine-b": "Udine, task B (TREC BioGen 2025)",
}
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
    group: Group
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


def _title_and_group(name: str) -> tuple[str, Group]:
    if name not in shipped_systems():
        return name, "own"
    if name in OURS:
        return OURS[name], "ours"
    if name in RANKING:
        return RANKING[name], "ranking"
    family, _, variant = name.partition("-v")
    title = PAPERS.get(name) or PAPERS.get(family, name)
    return f"{title}, variant {variant}" if variant else title, "papers"


def _card(name: str, models: dict[str, str]) -> SystemCard:
    system = load_system(name)
    title, group = _title_and_group(name)
    needs = needs_of(system)
    missing = _missing(needs, models)
    lacking = " and ".join(WORDS[need] for need in missing)
    return SystemCard(
        name=name,
        title=title,
        about=system.about,
        group=group,
        needs=needs,
        missing=missing,
        available=not missing,
        reason=f"It needs {lacking}; this server has none." if missing else "",
    )


def _in_order() -> Iterator[str]:
    names = system_names()
    first = [name for name in (*OURS, *RANKING) if name in names]
    yield from first
    yield from (name for name in names if name not in first and name in shipped_systems())
    yield from (name for name in names if name not in shipped_systems())


def add_systems(api: FastAPI, service: Service, default_system: str) -> None:
    """Add the route to `api`."""

    @api.get("/v1/systems", responses=LISTED)
    async def systems() -> Systems:
        """List the presets with title, group, requirements and availability on this server."""
        models = (await service.graph.readiness()).models
        cards = [_card(name, models) for name in _in_order()]
        return Systems(recommended=default_system, systems=cards)
