"""Run the pipeline in this process, without Ray or HTTP, for searches, batches and tests."""

from __future__ import annotations

from typing import Any

from cluster.settings.settings import Settings
from serve.answer.write_answer import AnswerWriter
from serve.contracts.backend import IndexFacts, LocalBackend, shard_stage
from serve.graph.load_stages import (
    load_encoder,
    load_expander,
    load_late_interaction,
    load_reranker,
    load_shard,
    load_writer_parts,
    open_manifest,
)
from serve.llm.model_roles import NO_MODELS, ModelRoles
from serve.pipeline.answer_question import QuestionAnswerer
from serve.search.encoder_stage import EncoderStage
from serve.search.pubmed.search_online import Online
from serve.search.shard_stage import ShardVersion


def local_backend(settings: Settings, models: ModelRoles = NO_MODELS) -> LocalBackend:
    """Load every stage in this process; without `models`, answers are extracted from evidence."""
    manifest = open_manifest(settings)
    expander = load_expander(settings, manifest)
    encoder = load_encoder(settings, manifest)
    others: dict[str, Any] = {
        shard_stage(n): ShardVersion(load_shard(settings, manifest, n), manifest)
        for n in range(len(manifest.shards))
    }
    if settings.reranker.is_stage:
        others["reranker"] = load_reranker(settings)
    writer = load_writer_parts(settings, encoder.encode, expander.entities, models)
    return LocalBackend(
        IndexFacts.of(manifest, settings),
        expander=expander,
        encoder=EncoderStage(encoder, load_late_interaction(settings, encoder)),
        writer=AnswerWriter(**writer),
        pubmed=Online(settings.entrez),
        **others,
    )


def local_answerer(settings: Settings, models: ModelRoles = NO_MODELS) -> QuestionAnswerer:
    """Load the whole pipeline in this process for the index of `settings`."""
    backend = local_backend(settings, models)
    return QuestionAnswerer(backend, settings.serve, settings.llm.evidence_characters)
