"""Load each stage of the pipeline from the settings and the index version.

The local graph and the Ray Serve deployments share these loaders. Modules that import torch are
imported inside the functions that need them, because torch is slow to import, takes memory, and is
not needed by shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.errors import IndexFormatError
from cluster.index.copies import drop_copies, verified
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import ShardReader
from cluster.index.terms.collection import CollectionTerms
from cluster.index.tokens.shared_codec import open_codec
from cluster.index.versions import analyser_of, read_as_of
from cluster.models.adapters import full_name, model_folder, weights_checksum
from cluster.models.model_cache.cache_entries import Conditions
from cluster.settings.settings import Settings
from cluster.settings.stages.reader import ReaderSettings
from cluster.text.vocabulary import Vocabulary
from serve.answer.ask_model import WriterLimits
from serve.answer.calibration import DEFAULT, SHIPPED, Calibration, read_calibration
from serve.answer.names.cluster_names import Recognise
from serve.answer.names.score_names import NameModel
from serve.answer.read_evidence import TextReader
from serve.answer.zero_shot_reader import ZeroShotReader
from serve.llm.model_roles import ModelRoles
from serve.question.expand_question import (
    LinkedRecogniser,
    Recogniser,
    TransformerRecogniser,
    VocabularyRecogniser,
)
from serve.question.understand_question import Expander
from serve.support.attribute_sentences import (
    Encode,
    ReaderSupport,
    SimilaritySupport,
    SupportScorer,
)
from serve.support.weigh_evidence import Thresholds

if TYPE_CHECKING:
    from serve.search.encoder_stage import QueryEncoder
    from serve.search.rerank_passages import Reranker


def open_manifest(settings: Settings) -> Manifest:
    """Return the published manifest, or that of `serve.as_of`.

    Raises an error if this version of the code cannot read the index.
    """
    index, as_of = settings.index.location, settings.serve.as_of
    manifest = read_as_of(index, as_of) if as_of else read_manifest(index)
    analyser_of(manifest)
    return manifest


def load_encoder(settings: Settings, manifest: Manifest) -> QueryEncoder:
    """Load the encoder, which must be the one that computed the index's vectors.

    A different dtype is accepted if it gives nearly the same vectors (`check_dtype`). If a
    converted encoder is cached, it is used instead and runs without torch. Raises IndexFormatError
    if the encoder of the settings has other weights.
    """
    from cluster.models.model_cache.converted_encoder import find_encoder

    found = weights_checksum(settings.encoder)
    if found != manifest.encoder.sha256:
        raise IndexFormatError(
            f"the index was built with {full_name(manifest.encoder)} "
            f"({manifest.encoder.sha256[:12]}), the encoder of the settings is "
            f"{full_name(settings.encoder)} ({found[:12]}); set encoder.model and encoder.adapter "
            "to the first or build the index again"
        )
    folder, chosen = model_folder(settings.encoder), settings.encoder
    kept = find_encoder(chosen, folder)
    if kept is not None and manifest.encoder.dtype in ("", kept.dtype):
        return kept
    from cluster.models.check_dtype import check_dtype
    from cluster.models.encoder import Encoder

    encoder = Encoder.by(chosen, folder)
    check_dtype(encoder, folder, manifest.encoder.dtype)
    return encoder


def load_recogniser(
    settings: Settings, manifest: Manifest, before: Recogniser | None = None
) -> Recogniser:
    """Load the recogniser for the version's vocabulary; reuse the transformer of `before`."""
    return make_recogniser(settings, load_vocabulary(settings, manifest), before)


def load_expander(
    settings: Settings, manifest: Manifest, before: Expander | None = None
) -> Expander:
    """Load the recogniser and the version's term counts; reuse the recogniser of `before`."""
    known = before.recogniser if before else None
    vocabulary = load_vocabulary(settings, manifest)
    recogniser = make_recogniser(settings, vocabulary, known)
    collection = CollectionTerms.open(settings.index.location, manifest)
    return Expander(recogniser, collection, vocabulary, analyser_of(manifest))


def make_recogniser(
    settings: Settings, vocabulary: Vocabulary, before: Recogniser | None = None
) -> Recogniser:
    """Return a recogniser of vocabulary names, or a transformer linked to `vocabulary`.

    The transformer of `before`, a recogniser for another vocabulary, is reused if given.
    """
    chosen = settings.recogniser
    if chosen.kind == "vocabulary":
        return VocabularyRecogniser(vocabulary)
    if isinstance(before, LinkedRecogniser):
        return LinkedRecogniser(before.recogniser, vocabulary)
    path = model_folder(chosen)
    device, dtype = classifier_runs(settings)
    model = TransformerRecogniser(path, chosen.labels, device, dtype)
    return LinkedRecogniser(model, vocabulary)


def load_vocabulary(settings: Settings, manifest: Manifest) -> Vocabulary:
    """Open the version's vocabulary after verifying its checksum.

    Raises IndexFormatError if the file is damaged.
    """
    file = str(vocabulary_file(manifest.version))
    folder = verified(settings.index.location, {file: manifest.vocabulary})
    vocabulary = Vocabulary.open(folder / file)
    drop_copies(settings.index.location, manifest)
    return vocabulary


