"""Search settings of a preset: the parts of published systems, with their parameters.

The description of each part says whether it calls the language model. Without a language model,
such parts are skipped, and the result reports this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from cluster.settings.fields import Positive, Share, Strict

Ranking = Literal["plain", "plain-reranked", "rewritten", "rewritten-reranked"]
AskedType = Literal["yesno", "factoid", "list", "summary"]


class ExpansionSettings(Strict):
    """Query expansion with synonyms and MeSH headings of a question's entities.

    Each name is a BM25 term with the weight `weight`, or the weight in `by_type` for the question's
    type; 0 disables the expansion. `variants` is the number of additional queries of the dense
    search, in each of which an entity is replaced by another of its names.
    """

    weight: Annotated[float, Field(ge=0)] = 0.0
    by_type: Mapping[AskedType, Annotated[float, Field(ge=0)]] = {}
    variants: Annotated[int, Field(ge=0, le=4)] = 0

    def of(self, kind: str) -> Self:
        """Return a copy with the weight for questions of type `kind`."""
        weights = {str(name): weight for name, weight in self.by_type.items()}
        return self.model_copy(update={"weight": weights.get(kind, self.weight), "by_type": {}})


class RewriteSettings(Strict):
    """How the language model rewrites the question for the search; `none` does not call it.

    `hyde` embeds a generated abstract in place of the question (paper 002); `sub-questions` runs
    three separate queries (002); `pseudo-documents` adds the names in `documents` generated texts
    to the BM25 query, in which the question is repeated `repeat` times (003); `expansion` appends a
    generated text to the question for both branches (004). `tokens` is the maximum length of a
    reply; the default is from 002, section 3.4 and appendix A.
    """

    kind: Literal["none", "hyde", "sub-questions", "pseudo-documents", "expansion"] = "none"
    documents: Annotated[int, Field(ge=1, le=4)] = 1
    repeat: Annotated[int, Field(ge=1, le=10)] = 1
    tokens: Annotated[int, Field(ge=16, le=2048)] = 512


class RetrieverSettings(Strict):
    """Number of citations that each branch of the search retrieves; 0 disables the branch.

    `bm25_k1` and `bm25_b` override those in the index settings.
    """

    dense: Annotated[int, Field(ge=0, le=1000)]
    bm25: Annotated[int, Field(ge=0, le=1000)]
    bm25_over: Literal["citations", "passages"] = "citations"
    bm25_k1: Annotated[float, Field(ge=0)] | None = None
    bm25_b: Share | None = None


class OnlineSettings(Strict):
    """PubMed's E-utilities as a retriever.

    `always`: the PMIDs that PubMed returns are the candidates, and their passages in this index
    are ranked exactly (paper 000). `too-few`: PubMed is searched only if fewer than `at_least`
    citations of the dense search have a cosine of at least `similarity`, and its records are added
    to them (001). `limit` is the maximum number of PMIDs of each query. The queries are made from
    the question and its entities. With `examples` above 0, the language model writes another one,
    with this many few-shot examples from `queries`, a YAML file of questions with their PubMed
    queries (001).
    """

    when: Literal["never", "always", "too-few"] = "never"
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    at_least: Annotated[int, Field(ge=0)] = 10
    similarity: Share = 0.0
    examples: Annotated[int, Field(ge=0, le=10)] = 0
    queries: str = "pubmed-queries.yaml"


class FusionSettings(Strict):
    """How the dense and the BM25 ranking are fused; `dense` and `bm25` are their weights.

    `weighted` adds the scores, each divided by the maximum of its ranking; `rrf` adds
    weight / (`rrf_k` + rank) (Cormack et al. 2009).
    """

    method: Literal["weighted", "rrf"]
    dense: Annotated[float, Field(ge=0)] = 0.5
    bm25: Annotated[float, Field(ge=0)] = 0.5
    rrf_k: Positive = 60


class RerankSettings(Strict):
    """A stage that reranks the first `depth` hits; 0 disables it.

    The new score is a weighted mean: `weight` times the reranker's score plus 1 - `weight` times
    the fused score, each divided by its maximum. `by` is the scoring method: `model` is the
    settings' `reranker`; `reader` is the cross-encoder that reads the evidence; `feedback` is the
    similarity of a hit's passage to those of the first `examples` hits (pseudo-relevance feedback);
    `listwise` and `pointwise` ask the language model. `listwise` ranks windows of `window` hits
    that move by `stride` (004) with the prompt `prompt`: CiteRay's own, or the one that RankZephyr
    was trained on.
    """

    depth: Annotated[int, Field(ge=0, le=1000)] = 0
    weight: Share = 1.0
    by: Literal["model", "reader", "feedback", "listwise", "pointwise"] = "model"
    examples: Annotated[int, Field(ge=1, le=10)] = 2
    window: Annotated[int, Field(ge=2, le=100)] = 20
    stride: Positive = 10
    prompt: Literal["rank-passages", "rank-zephyr"] = "rank-passages"


class RankingsSettings(Strict):
    """Rankings to fuse by reciprocal rank for each question type (paper 003).

    `plain` is the first-stage ranking for the original question, `rewritten` the one for the
    question as changed by `rewrite`; `-reranked` is either of them after the reranker.
    """

    by_type: Mapping[AskedType, Annotated[tuple[Ranking, ...], Field(min_length=1)]]
    k: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _names_every_type(self) -> Self:
        if missing := sorted(set(get_args(AskedType)) - self.by_type.keys()):
            raise ValueError(f"by_type has no rankings for {', '.join(missing)}")
        return self


class RungSettings(Strict):
    """A cascade step: the preset with these parts replaced.

    `expects_ms` is the expected search time until one has been measured.
    """

    name: str
    expects_ms: Positive
    rewrite: RewriteSettings | None = None
    retrieve: RetrieverSettings | None = None
    rerank: RerankSettings | None = None
    refine: RerankSettings | None = None


class LadderSettings(Strict):
    """A cascade: the steps in `rungs`, each better and slower than the one before.

    A question begins at the step `begin`, or at an earlier one if its budget requires it. It
    advances one step at a time while the ranking is uncertain and the budget allows. A ranking is
    certain if the score of the best citation exceeds that of the tenth by at least the share
    `sure` of the best score.
    """

    rungs: Annotated[tuple[RungSettings, ...], Field(min_length=2)]
    begin: str
    sure: Mapping[AskedType, Annotated[float, Field(ge=0)]]

    @model_validator(mode="after")
    def _names_rungs_and_types(self) -> Self:
        names = [rung.name for rung in self.rungs]
        if len(set(names)) < len(names):
            raise ValueError("two steps have the same name")
        if self.begin not in names:
            raise ValueError(f"begin does not name a step; there are: {', '.join(names)}")
        if missing := sorted(set(get_args(AskedType)) - self.sure.keys()):
            raise ValueError(f"sure has no share for {', '.join(missing)}")
        return self


class RecencySettings(Strict):
    """Recency boost of a score.

    It is `weight` for the newest candidate, and halves with every `half_life` years of age.
    """

    weight: Annotated[float, Field(ge=0)] = 0.0
    half_life: Annotated[float, Field(gt=0)] = 5.0
