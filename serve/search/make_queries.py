"""Build the index queries of a question: its vector and its weighted BM25 terms.

If a query should be rewritten by the language model and the model is lost, the question itself is
used.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.index.vectors import Vectors
from cluster.records import Entity
from cluster.settings.system_settings import SystemSettings
from cluster.text.analysis import analyse
from serve.graph.watched_stages import WatchedStages
from serve.question.expand_question import expansion_terms, variants_of
from serve.question.rewrite_question import (
    KEPT,
    decompose,
    entity_query,
    write_paragraphs,
)
from serve.question.understand_question import Understood

# Safety limit, above what a question or the model's texts contain; the papers name no limit.
MAX_QUERY_TERMS = 512


@dataclass(frozen=True, slots=True)
class Query:
    """Dense `vector` (d,), None if the encoder is lost, and BM25 `weights` by term."""

    vector: Vectors | None
    weights: Mapping[str, float]


def query_weights(question: str, synonyms: Sequence[str], weight: float) -> dict[str, float]:
    """Return BM25 weights: term counts for the question, `weight` for terms of synonyms."""
    weights: dict[str, float] = dict(Counter(analyse(question)))
    if weight > 0:
        for term in analyse(" ".join(synonyms)):
            weights.setdefault(term, weight)
    return dict(list(weights.items())[:MAX_QUERY_TERMS])


# A task, so that the question is encoded concurrently. Its result is None if the expander is lost.
Understanding = asyncio.Future[Understood | None]


def entities_of(understood: Understood | None) -> Sequence[Entity]:
    """Return the entities; empty if the expander was lost."""
    return understood.entities if understood else ()


async def plain_query(
    body: str, understanding: Understanding, system: SystemSettings, stages: WatchedStages
) -> Query:
    """Return the query of the unchanged question, with synonyms if the system adds them."""
    vectors, found = await asyncio.gather(stages.encode(body), understanding)
    return Query(
        vectors.vector if vectors else None, _own_weights(body, entities_of(found), system)
    )


async def rewritten_queries(
    body: str, understanding: Understanding, system: SystemSettings, stages: WatchedStages
) -> list[Query]:
    """Return the queries of `system.rewrite`; only the plain query if the model is lost."""
    match system.rewrite.kind:
        case "hyde":
            vector, found = await asyncio.gather(
                _hypothetical_vector(body, system, stages), understanding
            )
            return [Query(vector, _own_weights(body, entities_of(found), system))]
        case "sub-questions":
            model, tokens = stages.model_of("rewriter"), system.rewrite.tokens
            asked = await decompose(body, model, tokens) or [body]
            queries = (plain_query(text, understanding, system, stages) for text in asked)
            return list(await asyncio.gather(*queries))
        case "pseudo-documents":
            plain, named = await asyncio.gather(
                plain_query(body, understanding, system, stages),
                _named_weights(body, system, stages),
            )
            return [Query(plain.vector, named or plain.weights)]
        case "expansion":
            model, tokens = stages.model_of("rewriter"), system.rewrite.tokens
            more = await write_paragraphs("continue", body, [model], tokens)
            text = " ".join([body, *more])
            return [await plain_query(text, understanding, system, stages)]
        case "none":
            plain, variants = await asyncio.gather(
                plain_query(body, understanding, system, stages),
                _variants(body, understanding, system, stages),
            )
            return [plain, *variants]


def _own_weights(body: str, entities: Sequence[Entity], system: SystemSettings) -> dict[str, float]:
    weight = system.expansion.weight
    synonyms = expansion_terms(body, entities) if weight else []
    return query_weights(body, synonyms, weight)


async def _variants(
    body: str, understanding: Understanding, system: SystemSettings, stages: WatchedStages
) -> list[Query]:
    """Return dense-only queries in which an entity is replaced by another of its names."""
    if not system.expansion.variants:
        return []
    texts = variants_of(body, entities_of(await understanding), system.expansion.variants)
    loss = "fewer names searched for"
    found = await asyncio.gather(*(stages.encode(text, loss) for text in texts))
    return [Query(vectors.vector, {}) for vectors in found if vectors is not None]


async def _hypothetical_vector(
    body: str, system: SystemSettings, stages: WatchedStages
) -> Vectors | None:
    """Return the vector of a hypothetical abstract, or the question's if the model is lost."""
    model, tokens = stages.model_of("rewriter"), system.rewrite.tokens
    hypothesis = await write_paragraphs("hyde", body, [model], tokens)
    if hypothesis:
        embedded = await stages.embed(hypothesis, KEPT)
        if embedded is not None:
            first: Vectors = embedded[0]
            return first
    vectors = await stages.encode(body)
    return vectors.vector if vectors else None


async def _named_weights(
    body: str, system: SystemSettings, stages: WatchedStages
) -> dict[str, float]:
    """Return weights of the question's terms and of names in pseudo-documents; {} without any."""
    rewrite = system.rewrite
    models = [stages.model_of("rewriter", turn) for turn in range(rewrite.documents)]
    documents = await write_paragraphs("pseudo-document", body, models, rewrite.tokens)
    if not documents:
        return {}
    found = await asyncio.gather(
        *(stages.entities(text, "pseudo-documents without names") for text in documents)
    )
    names = [[entity.text for entity in of_document] for of_document in found]
    weights = entity_query(body, names, rewrite.repeat)
    return dict(list(weights.items())[:MAX_QUERY_TERMS])
