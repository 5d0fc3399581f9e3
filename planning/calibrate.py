"""Measures this machine with the user's own settings, in a few minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from cluster.index.vocabulary import Vocabulary
from cluster.models import ModelStore
from cluster.object_store import File
from cluster.settings import Settings, load_system
from pipelines.generate_citations import generate_citations, write_generated
from pipelines.plan_build import segment_plan
from pipelines.split_passages import make_splitter
from planning import measure_build as build
from planning import measure_search as search
from planning.coefficients import Coefficients, Point
from planning.sample_corpus import StandIn, sample_files
from planning.summarise import Measured, ServingMeasured, summarise
from planning.watch_build import BuildMeasured, build_watched
from planning.watch_processes import usable_cpus
from serve.expand_question import Recogniser, TransformerRecogniser, VocabularyRecogniser
from serve.load_stages import load_reranker, remote_model

if TYPE_CHECKING:
    from cluster.encoder import Encoder

Tell = Callable[[str], None]
QUESTION_SEED = 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: citations in two sizes, passages encoded, questions asked."""

    small: int = 8_000
    large: int = 32_000
    passages: int = 1_000
    questions: int = 60
    repeats: int = 3
    built: int = 256


def load_encoder(settings: Settings) -> Encoder:
    """The encoder of the settings, whatever index there is."""
    from cluster.encoder import Encoder

    chosen = settings.encoder
    return Encoder.by(chosen, ModelStore().resolve(chosen.model, chosen.sha256 or None))


def calibrate(
    settings: Settings, tell: Tell, given: Sequence[File] = (), effort: Effort | None = None
) -> Coefficients:
    """Measure every stage on `given` records, or on generated ones.

    `tell` hears what is being measured. Raises InputError for models that cannot be had
    and a sample that is too small; LLMError where a configured endpoint does not answer.
    """
    effort = effort or Effort()
    with tempfile.TemporaryDirectory(prefix="citeray-calibrate-") as name:
        tell("a small build through Ray, for what any build takes at least")
        real = small_build(settings, effort.built, Path(name) / "real")
        return measure_all(settings, real, tell, given, effort)


def measure_all(
    settings: Settings, real: BuildMeasured, tell: Tell, given: Sequence[File], effort: Effort
) -> Coefficients:
    """The coefficients, given a small `real` build by the same settings."""
    load = psutil.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="citeray-calibrate-") as name:
        encoder = load_encoder(settings)
        measured = measure_building(settings, encoder, tell, given, effort, Path(name), real)
        serving = measure_serving(settings, encoder, tell, effort, measured)
        return summarise(settings, encoder.device, load, measured, serving)


def small_build(settings: Settings, citations: int, folder: Path) -> BuildMeasured:
    sources = write_generated(folder / "sources", citations)
    index = settings.index.model_copy(update={"path": folder / "index"})
    return build_watched(sources, settings.model_copy(update={"index": index}))


