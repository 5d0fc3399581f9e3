"""How a preset searches, as data: each part of a published system with its numbers.

What asks the language model says so; without one it is left out, and the result says that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Ranking = Literal["plain", "plain-reranked", "rewritten", "rewritten-reranked"]
AskedType = Literal["yesno", "factoid", "list", "summary"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExpansionSettings(_Part):
    """How other names of a question's entities widen its search: synonyms and MeSH's headings.

    Each is a BM25 term of `weight`, or of what `by_type` says for the question's type; 0 leaves
    them out. `variants` is how many further questions the vectors search, each the question with
    an entity by another of its names.
    """

    weight: Annotated[float, Field(ge=0)] = 0.0
    by_type: Mapping[AskedType, Annotated[float, Field(ge=0)]] = {}
    variants: Annotated[int, Field(ge=0, le=4)] = 0

    def of(self, kind: str) -> Self:
        """The same for a question of that type alone."""
        weights = {str(name): weight for name, weight in self.by_type.items()}
        return self.model_copy(update={"weight": weights.get(kind, self.weight), "by_type": {}})


class RewriteSettings(_Part):
    """How the language model puts the question to the search; `none` does not ask it.

    `hyde` embeds an abstract that would answer in place of the question (paper 002);
    `sub-questions` searches three queries, each by itself (002); `pseudo-documents` adds the
    names in `documents` texts to the BM25 query, in which the question counts `repeat` times
    (003); `expansion` adds a whole text to the question, for both branches (004). A reply has at
    most `tokens`: 002's, section 3.4 and appendix A.
    """

    kind: Literal["none", "hyde", "sub-questions", "pseudo-documents", "expansion"] = "none"
    documents: Annotated[int, Field(ge=1, le=4)] = 1
    repeat: Annotated[int, Field(ge=1, le=10)] = 1
    tokens: Annotated[int, Field(ge=16, le=2048)] = 512


class RetrieverSettings(_Part):
    """How many citations each branch of the search brings; 0 leaves the branch out.

    `bm25_k1` and `bm25_b` go before those of the index' settings.
    """

    dense: Annotated[int, Field(ge=0, le=1000)]
    bm25: Annotated[int, Field(ge=0, le=1000)]
    bm25_over: Literal["citations", "passages"] = "citations"
    bm25_k1: Annotated[float, Field(ge=0)] | None = None
    bm25_b: Share | None = None


class OnlineSettings(_Part):
    """PubMed's E-utilities as a retriever.

    `always`: PubMed's PMIDs are the candidates, and their passages in this index are ranked
    exactly (paper 000). `too-few`: only where fewer than `at_least` citations that the vectors
    find have a cosine of `similarity` or more; PubMed's own records join them (001). `limit`
    bounds the PMIDs of each query: the question's and its entities', and with `examples` above 0
    one that the language model writes in the manner of so many solved questions in `queries`, a
    YAML file of questions with their PubMed queries (001).
    """

    when: Literal["never", "always", "too-few"] = "never"
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    at_least: Annotated[int, Field(ge=0)] = 10
    similarity: Share = 0.0
    examples: Annotated[int, Field(ge=0, le=10)] = 0
    queries: str = "pubmed-queries.yaml"


class FusionSettings(_Part):
    """How the dense and the BM25 ranking become one order; `dense` and `bm25` are their weights.

    `weighted` adds the scores, each divided by its greatest; `rrf` adds weight / (`rrf_k` + rank)
    (Cormack et al. 2009).
    """

    method: Literal["weighted", "rrf"]
    dense: Annotated[float, Field(ge=0)] = 0.5
    bm25: Annotated[float, Field(ge=0)] = 0.5
    rrf_k: Positive = 60


class RerankSettings(_Part):
    """The first `depth` hits are scored again; 0 leaves the stage out.

    The new score is `weight` of the reranker's and the rest of the fused one, each
    scaled by its maximum. `by` model is the settings' `reranker`, `reader` the cross-encoder that
    answers from the evidence; `feedback` is how near a hit's passage is to those of the first
    `examples` (pseudo-relevance feedback); `listwise` and `pointwise` ask the language model, the
    first in windows of `window` that move by `stride` (004), by `prompt`: our own, or the one that
    RankZephyr was trained on.
    """

    depth: Annotated[int, Field(ge=0, le=1000)] = 0
    weight: Share = 1.0
    by: Literal["model", "reader", "feedback", "listwise", "pointwise"] = "model"
    examples: Annotated[int, Field(ge=1, le=10)] = 2
    window: Annotated[int, Field(ge=2, le=100)] = 20
    stride: Positive = 10
    prompt: Literal["rank-passages", "rank-zephyr"] = "rank-passages"


class RankingsSettings(_Part):
    """Rankings fused by reciprocal rank, which of them by the question's type (paper 003).

    `plain` is the first stage of the question as it is, `rewritten` of what `rewrite` makes
    of it; `-reranked` is each after the reranker.
    """

    by_type: Mapping[AskedType, Annotated[tuple[Ranking, ...], Field(min_length=1)]]
    k: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _names_every_type(self) -> Self:
        if missing := sorted(set(get_args(AskedType)) - self.by_type.keys()):
            raise ValueError(f"by_type has no rankings for {', '.join(missing)}")
        return self


class RungSettings(_Part):
    """A step of a ladder: the preset with these parts in the place of its own.

    `expects_ms` is what its search takes where none has told yet.
    """

    name: str
    expects_ms: Positive
    rewrite: RewriteSettings | None = None
    retrieve: RetrieverSettings | None = None
    rerank: RerankSettings | None = None
    refine: RerankSettings | None = None


class LadderSettings(_Part):
    """Searches of one preset, each better and longer than the one before.

    A question begins at the rung `begin`, or below it where its budget allows no more, and goes
    up a rung at a time while the search is not sure of its order and the budget allows. It is
    sure where the best citation scores above the tenth by `sure` of its own score or more.
    """

    rungs: Annotated[tuple[RungSettings, ...], Field(min_length=2)]
    begin: str
    sure: Mapping[AskedType, Annotated[float, Field(ge=0)]]

    @model_validator(mode="after")
    def _names_rungs_and_types(self) -> Self:
        names = [rung.name for rung in self.rungs]
        if len(set(names)) < len(names):
            raise ValueError("two rungs have one name")
        if self.begin not in names:
            raise ValueError(f"begin names no rung; there are: {', '.join(names)}")
        if missing := sorted(set(get_args(AskedType)) - self.sure.keys()):
            raise ValueError(f"sure has no share for {', '.join(missing)}")
        return self


class RecencySettings(_Part):
    """A score is raised by `weight` for the newest candidate, by half that `half_life` years
    before.
    """

    weight: Annotated[float, Field(ge=0)] = 0.0
    half_life: Annotated[float, Field(gt=0)] = 5.0
