"""Loads each stage of the question's path from the settings and the index version.

The same loaders serve a local graph and the Ray Serve deployments. What imports torch is
imported where it is used: it takes seconds and 400 MB, and shards do without.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import IndexFormatError
from cluster.index.copies import drop_copies, verified
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import Manifest, read_manifest
from cluster.index.read_shard import ShardReader
from cluster.index.terms.collection import CollectionTerms
from cluster.index.tokens.shared_codec import open_codec
from cluster.index.versions import check_analyser, read_as_of
from cluster.models.adapters import full_name, model_folder, weights_checksum
from cluster.models.kept.keep_models import Conditions
from cluster.models.store import ModelStore, as_transformers_folder
from cluster.settings.settings import Settings
from cluster.text.vocabulary import Vocabulary
from serve.answer.ask_model import WriterLimits
from serve.answer.calibration import DEFAULT, read_calibration
from serve.answer.names.group_names import Recogniser as Recognise
from serve.answer.read_evidence import TextReader
from serve.answer.write_answer import AnswerWriter
from serve.answer.zero_shot_reader import ZeroShotReader
from serve.llm.language_model import ChatModel
from serve.question.expand_question import (
    LinkedRecogniser,
    Recogniser,
    TransformerRecogniser,
    VocabularyRecogniser,
)
from serve.question.understand_question import Expander
from serve.support.attribute_sentences import Encoder as Encode
from serve.support.attribute_sentences import SimilaritySupport, SupportScorer

if TYPE_CHECKING:
    from cluster.models.encoder import Encoder
    from cluster.models.kept.kept_encoder import KeptEncoder
    from serve.search.rerank_passages import Reranker

    QueryEncoder = Encoder | KeptEncoder


def open_manifest(settings: Settings) -> Manifest:
    """The published manifest, or that of `serve.as_of`; refused where this code cannot use it."""
    index, as_of = settings.index.place, settings.serve.as_of
    manifest = read_as_of(index, as_of) if as_of else read_manifest(index)
    check_analyser(manifest)
    return manifest


def load_encoder(settings: Settings, manifest: Manifest) -> QueryEncoder:
    """The encoder, which must be the one that made the index's vectors.

    Another number type will do where it makes nearly the same vectors (`check_dtype`). It runs
    without torch where an encoder before it was kept.
    """
    from cluster.models.kept.kept_encoder import find_encoder

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
    """The question's entity recogniser over the version's vocabulary; `before` as below."""
    return make_recogniser(settings, load_vocabulary(settings, manifest), before)


def load_expander(
    settings: Settings, manifest: Manifest, before: Expander | None = None
) -> Expander:
    """The recogniser with the counts of the version's terms; `before` as below."""
    known = before.recogniser if before else None
    vocabulary = load_vocabulary(settings, manifest)
    recogniser = make_recogniser(settings, vocabulary, known)
    return Expander(recogniser, CollectionTerms.open(settings.index.place, manifest), vocabulary)


def make_recogniser(
    settings: Settings, vocabulary: Vocabulary, before: Recogniser | None = None
) -> Recogniser:
    """Finds the names of `vocabulary`, or those of a transformer, linked to it.

    The transformer is that of `before`, a recogniser over another vocabulary, if there is one.
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
    """The version's vocabulary, its checksum verified; raises IndexFormatError if it is damaged."""
    file = str(vocabulary_file(manifest.version))
    folder = verified(settings.index.place, {file: manifest.vocabulary})
    vocabulary = Vocabulary.open(folder / file)
    drop_copies(settings.index.place, manifest)
    return vocabulary


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
        codec=open_codec(settings.index.place, manifest.tokens),
        before=before,
    )
    drop_copies(settings.index.place, manifest)
    return reader


def load_late_interaction(settings: Settings, encoder: QueryEncoder) -> Reranker:
    """Late interaction by `encoder`, for passages whose token vectors the index does not keep."""
    from serve.search.rerank_passages import LateInteractionReranker

    chosen = settings.reranker
    return LateInteractionReranker(encoder, chosen.batch_size, chosen.cache_mb)


def load_reranker(settings: Settings) -> Reranker:
    """The reranker that is a stage: a cross-encoder, or late interaction by its own adapter.

    The adapter is put on the encoder's model and leaves the index as it is.
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


def load_writer(
    settings: Settings, encode: Encode, recognise: Recognise, model: ChatModel | None
) -> AnswerWriter:
    """The writer over `model`; None answers from the evidence alone.

    `encode` gives the vectors (n, d) by which sentences are compared, `recognise` the
    entities of a text.
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
        support_threshold=support.threshold,
        deadline_s=settings.serve.llm.deadline_s,
        contradiction_threshold=support.contradiction,
    )
    calibration = read_calibration(settings.reader.calibration or DEFAULT)
    reader = load_reader(settings)
    return AnswerWriter(model, encode, scorer, recognise, reader, calibration, limits, llm.examples)


def load_reader(settings: Settings) -> TextReader:
    """Load the reader of the settings on the encoder's device; without torch as the encoder."""
    if settings.reader.kind == "zero-shot":
        return ZeroShotReader(load_reranker(settings), load_nli(settings))
    from cluster.models.kept.kept_reader import find_reader

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


def load_nli(settings: Settings) -> SupportScorer:
    """The settings' natural language inference model."""
    from serve.support.check_entailment import NliSupport

    device, dtype = classifier_runs(settings)
    return NliSupport(str(model_folder(settings.support)), device, dtype=dtype)


def classifier_runs(settings: Settings) -> tuple[str, str]:
    """The device and the number type of a classifier: the encoder's on a GPU.

    On a CPU they are float32, in which the thresholds of what classifiers say were chosen.
    """
    from cluster.models.hardware import choose_device

    device = choose_device(settings.encoder.device)
    return device, settings.encoder.dtype if device.startswith("cuda") else "float32"


def load_scorer(settings: Settings) -> SupportScorer:
    """What tells support, for a process that serves no graph; loads the encoder if it must."""
    if settings.support.kind == "nli":
        return load_nli(settings)
    from cluster.models.encoder import Encoder

    encoder = Encoder.by(settings.encoder, model_folder(settings.encoder))
    return SimilaritySupport(encoder.encode)


def llm_folder(settings: Settings) -> Path:
    """The folder of the language model in the form that vLLM loads."""
    return as_transformers_folder(
        ModelStore().resolve(settings.llm.model, settings.llm.sha256 or None)
    )


def llm_dtype(settings: Settings) -> str:
    """float32 on a CPU that would have to emulate bfloat16, which takes twice as long.

    On GPUs the choice is vLLM's: the process that asks here need not see one.
    """
    if settings.serve.llm.gpus:
        return "auto"
    from cluster.models.hardware import choose_dtype

    return str(choose_dtype("auto", "cpu")).removeprefix("torch.")
