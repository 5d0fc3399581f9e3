"""Index citations as `citeray index build` does, and answer from them without Ray."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from cluster.answers import Answer, Question, QuestionType, SearchResult
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import EncoderEntry, artefact
from cluster.models.adapters import model_folder, weights_checksum
from cluster.records import Citation
from cluster.settings.presets import load_system
from cluster.settings.settings import Settings, load_settings
from pipelines.vocabulary.assemble_vocabulary import write_vocabulary
from pipelines.vocabulary.give_names import find_names, given_names
from pipelines.vocabulary.mine_vocabulary import count_terms
from serve.contracts.request import Request
from serve.graph.local_graph import local_answerer
from serve.llm.model_roles import find_models
from serve.pipeline.answer_question import QuestionAnswerer
from tests.publish_manifest import publish
from tests.small_index import make_index

SYSTEM = "citeray"
MAX_WRONG = load_system(SYSTEM).answer.max_wrong
LIMIT = 10
# Long deadlines, because a stage that a busy machine loses would change the answer.
PATIENT = tuple(
    f"serve.{stage}.deadline_s=300"
    for stage in ("gateway", "expander", "encoder", "shard", "reranker", "writer")
)


def settings_for(index: Path, overrides: Sequence[str] = ()) -> Settings:
    """Return the default settings for `index`; a language model only if `overrides` name one."""
    fixed = (f"index.path={index}", "llm.kind=none", "serve.request_deadline_s=600", *PATIENT)
    return load_settings(None, [*fixed, *overrides])


def build_index(folder: Path, citations: Sequence[Citation]) -> Path:
    """Index `citations` with the default encoder and vocabulary, and return the index folder.

    The folder is named after the citations and the encoder, so that a later call with the same
    arguments reuses it.
    """
    checksum = weights_checksum(load_settings().encoder)
    digest = hashlib.sha256(f"{checksum} {citations!r}".encode()).hexdigest()[:16]
    index = folder / digest
    if index.is_dir():
        return index
    aside = folder / f"{digest}.part"
    shutil.rmtree(aside, ignore_errors=True)
    _build(settings_for(aside), aside, citations, checksum)
    return aside.rename(index)


def _build(settings: Settings, index: Path, citations: Sequence[Citation], checksum: str) -> None:
    from cluster.models.encoder import Encoder

    encoder = Encoder.by(settings.encoder, model_folder(settings.encoder))
    manifest = make_index(
        index,
        citations,
        shards=settings.index.shards,
        vectors=settings.index.vectors,
        encoder=encoder,
    )
    vocabulary = index / vocabulary_file(manifest.version)
    vocabulary.unlink()
    chosen = settings.vocabulary
    minimum = chosen.abbreviation_min_citations
    names = given_names(find_names(chosen))
    write_vocabulary(count_terms(citations), names, vocabulary, min_citations=minimum)
    made_by = EncoderEntry(
        model=settings.encoder.model,
        adapter=settings.encoder.adapter,
        sha256=checksum,
        dimensions=manifest.encoder.dimensions,
        max_tokens=settings.encoder.max_tokens,
    )
    changes = {"encoder": made_by, "vocabulary": artefact(vocabulary)}
    publish(index, manifest.model_copy(update=changes))


class Examiner:
    """Answers questions from an index in this process, and caches the answers until `close`."""

    def __init__(self, settings: Settings, system: str = SYSTEM) -> None:
        self._answerer: QuestionAnswerer = local_answerer(settings, find_models(settings))
        self._system = load_system(system)
        self._runner = asyncio.Runner()
        self._answers: dict[tuple[str, QuestionType, float], Answer] = {}

    def answer(self, question: str, type: QuestionType, max_wrong: float = MAX_WRONG) -> Answer:
        asked = (question, type, max_wrong)
        if asked not in self._answers:
            style = self._system.answer.model_copy(update={"max_wrong": max_wrong})
            system = self._system.model_copy(update={"answer": style})
            work = self._answerer.answer(Request(Question("q", question, type), system, LIMIT))
            self._answers[asked] = self._runner.run(work)
        return self._answers[asked]

    def search(self, question: str, type: QuestionType) -> SearchResult:
        work = self._answerer.search(Request(Question("q", question, type), self._system, LIMIT))
        return self._runner.run(work)

    def close(self) -> None:
        self._runner.close()
