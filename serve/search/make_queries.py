"""Build the index queries of a question: its vector and its weighted BM25 terms.

If the language model should rewrite a query but fails, the question itself is used.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.index.vectors import Vectors
from cluster.records import Entity
from cluster.settings.system_settings import SystemSettings
from cluster.text.analysis import Analyser
from serve.contracts.stage_calls import StageCalls
from serve.question.expand_question import expansion_terms, variants_of
from serve.question.rewrite_question import (
    KEPT,
    decompose,
    entity_query,
    write_paragraphs,
)
from serve.question.understand_question import ENTITIES, Understood
from serve.search.encoder_stage import EMBED, ENCODE

# Safety limit, above what a question or the model's texts contain; the papers name no limit.
MAX_QUERY_TERMS = 512


@dataclass(frozen=True, slots=True)
class Query:
    """Dense `vector` (d,), or None if the encoder failed, and BM25 `weights` by term."""

    vector: Vectors | None
    weights: Mapping[str, float]


def query_weights(
    question: str, synonyms: Sequence[str], weight: float, analyser: Analyser
) -> dict[str, float]:
    """Return BM25 weights: term counts for the question, `weight` for terms of synonyms."""
    weights: dict[str, float] = dict(Counter(analyser.terms(question)))
    if weight > 0:
        for term in analyser.terms(" ".join(synonyms)):
            weights.setdefault(term, weight)
    return dict(list(weights.items())[:MAX_QUERY_TERMS])


# A task, which runs while the question is encoded. Its result is None if the expander fails.
Understanding = asyncio.Future[Understood | None]


def entities_of(understood: Understood | None) -> Sequence[Entity]:
    """Return the entities, or () if the expander failed."""
    return understood.entities if understood else ()


@dataclass(frozen=True, slots=True)
class QueryMaker:
    """Makes the queries of one question for a system."""

    understanding: Understanding
    system: SystemSettings
    stages: StageCalls

    async def plain(self, body: str) -> Query:
        """Return the query of the unchanged question, with synonyms if the system adds them."""
        vectors, found = await asyncio.gather(self.stages.once(ENCODE, body), self.understanding)
        vector = vectors.vector if vectors else None
        return Query(vector, self._own_weights(body, entities_of(found)))

    async def rewritten(self, body: str) -> list[Query]:
        """Return the queries of `system.rewrite`; only the plain query if the model fails."""
        rewrite, stages = self.system.rewrite, self.stages
        match rewrite.kind:
            case "hyde":
                vector, found = await asyncio.gather(
                    self._hypothetical_vector(body), self.understanding
                )
                return [Query(vector, self._own_weights(body, entities_of(found)))]
            case "sub-questions":
                asked = await decompose(body, stages.model_of("rewriter"), rewrite.tokens)
                return list(await asyncio.gather(*map(self.plain, asked or [body])))
            case "pseudo-documents":
                plain, named = await asyncio.gather(self.plain(body), self._named_weights(body))
                return [Query(plain.vector, named or plain.weights)]
            case "expansion":
                models = [stages.model_of("rewriter")]
                more = await write_paragraphs("continue", body, models, rewrite.tokens)
                return [await self.plain(" ".join([body, *more]))]
            case "none":
                plain, variants = await asyncio.gather(self.plain(body), self._variants(body))
                return [plain, *variants]

    def _own_weights(self, body: str, entities: Sequence[Entity]) -> dict[str, float]:
        weight = self.system.expansion.weight
        synonyms = expansion_terms(body, entities) if weight else []
        return query_weights(body, synonyms, weight, self.stages.facts.analyser)

    async def _variants(self, body: str) -> list[Query]:
        """Return dense-only queries in which an entity is replaced by another of its names."""
        limit = self.system.expansion.variants
        if not limit:
            return []
        texts = variants_of(body, entities_of(await self.understanding), limit)
        encode = ENCODE.with_loss("fewer names searched for")
        found = await asyncio.gather(*(self.stages.once(encode, text) for text in texts))
        return [Query(vectors.vector, {}) for vectors in found if vectors is not None]

    async def _hypothetical_vector(self, body: str) -> Vectors | None:
        """Return the vector of a hypothetical abstract, or the question's if the model fails."""
        models = [self.stages.model_of("rewriter")]
        hypothesis = await write_paragraphs("hyde", body, models, self.system.rewrite.tokens)
        if hypothesis:
            embedded = await self.stages.call(EMBED.with_loss(KEPT), hypothesis)
            if embedded is not None:
                first: Vectors = embedded[0]
                return first
        vectors = await self.stages.once(ENCODE, body)
        return vectors.vector if vectors else None

    async def _named_weights(self, body: str) -> dict[str, float]:
        """Return term weights of the question and of names in pseudo-documents; {} on failure."""
        rewrite, stages = self.system.rewrite, self.stages
        models = [stages.model_of("rewriter", turn) for turn in range(rewrite.documents)]
        documents = await write_paragraphs("pseudo-document", body, models, rewrite.tokens)
        if not documents:
            return {}
        entities = ENTITIES.with_loss("pseudo-documents without names")
        found = await asyncio.gather(*(stages.call(entities, text) for text in documents))
        names = [[entity.text for entity in of_document or ()] for of_document in found]
        weights = entity_query(body, names, rewrite.repeat, stages.facts.analyser)
        return dict(list(weights.items())[:MAX_QUERY_TERMS])