def measure_building(
    settings: Settings,
    encoder: Encoder,
    tell: Tell,
    given: Sequence[File],
    effort: Effort,
    folder: Path,
    real: BuildMeasured,
) -> Measured:
    """Every stage of a build but Ray, on a sample, one after the other."""
    split, index = settings.split, settings.index
    splitter = make_splitter(split.method, split.size, split.overlap, encoder.token_offsets)
    tell(f"reading {effort.large:,} citations")
    read = build.measure_reading(
        sample_files(folder / "sample", effort.large, given), effort.large, splitter
    )
    count = len(read.citations)
    tell(f"encoding {effort.passages:,} passages")
    threads = min(settings.encoder.threads, usable_cpus())
    encoded = build.measure_encoding(
        encoder, read.citations, splitter, effort.passages, effort.repeats, threads
    )
    sizes = (min(effort.small, count // 2), count)
    stand_in = StandIn(encoded.vectors)
    staged = [
        build.measure_staging(read, size, stand_in, folder / f"staged-{size}") for size in sizes
    ]
    plan = segment_plan("calibration", folder / "quantiser.faiss", encoder.dimensions, index)
    tell("training the quantiser")
    quantiser = build.measure_quantiser(staged[1], plan, index.training_vectors)
    tell(f"shards of {sizes[0]:,} and {sizes[1]:,} citations")
    segments = [
        build.measure_segment(part, plan, folder / f"index-{size}")
        for size, part in zip(sizes, staged, strict=True)
    ]
    tell("postings, terms, the vocabulary, an update")
    terms = build.measure_terms(read.citations)
    update = segment_plan("update", plan.quantiser, encoder.dimensions, index)
    return Measured(
        real=real,
        generated=not given,
        read=read,
        encoded=encoded,
        dimensions=encoder.dimensions,
        staged=staged[1],
        quantiser=quantiser,
        segments=(segments[0], segments[1]),
        bm25_core_seconds=build.measure_bm25(
            read.citations[: sizes[0]], splitter, index.bm25_over, folder / "bm25"
        ),
        terms=terms,
        published=measure_vocabularies(settings, terms, folder),
        update_core_seconds=build.measure_update(segments[1], staged[0], update),
        verify_seconds=build.measure_verifying(segments[1]),
    )


def measure_vocabularies(
    settings: Settings, terms: build.Terms, folder: Path
) -> tuple[build.Published, build.Published]:
    """The vocabulary of the sample's first part, and of it all."""
    chosen = settings.vocabulary
    headings = chosen.mesh_headings
    mesh = ModelStore().resolve(headings, chosen.mesh_sha256 or None) if headings else None
    least = chosen.abbreviation_min_citations
    few, all_of_them = (
        build.measure_publishing(counts, mesh, least, folder / name)
        for name, counts in (("few", terms.counts[0]), ("all", terms.counts[-1]))
    )
    return few, all_of_them


def load_recogniser(settings: Settings, vocabulary: Path) -> Recogniser:
    chosen = settings.recogniser
    if chosen.kind == "vocabulary":
        return VocabularyRecogniser(Vocabulary.open(vocabulary))
    model = ModelStore().resolve(chosen.model, chosen.sha256 or None)
    return TransformerRecogniser(model, chosen.labels, settings.encoder.device)


def measure_serving(
    settings: Settings, encoder: Encoder, tell: Tell, effort: Effort, measured: Measured
) -> ServingMeasured:
    """Each stage of a question by itself, on the calibration's own shards."""
    system = load_system(settings.serve.system)
    # 0: on a GPU only the clock tells.
    threads = min(settings.encoder.threads, usable_cpus()) if encoder.device == "cpu" else 0
    writers = generate_citations(effort.questions, QUESTION_SEED)
    questions = tuple(c.title for c in writers)
    vectors = encoder.encode_queries(list(questions))
    asked = search.Asked(questions, vectors, system)
    tell(f"searching both shards with {effort.questions} questions")
    searched = [
        search.measure_searching(s.index, s.entry, asked, settings) for s in measured.segments
    ]
    expand: tuple[Point, ...] = ()
    if system.expand:
        recogniser = load_recogniser(settings, measured.published[-1].path)
        expand = search.measure_batches(
            lambda q: recogniser.entities(q[0]), questions, 1, threads=1
        )
    tell("encoding and reranking questions")
    batch = settings.serve.encoder.batch
    rerank: tuple[Point, ...] = ()
    if system.rerank.depth:
        reranker = load_reranker(settings, encoder)
        rerank = search.measure_reranking(
            reranker, asked, measured.read.citations, settings, threads
        )
    model = remote_model(settings)
    if model:
        tell(f"asking the language model at {settings.llm.url}")
    evidence = " ".join(c.abstract for c in measured.read.citations[:20])
    return ServingMeasured(
        searched=(searched[0], searched[1]),
        expand=expand,
        encode=search.measure_batches(encoder.encode_queries, questions, batch, threads=threads),
        rerank_pairs=system.rerank.depth,
        rerank=rerank,
        llm=search.measure_llm(model, evidence[: settings.llm.evidence_characters], settings),
    )
