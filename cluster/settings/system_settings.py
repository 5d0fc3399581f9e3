"""Settings of a preset: a published system, or CiteRay's own, in a file of configs/systems."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cluster.answers import Check
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.fields import Share, Strict
from cluster.settings.search_settings import (
    ExpansionSettings,
    FusionSettings,
    LadderSettings,
    OnlineSettings,
    RankingsSettings,
    RecencySettings,
    RerankSettings,
    RetrieverSettings,
    RewriteSettings,
    RungSettings,
)

PresetGroup = Literal["ours", "ranking", "papers", "own"]


class SystemSettings(Strict):
    """A preset: how one system searches and answers.

    `ranks` is the unit of ranking: citations, each by its best passage, or single passages.
    `self_check` is how often the model may search again until it is confident in its evidence
    (paper 002), with at most `self_check_tokens` for each draft and each critique; 0 disables it.
    `refine` reranks the result of `rerank`. The evidence is at most `evidence` passages, each with
    at least `evidence_share` of the best score. All passages of the first `whole` citations are
    read as well; those that take a stance or are quoted are added to an answer's evidence. Snippets
    have at most `snippet_sentences` consecutive sentences; 0 uses whole passages. `title` (default:
    the name), `group` and `order` within the group are for menus, and are not stored with answers.
    """

    name: str
    title: Annotated[str, Field(exclude=True)] = ""
    group: Annotated[PresetGroup, Field(exclude=True)] = "own"
    order: Annotated[int, Field(exclude=True)] = 0
    about: str
    expand: bool
    expansion: ExpansionSettings = ExpansionSettings()
    rewrite: RewriteSettings = RewriteSettings()
    retrieve: RetrieverSettings
    online: OnlineSettings = OnlineSettings()
    ranks: Literal["citations", "passages"] = "citations"
    fuse: FusionSettings
    rerank: RerankSettings
    refine: RerankSettings = RerankSettings()
    rankings: RankingsSettings | None = None
    recency: RecencySettings = RecencySettings()
    ladder: LadderSettings | None = None
    self_check: Annotated[int, Field(ge=0, le=3)] = 0
    self_check_tokens: Annotated[int, Field(ge=16, le=2048)] = 512
    evidence: Annotated[int, Field(ge=1, le=100)]
    evidence_share: Share = 0.0
    whole: Annotated[int, Field(ge=0, le=20)] = 0
    snippet_sentences: Annotated[int, Field(ge=0, le=10)] = 0
    answer: AnswerSettings = AnswerSettings()

    @property
    def asks_model(self) -> bool:
        """Whether the search calls the language model, not only the writer."""
        rungs = self.ladder.rungs if self.ladder else ()
        rewrites = (self.rewrite, *(rung.rewrite for rung in rungs))
        reranks = (
            *(self.rerank, self.refine),
            *(part for rung in rungs for part in (rung.rerank, rung.refine)),
        )
        return (
            self.self_check > 0
            or (self.online.when != "never" and self.online.examples > 0)
            or any(part is not None and part.kind != "none" for part in rewrites)
            or any(
                part is not None and part.depth and part.by in ("listwise", "pointwise")
                for part in reranks
            )
        )

    def checking(self, check: Check | None) -> SystemSettings:
        """Return the preset with another `answer.check`; itself for None."""
        if check is None:
            return self
        return self.model_copy(update={"answer": self.answer.model_copy(update={"check": check})})

    def with_max_wrong(self, max_wrong: float | None) -> SystemSettings:
        """Return the preset with another `answer.max_wrong`; itself for None."""
        if max_wrong is None:
            return self
        answer = self.answer.model_copy(update={"max_wrong": max_wrong})
        return self.model_copy(update={"answer": answer})

    def for_type(self, kind: str) -> SystemSettings:
        """Return the preset for questions of type `kind`."""
        return self.model_copy(update={"expansion": self.expansion.of(kind)})

    def at(self, rung: RungSettings) -> SystemSettings:
        """Return the preset for the cascade step `rung`."""
        own = {name: getattr(rung, name) for name in ("rewrite", "retrieve", "rerank", "refine")}
        changed = {name: part for name, part in own.items() if part is not None}
        return self.model_copy(update={**changed, "ladder": None})

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        retrieve, ranks = self.retrieve, self.ranks
        if self.expansion != ExpansionSettings() and not self.expand:
            raise ValueError("expansion needs the question's entities: set expand: true")
        if self.online.when == "always" and (retrieve.dense or retrieve.bm25):
            raise ValueError("online.when always takes PubMed's PMIDs: set retrieve.* to 0")
        if self.online.when == "too-few" and not retrieve.dense:
            raise ValueError("online.when too-few counts hits of dense search: set retrieve.dense")
        if ranks == "passages" and retrieve.bm25 and retrieve.bm25_over != "passages":
            raise ValueError("ranks: passages needs passage BM25: set retrieve.bm25_over: passages")
        if self.rankings and (ranks == "passages" or self.online.when != "never"):
            raise ValueError("rankings needs ranks: citations and online.when: never")
        if self.recency.weight and ranks == "passages":
            raise ValueError("recency weighs citations: set ranks: citations")
        for name, part in (("rerank", self.rerank), ("refine", self.refine)):
            if part.stride > part.window:
                raise ValueError(f"{name}.stride must not exceed {name}.window: it would skip hits")
        return self
