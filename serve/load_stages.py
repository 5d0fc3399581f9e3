"""Loads each stage of the question's path from the settings and the index version.

The same loaders serve a local graph and the Ray Serve deployments. What imports torch is
imported where it is used: it takes seconds and 400 MB, and shards do without.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import IndexFormatError
from cluster.index.analysis import ANALYSER
from cluster.index.copies import drop_copies, verified
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import ShardReader
from cluster.index.vocabulary import Vocabulary
from cluster.models import ModelStore, as_transformers_folder, checksum
from cluster.settings import Settings
from serve.attribute_sentences import Encoder as Encode
from serve.expand_question import Recogniser, TransformerRecogniser, VocabularyRecogniser
from serve.extract_exact import Recogniser as Recognise
from serve.language_model import ChatModel, OpenAIChatModel
from serve.write_answer import AnswerWriter, WriterLimits

if TYPE_CHECKING:
    from cluster.encoder import Encoder
    from serve.rerank_passages import Reranker


def resolve(name: str, sha256: str) -> Path:
    """The local path of a named model, fetched if it is not in the store."""
    return ModelStore().resolve(name, sha256 or None)


def open_manifest(settings: Settings) -> Manifest:
    """The published manifest, refused where it doesn't fit the settings or this code."""
    index = settings.index.place
    manifest = read_manifest(index)
    check_analyser(manifest)
    return manifest


def check_analyser(manifest: Manifest) -> None:
    """Raise IndexFormatError where the version's BM25 terms are not made as questions' are."""
    if manifest.analyser != ANALYSER:
        raise IndexFormatError(
            f"the BM25 terms of {manifest.version} were made by {manifest.analyser}, this CiteRay "
            f"uses {ANALYSER}; build the index again"
        )


def load_encoder(settings: Settings, manifest: Manifest) -> Encoder:
    """The encoder, which must be the one that made the index's vectors."""
    from cluster.encoder import Encoder

    path = resolve(settings.encoder.model, settings.encoder.sha256)
    found = checksum(path)
    if found != manifest.encoder.sha256:
        raise IndexFormatError(
            f"the index was built with {manifest.encoder.model} ({manifest.encoder.sha256[:12]}), "
            f"encoder.model is {settings.encoder.model} ({found[:12]}); set encoder.model to the "
            "first or build the index again"
        )
    return Encoder.by(settings.encoder, path)


def load_recogniser(settings: Settings, manifest: Manifest) -> Recogniser:
    """The question's entity recogniser: the index' own vocabulary, or a transformer."""
    chosen = settings.recogniser
    if chosen.kind == "transformer":
        path = resolve(chosen.model, chosen.sha256)
        return TransformerRecogniser(path, chosen.labels, settings.encoder.device)
    file = str(vocabulary_file(manifest.version))
    folder = verified(settings.index.place, {file: manifest.vocabulary})
    recogniser = VocabularyRecogniser(Vocabulary.open(folder / file))
    drop_copies(settings.index.place, manifest)
    return recogniser


def load_shard(
    settings: Settings, manifest: Manifest, number: int, before: ShardReader | None = None
) -> ShardReader:
    """The reader of one shard, every checksum of what `before` has not open verified.

    Copies that the published version does not need are dropped once all it needs is mapped.
    """
    reader = ShardReader(
        settings.index.place,
        number,
        manifest.shards[number],
        ef_search=settings.index.ef_search,
        exact_below=settings.index.exact_below,
        before=before,
    )
    drop_copies(settings.index.place, manifest)
    return reader


def load_reranker(settings: Settings, encoder: Encoder | None) -> Reranker:
    """The reranker; late interaction uses `encoder`, a cross-encoder its own model."""
    from serve.rerank_passages import make_reranker

    chosen = settings.reranker
    if chosen.kind == "late-interaction":
        return make_reranker(chosen.kind, encoder=encoder, batch_size=chosen.batch_size)
    return make_reranker(
        chosen.kind,
        model_dir=resolve(chosen.model, chosen.sha256),
        device=settings.encoder.device,
        dtype=settings.encoder.dtype,
        batch_size=chosen.batch_size,
    )


def load_writer(
    settings: Settings, encode: Encode, recognise: Recognise, model: ChatModel | None
) -> AnswerWriter:
    """The writer over `model`; None answers from the evidence alone.

    `encode` gives the vectors (n, d) by which sentences are compared, `recognise` the
    entities of a text.
    """
    llm, support = settings.llm, settings.support
    scorer = None
    if support.kind == "nli":
        from cluster.hardware import choose_device
        from serve.check_entailment import NliSupport

        path = resolve(support.model, support.sha256)
        scorer = NliSupport(str(path), choose_device(settings.encoder.device))
    limits = WriterLimits(
        ideal_tokens=llm.ideal_tokens,
        exact_tokens=llm.exact_tokens,
        exact_from=llm.exact_from,
        temperature=llm.temperature,
        evidence_characters=llm.evidence_characters,
        support_threshold=support.threshold,
        deadline_s=settings.serve.llm.deadline_s,
    )
    return AnswerWriter(model, encode, scorer, recognise, limits)


def llm_folder(settings: Settings) -> Path:
    """The folder of the language model in the form that vLLM loads."""
    return as_transformers_folder(resolve(settings.llm.model, settings.llm.sha256))


def llm_dtype(settings: Settings) -> str:
    """float32 on a CPU that would have to emulate bfloat16, which takes twice as long.

    On GPUs the choice is vLLM's: the process that asks here need not see one.
    """
    if settings.serve.llm.gpus:
        return "auto"
    from cluster.hardware import choose_dtype

    return str(choose_dtype("auto", "cpu")).removeprefix("torch.")


def remote_model(settings: Settings) -> ChatModel | None:
    """The language model behind `llm.url`, or None where the settings name none."""
    if settings.llm.kind != "url":
        return None
    return OpenAIChatModel(
        settings.llm.url,
        settings.llm.model_id,
        api_key_env=settings.llm.api_key_env,
        timeout_s=settings.serve.llm.deadline_s,
    )
