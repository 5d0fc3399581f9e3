"""Pipeline over a small index with fake models, for tests without Ray."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cluster.answers import Question
from cluster.index.manifest import Manifest
from cluster.index.read_shard import ShardReader
from cluster.index.terms.collection import CollectionTerms
from cluster.index.versions import analyser_of
from cluster.models.embedded import QuestionVectors
from cluster.records import Citation, Entity
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from cluster.settings.stages.serving import ServeSettings
from cluster.settings.system_settings import SystemSettings
from cluster.text.analysis import ANALYSER, Analyser, analyse
from serve.answer.write_answer import AnswerWriter, WrittenAnswer
from serve.contracts.backend import Backend, BackendWrapper, IndexFacts, LocalBackend, shard_stage
from serve.contracts.request import Request
from serve.llm.language_model import ChatModel
from serve.llm.model_roles import ModelRoles
from serve.pipeline.answer_question import QuestionAnswerer
from serve.question.understand_question import Expander
from serve.search.encoder_stage import EncoderStage
from serve.search.pubmed.search_online import Online
from serve.search.shard_stage import ShardVersion
from tests.serve.answering import CALIBRATION, WordReader
from tests.small_index import CODEC, Encode, bag_of_words, make_index, shared_index

Reply = TypeVar("Reply")
Decide = Callable[[WrittenAnswer], WrittenAnswer]


def as_written(answer: WrittenAnswer) -> WrittenAnswer:
    return answer


class DecidedWriter(AnswerWriter):
    """Writer that changes its answers by `decide`."""

    decide: Decide = staticmethod(as_written)

    async def write(self, *asked: Any) -> WrittenAnswer:
        return self.decide(await super().write(*asked))


class SmallEncoder:
    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def encode_queries(self, texts: Sequence[str]) -> list[QuestionVectors]:
        vectors = self.encode(texts)
        tokens = [self.encode(analyse(text)).astype(np.float16) for text in texts]
        return [QuestionVectors(v, t) for v, t in zip(vectors, tokens, strict=True)]


class SmallReranker:
    def score(self, question: str, texts: Sequence[str]) -> np.ndarray:
        vectors = bag_of_words([question, *texts])
        return np.asarray(vectors[1:] @ vectors[0], np.float32)


class NamedThings:
    """Recogniser of `names`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def entities(self, text: str) -> list[Entity]:
        begins = {name: text.find(name) for name in self._names}
        return [Entity(n, at, at + len(n), "", "") for n, at in begins.items() if at >= 0]


BREAKS = {
    "expand": ("understand", "entities", "statistics"),
    "encode": ("encode",),
    "embed": ("encode_passages",),
    "rerank": ("score",),
    "read": ("answering",),
    "write": ("write", "stream_answer"),
}
OF_A_SHARD = ("find", "fetch", "citation", "citations", "match")


class Breaking(BackendWrapper):
    """Backend that records its `calls`, such as "shard-0000 find", and raises in those of `broken`.

    `broken` has keys of BREAKS, shards such as shard-0, and calls.
    """

    def __init__(self, backend: Backend, broken: Sequence[str]) -> None:
        super().__init__(backend)
        self.calls: list[str] = []
        self._gone = {
            (shard_stage(int(name[6:])) if name.startswith("shard-") else "", method)
            for name in broken
            if " " not in name
            for method in BREAKS.get(name, OF_A_SHARD)
        }
        self._gone |= {(stage, method) for stage, _, method in (n.partition(" ") for n in broken)}

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        self.calls.append(f"{stage} {method}")
        if {("", method), (stage, method)} & self._gone:
            raise RuntimeError(f"{method} of {stage} is gone")
        return await super().call(stage, method, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        if ("", method) in self._gone:
            raise RuntimeError(f"{method} of {stage} is gone")
        return super().stream(stage, method, *arguments)


def small_backend(
    manifest: Manifest,
    shards: Sequence[ShardReader],
    broken: Sequence[str] = (),
    encode: Encode = bag_of_words,
    model: ChatModel | None = None,
    online: Online | None = None,
    names: Sequence[str] = (),
    writer: ChatModel | None = None,
    decide: Decide = as_written,
    late: bool = False,
    models: ModelRoles | None = None,
) -> Breaking:
    reader = WordReader()
    roles = models or ModelRoles(model)
    written = DecidedWriter(
        writer, bag_of_words, None, lambda text: [], reader, CALIBRATION, models=roles
    )
    written.decide = decide  # type: ignore[method-assign]
    analyser = analyser_of(manifest)
    facts = IndexFacts(len(shards), 0.9, 0.4, late=late, reranker=not late, analyser=analyser)
    tables = [segment.opened.terms for shard in shards for segment in shard.segments]
    backend = LocalBackend(
        facts,
        expander=Expander(NamedThings(names), CollectionTerms(manifest, tables), None, analyser),
        encoder=EncoderStage(SmallEncoder(encode), SmallReranker()),  # type: ignore[arg-type]
        reranker=SmallReranker(),
        writer=written,
        pubmed=online,
        **{shard_stage(n): ShardVersion(r, manifest) for n, r in enumerate(shards)},
    )
    return Breaking(backend, broken)


def parts_of(answerer: QuestionAnswerer) -> dict[str, Any]:
    """Return the objects behind an answerer's stages, by stage, for a test to replace."""
    found: dict[str, Any] = answerer.backend.backend.stages  # type: ignore[attr-defined]
    return found


def reply_of(
    method: Callable[[Request], Coroutine[Any, Any, Reply]],
    question: Question,
    system: str | SystemSettings = "bm25",
    **options: Any,
) -> Reply:
    """Return the reply of an answerer's `method`; `options` are further fields of its Request."""
    chosen = load_system(system) if isinstance(system, str) else system
    return asyncio.run(method(Request(question, chosen, **options)))


def calls_of(answerer: QuestionAnswerer) -> list[str]:
    """Return the calls of an answerer to its stages so far, such as "shard-0000 find"."""
    made: list[str] = answerer.backend.calls  # type: ignore[attr-defined]
    return made


def backend_of(citations: Sequence[Citation]) -> Breaking:
    """Return a backend over the shared index of `citations`."""
    index, manifest = shared_index(citations, shards=2)
    return small_backend(manifest, _readers(index, manifest))


def _readers(index: Path, manifest: Manifest) -> list[ShardReader]:
    return [
        ShardReader(index, n, entry, ef_search=64, exact_below=10**9, codec=CODEC)
        for n, entry in enumerate(manifest.shards)
    ]


def patient_settings() -> ServeSettings:
    """Return settings with deadlines that a busy machine does not exceed."""
    names = ("expander", "encoder", "shard", "reranker", "writer", "llm")
    patient = [f"serve.{name}.deadline_s=300" for name in names]
    return load_settings(overrides=[*patient, "serve.request_deadline_s=300"]).serve


def make_answerer(
    index: Path | None,
    citations: Sequence[Citation],
    *,
    shards: int = 2,
    serve: ServeSettings | None = None,
    analyser: Analyser = ANALYSER,
    **options: Any,
) -> QuestionAnswerer:
    """Return an answerer over the shared index of `citations`, or over a new one at `index`.

    `options` are those of `small_backend`.
    """
    if index is None:
        index, manifest = shared_index(citations, shards=shards, analyser=analyser)
    else:
        manifest = make_index(index, citations, shards=shards, analyser=analyser)
    backend = small_backend(manifest, _readers(index, manifest), **options)
    return QuestionAnswerer(backend, serve or patient_settings())