def load_shard(
    settings: Settings, manifest: Manifest, number: int, before: ShardReader | None = None
) -> ShardReader:
    """Open one shard, and verify the checksums of the files that `before` does not have open.

    Local copies that the published version does not need are deleted once the shard is mapped.
    """
    reader = ShardReader(
        settings.index.location,
        number,
        manifest.shards[number],
        ef_search=settings.index.ef_search,
        exact_below=settings.index.exact_below,
        codec=open_codec(settings.index.location, manifest.tokens),
        before=before,
    )
    drop_copies(settings.index.location, manifest)
    return reader


def load_late_interaction(settings: Settings, encoder: QueryEncoder) -> Reranker:
    """Return a late-interaction reranker for passages without stored token vectors."""
    from serve.search.rerank_passages import LateInteractionReranker

    chosen = settings.reranker
    return LateInteractionReranker(encoder, chosen.batch_size, chosen.cache_mb)


def load_reranker(settings: Settings) -> Reranker:
    """Load the reranker stage: a cross-encoder, or late interaction with its own adapter.

    The adapter is applied to the encoder's model and does not affect the index.
    """
    from cluster.models.encoder import Encoder
    from serve.search.rerank_passages import CrossEncoderReranker

    chosen = settings.reranker
    if chosen.kind == "late-interaction":
        own = settings.encoder.model_copy(update={"adapter": chosen.adapter})
        return load_late_interaction(settings, Encoder.by(own, model_folder(own)))
    return CrossEncoderReranker(
        model_folder(chosen),
        device=settings.encoder.device,
        dtype=settings.encoder.dtype,
        batch_size=chosen.batch_size,
    )


def load_writer_parts(
    settings: Settings, encode: Encode, recognise: Recognise, models: ModelRoles
) -> dict[str, Any]:
    """Return the arguments of AnswerWriter; without a model, it extracts answers from the evidence.

    `encode` returns the vectors (n, d) with which sentences are compared. `recognise` returns
    the entities of a text.
    """
    llm, support = settings.llm, settings.support
    scorer = load_nli(settings) if support.kind == "nli" else None
    limits = WriterLimits(
        ideal_tokens=llm.ideal_tokens,
        exact_tokens=llm.exact_tokens,
        ideal_from=llm.ideal_from,
        exact_from=llm.exact_from,
        temperature=llm.temperature,
        evidence_characters=llm.evidence_characters,
        thresholds=Thresholds(support.threshold, support.contradiction),
        deadline_s=settings.serve.llm.deadline_s,
    )
    return {
        "model": models.writer,
        "encode": encode,
        "scorer": scorer,
        "recognise": recognise,
        "reader": load_reader(settings),
        "calibration": load_calibration(settings.reader),
        "limits": limits,
        "examples": llm.examples,
        "models": models,
        "namer": load_namer(settings),
    }


def load_calibration(reader: ReaderSettings) -> Calibration:
    """Return the calibration of a reader; without its own one, that of the shipped reader.

    Another reader's relevance and stances differ, so that `related` and `no_weight` do not apply.
    """
    known = read_calibration(reader.calibration or DEFAULT)
    is_own = reader.calibration or (reader.kind, reader.model) == ("trained", SHIPPED)
    return known if is_own else known.model_copy(update={"related": 0.0, "no_weight": 1.0})


def load_reader(settings: Settings) -> TextReader:
    """Load the reader on the encoder's device; a cached, converted reader runs without torch."""
    if settings.reader.kind == "zero-shot":
        return ZeroShotReader(load_reranker(settings), load_nli(settings))
    from cluster.models.model_cache.converted_reader import find_reader

    chosen = settings.reader
    folder = model_folder(chosen)
    kept = find_reader(
        Conditions.of(settings.encoder, folder),
        max_tokens=chosen.max_tokens,
        batch_size=chosen.batch_size,
    )
    if kept is not None:
        return kept
    from cluster.models.reader import Reader

    return Reader.load(
        folder,
        device=settings.encoder.device,
        dtype=settings.encoder.dtype,
        max_tokens=chosen.max_tokens,
        batch_size=chosen.batch_size,
        threads=settings.encoder.threads,
        runtime=settings.encoder.runtime,
    )


def load_namer(settings: Settings) -> NameModel | None:
    """Load the language model that ranks names, or return None if another one chooses them."""
    if not settings.uses_namer:
        return None
    from cluster.models.name_scorer import NameScorer

    encoder = settings.encoder
    return NameScorer.load(
        model_folder(settings.namer),
        device=encoder.device,
        dtype=encoder.dtype,
        threads=encoder.threads,
    )


def load_nli(settings: Settings) -> SupportScorer:
    """Load the natural language inference model of the settings."""
    from serve.support.check_entailment import NliSupport

    device, dtype = classifier_runs(settings)
    return NliSupport(str(model_folder(settings.support)), device, dtype=dtype)


def classifier_runs(settings: Settings) -> tuple[str, str]:
    """Return the device and dtype of classifiers: the encoder's on a GPU, float32 on a CPU.

    The thresholds for classifier scores were chosen in float32.
    """
    from cluster.models.hardware import choose_device

    device = choose_device(settings.encoder.device)
    return device, settings.encoder.dtype if device.startswith("cuda") else "float32"


def load_scorer(settings: Settings) -> SupportScorer:
    """Load the support scorer for a process without a graph, with the models that it needs."""
    if settings.support.kind == "nli":
        return load_nli(settings)
    from cluster.models.encoder import Encoder

    encoder = Encoder.by(settings.encoder, model_folder(settings.encoder))
    return ReaderSupport(SimilaritySupport(encoder.encode), load_reader(settings).read)
