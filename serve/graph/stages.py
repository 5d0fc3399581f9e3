"""Typed interface of the pipeline to its stages. Every call goes through `Backend.call`.

`serve/graph/local_graph.py` runs the stages in this process, and `serve/graph/call_handles.py` runs
them as Ray Serve deployments; the pipeline depends on neither. A per-question cache or the oracles
of an ablation are backends that wrap another backend.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cluster.answers import Evidence, Question
from cluster.index.filters.inspect_filters import FilterFacts, FilterInquiry
from cluster.index.manifest import Manifest
from cluster.index.read_shard import Fetched, Found, ShardQuery
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import QuestionVectors, Vectors
from cluster.records import Citation, Entity, Passage
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.settings import Settings
from serve.answer.write_answer import WrittenAnswer
from serve.graph.versions.read_version import FromVersion
from serve.graph.watch_stages import StageLostError
from serve.llm.chat_form import Message, Say
from serve.llm.language_model import ChatModel
from serve.llm.model_roles import Role
from serve.question.understand_question import Suggestion, Understood
from serve.search.pubmed.search_online import ANY_DAY, Published


class Backend(Protocol):
    """Runs the stages `expander`, `encoder`, `writer`, `pubmed`, `shard-0000`…, `reranker`.

    Exceptions of a stage are raised to the caller. Cancelling a call also cancels the work of the
    stage.
    """

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """Call `method` of a stage and return its reply."""
        ...

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """Call a `method` that yields its reply in parts; close the generator to cancel it."""
        ...


class Around:
    """Backend that wraps another; subclasses override `call` to change its behaviour."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def call(self, stage: str, method: str, *arguments: Any) -> Any:
        """See `Backend.call`; forwards the call unchanged."""
        return await self.backend.call(stage, method, *arguments)

    def stream(self, stage: str, method: str, *arguments: Any) -> AsyncGenerator[Any, None]:
        """See `Backend.stream`; forwards the call unchanged."""
        return self.backend.stream(stage, method, *arguments)


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Facts that do not change while a graph is deployed: number of shards, BM25 constants.

    `late` is True if the shards rerank by late interaction over their stored token vectors.
    `reranker` is True if there is a reranker stage. If neither holds, the encoder reranks.
    """

    shards: int
    k1: float
    b: float
    late: bool = False
    reranker: bool = False

    @classmethod
    def of(cls, manifest: Manifest, settings: Settings) -> IndexFacts:
        """Return the facts of an index and its settings."""
        index, reranker = settings.index, settings.reranker.is_stage
        late = manifest.tokens is not None and not reranker
        return cls(len(manifest.shards), index.bm25_k1, index.bm25_b, late, reranker)


def shard_stage(number: int) -> str:
    """Return the stage name of a shard, counted from 0: "shard-0000"."""
    return f"shard-{number:04d}"


class ShardStage:
    """One shard of the index, local or remote."""

    def __init__(self, backend: Backend, number: int) -> None:
        self._backend = backend
        self._name = shard_stage(number)

    async def find(self, query: ShardQuery) -> FromVersion[Found]:
        """See `ShardReader.find`; the reply names the version that was searched."""
        found: FromVersion[Found] = await self._backend.call(self._name, "find", query)
        return found

    async def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, tokens: Halves | None = None
    ) -> FromVersion[list[Fetched]]:
        """See `ShardReader.fetch`; the reply names the version that was read."""
        fetched: FromVersion[list[Fetched]]
        fetched = await self._backend.call(self._name, "fetch", pmids, vector, tokens)
        return fetched

    async def identify(
        self, pmids: Sequence[int], dois: Sequence[str] = (), pmcids: Sequence[str] = ()
    ) -> dict[str, int]:
        """See `cluster.index.read_segment.identify`."""
        given = (list(pmids), list(dois), list(pmcids))
        found: dict[str, int] = await self._backend.call(self._name, "identify", *given)
        return found

    async def inspect_filters(self, asked: FilterInquiry) -> FilterFacts:
        """See `cluster.index.filters.inspect_filters`."""
        found: FilterFacts = await self._backend.call(self._name, "inspect_filters", asked)
        return found

    async def citation(self, pmid: int) -> Citation | None:
        """See `ShardReader.citation`."""
        citation: Citation | None = await self._backend.call(self._name, "citation", pmid)
        return citation


class _SpokenTo:
    """A language model that is called through the writer stage, without streaming."""

    def __init__(self, backend: Backend, role: Role, turn: int) -> None:
        self._backend = backend
        self._role = (role, turn)

    async def chat(self, messages: Sequence[Message], **options: Any) -> str:
        """See `ChatModel.chat`."""
        reply: str
        reply = await self._backend.call("writer", "chat", list(messages), options, *self._role)
        return reply


class Stages:
    """Typed access to the stages; `shards` has those of the manifest, in order.

    A `model` raises LLMError if no language model is configured. `find_online` and `fetch_online`
    raise PubMedError if PubMed does not answer. Only some presets use these three.
    """

    def __init__(self, backend: Backend, facts: IndexFacts) -> None:
        self.backend = backend
        self.facts = facts
        self.shards = [ShardStage(backend, number) for number in range(facts.shards)]

    def around(self, wrap: Callable[[Backend], Backend]) -> Stages:
        """Return the same stages with their backend wrapped by `wrap`."""
        return Stages(wrap(self.backend), self.facts)

    async def understand(self, text: str, over: str, named: bool) -> Understood:
        """Return a question's term statistics, and its entities if `named` is True."""
        understood: Understood
        understood = await self.backend.call("expander", "understand", text, over, named)
        return understood

    async def statistics(self, terms: Sequence[str], over: str) -> Statistics:
        """Return the BM25 statistics of terms `over` "citations" or "passages"."""
        found: Statistics = await self.backend.call("expander", "statistics", list(terms), over)
        return found

    async def entities(self, text: str) -> list[Entity]:
        """Return the entities in `text`, in order and without overlap."""
        entities: list[Entity] = await self.backend.call("expander", "entities", text)
        return entities

    async def headings(self, names: Sequence[str]) -> dict[str, str]:
        """Return the UI of each of `names` that is a MeSH heading or an entry term of one."""
        found: dict[str, str] = await self.backend.call("expander", "headings", list(names))
        return found

    async def did_you_mean(self, body: str) -> str | None:
        """Return the question with misspelt words corrected, or None if none are found."""
        corrected: str | None = await self.backend.call("expander", "did_you_mean", body)
        return corrected

    async def suggest(self, prefix: str, limit: int) -> list[Suggestion]:
        """Return names that begin with `prefix`, the most frequent in the index first."""
        found: list[Suggestion] = await self.backend.call("expander", "suggest", prefix, limit)
        return found

    async def encode(self, text: str) -> QuestionVectors:
        """Return the vectors of a question and of its tokens."""
        vectors: QuestionVectors = await self.backend.call("encoder", "encode", text)
        return vectors

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors (n, d) of passages."""
        vectors: Vectors = await self.backend.call("encoder", "encode_passages", list(texts))
        return vectors

    async def snippets(
        self, question: str, evidence: Sequence[Evidence], sentences: int
    ) -> list[Passage]:
        """Return snippets of up to `sentences` sentences each; see `choose_snippets`."""
        asked = (question, tuple(evidence), sentences)
        chosen: list[Passage] = await self.backend.call("encoder", "snippets", *asked)
        return chosen

    async def rerank(self, question: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the reranking scores of the texts, of shape (n,)."""
        scores: npt.NDArray[np.float32]
        stage = "reranker" if self.facts.reranker else "encoder"
        scores = await self.backend.call(stage, "score", question, list(texts))
        return scores

    async def answering(self, question: str, passages: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the reader's score for how well each passage answers, (n,), 0 to 1."""
        scores: npt.NDArray[np.float32]
        scores = await self.backend.call("writer", "answering", question, list(passages))
        return scores

    def model(self, role: Role = "writer", turn: int = 0) -> ChatModel:
        """Return the language model of a role; calls go through the writer stage."""
        return _SpokenTo(self.backend, role, turn)

    async def write(
        self,
        question: Question,
        evidence: Sequence[Evidence],
        style: AnswerSettings,
        say: Say | None = None,
    ) -> WrittenAnswer:
        """Write the answer; `say` receives each piece of the model's unchecked output."""
        asked = (question, tuple(evidence), style)
        if say is None:
            written: WrittenAnswer = await self.backend.call("writer", "write", *asked)
            return written
        async with aclosing(self.backend.stream("writer", "write_aloud", *asked)) as parts:
            async for part in parts:
                if not isinstance(part, str):
                    spoken: WrittenAnswer = part
                    return spoken
                say(part)
        raise StageLostError("the writer's stream ended before its answer")

    async def find_online(
        self, query: str, limit: int, published: Published = ANY_DAY
    ) -> list[int]:
        """Return the first `limit` PMIDs by PubMed's relevance, published within `published`."""
        asked = (query, limit, published)
        pmids: list[int] = await self.backend.call("pubmed", "find_online", *asked)
        return pmids

    async def fetch_online(self, pmids: Sequence[int]) -> list[Citation]:
        """Return the records of `pmids` that PubMed has, in the given order."""
        found: list[Citation] = await self.backend.call("pubmed", "fetch_online", list(pmids))
        return found
