import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cluster.answers import Question, SearchResult
from cluster.errors import InputError
from cluster.index.manifest import read_manifest
from cluster.index.read_shard import Found, ShardQuery, ShardReader
from cluster.records import Citation
from cluster.settings.presets import load_system, system_names
from cluster.settings.search_settings import RerankSettings
from cluster.settings.settings import load_settings
from cluster.settings.system_settings import SystemSettings
from cluster.text.analysis import ANALYSER, Analyser
from pipelines.sample.generate_citations import generate_citations
from serve.contracts.backend import IndexFacts, shard_stage
from serve.contracts.request import Request
from serve.http.workbench.systems_api import needs_of
from serve.pipeline.answer_question import QuestionAnswerer
from serve.search import search_shards
from serve.search.search_citations import search_citations
from serve.search.shard_stage import FromVersion, ShardVersion, VersionName
from tests.serve import service
from tests.serve.small_graph import calls_of, make_answerer, parts_of, reply_of
from tests.small_index import citation

pytestmark = pytest.mark.slow

CORPUS = [
    *service.CORPUS,
    citation(
        4,
        "Metformin activates AMPK, as a study that was withdrawn had claimed.",
        publication_types=("Retracted Publication",),
    ),
    citation(5, "", "Metformin: a title without an abstract"),
]
QUESTION = Question("q1", "Does metformin activate AMPK?", "yesno")
# Our presets that need no language model.
WITHOUT_MODEL = [
    system.name
    for system in map(load_system, system_names())
    if system.group in ("ours", "ranking") and not needs_of(system)
]


def search(
    answerer: QuestionAnswerer, system: str | SystemSettings = "citeray", limit: int = 10
) -> SearchResult:
    return reply_of(answerer.search, QUESTION, system, limit=limit)


def refined(refine: RerankSettings) -> SystemSettings:
    return load_system("citeray").model_copy(update={"refine": refine})


@pytest.mark.parametrize("system", WITHOUT_MODEL)
def test_every_system_finds_the_answering_citation(system: str) -> None:
    found = search(make_answerer(None, CORPUS), system)
    assert found.citations[0].pmid in (1, 4)
    assert found.degraded == ()
    assert found.coverage == "2/2"
    assert found.index_version == "v000001"
    if system == "citeray":
        steps = ["dense", "bm25", "fused", "reranked by model", "reranked by feedback"]
        assert list(found.candidates) == steps
        assert found.candidates["dense"] == found.candidates["fused"] == len(CORPUS)


def test_index_without_the_bm25_of_a_preset_is_named() -> None:
    stages: Any = SimpleNamespace(facts=IndexFacts(1, 0.9, 0.4, bm25_over=("passages",)))
    asked = Request(QUESTION, load_system("citeray"), 10)
    with pytest.raises(InputError, match="citeray: searches BM25 over citations, which the index"):
        asyncio.run(search_citations(asked, stages))


def test_evidence_prefers_abstracts_and_excludes_retractions() -> None:
    answerer = make_answerer(None, CORPUS)
    found = search(answerer, "hybrid")
    assert {c.pmid: c.retracted for c in found.citations}[4]
    sections = {e.passage.pmid: e.passage.section for e in found.evidence}
    assert (sections[1], sections[5], 4 in sections) == ("abstract", "title", False)
    assert len(search(answerer, limit=2).citations) == 2


@pytest.mark.parametrize(
    ("system", "broken", "late", "loss"),
    [
        ("citeray", ["shard-0"], False, "retrieve: failed, shard 0 left out"),
        ("citeray", ["encode", "rerank"], True, "encode: failed, BM25 only"),
        ("dense", ["encode"], False, "encode: failed, BM25 only"),
        ("citeray", ["expand"], False, "expand: failed, question not expanded"),
        ("bm25", ["expand"], False, "expand: failed, question not expanded"),
    ],
)
def test_search_without_a_stage_states_the_loss(
    system: str, broken: list[str], late: bool, loss: str
) -> None:
    found = search(make_answerer(None, CORPUS, broken=broken, late=late), system)
    is_shard = broken == ["shard-0"]
    assert found.coverage == ("1/2" if is_shard else "2/2")
    assert loss in found.degraded if is_shard else found.degraded == (loss,)
    assert found.citations[0].pmid in ((1, 2, 3, 4, 5) if is_shard else (1, 4))


def test_late_shard_is_not_called_again() -> None:
    defaults = load_settings().serve
    late = defaults.shard.model_copy(update={"deadline_s": 3})
    answerer = make_answerer(None, CORPUS, serve=defaults.model_copy(update={"shard": late}))
    asked: list[str] = []

    async def never(*_: object) -> None:
        await asyncio.sleep(60)

    shard = parts_of(answerer)["shard-0000"]
    shard.find, shard.fetch = never, asked.append
    found = search(answerer)
    assert (found.coverage, asked) == ("1/2", [])
    assert "retrieve: late, shard 0 left out" in found.degraded


def test_lost_rerankers_keep_the_first_stage_order() -> None:
    answerer = make_answerer(None, CORPUS, broken=["rerank", "read"])
    broken = search(answerer, refined(RerankSettings(by="reader", depth=20, weight=0.2)))
    plain = search(make_answerer(None, CORPUS), "hybrid")
    assert [c.pmid for c in broken.citations] == [c.pmid for c in plain.citations]
    assert "rerank: failed, first-stage order kept" in broken.degraded
    assert "read: failed, ranked without the reader" in broken.degraded
    assert list(broken.candidates) == ["dense", "bm25", "fused"]


def test_feedback_reranks_by_stored_vectors() -> None:
    answerer = make_answerer(None, CORPUS)
    feedback = RerankSettings(by="feedback", depth=20, weight=1.0, examples=1)
    best = search(answerer, refined(RerankSettings())).citations[0]
    found = search(answerer, refined(feedback)).citations
    assert found[0].pmid == best.pmid
    assert found[0].scores["feedback"] == 1
    assert len({c.scores["feedback"] for c in found}) > 1


def test_reader_reranks_the_head() -> None:
    answerer = make_answerer(None, CORPUS)
    read: list[tuple[str, list[str]]] = []

    async def answering(question: str, passages: list[str]) -> np.ndarray:
        read.append((question, passages))
        return np.arange(1, len(passages) + 1, dtype=np.float32)

    parts_of(answerer)["writer"].answering = answering
    found = search(answerer, refined(RerankSettings(by="reader", depth=3, weight=1.0)))
    [(asked, passages)] = read
    assert (asked, len(passages)) == (QUESTION.body, 3)
    assert [c.scores["reader"] for c in found.citations[:3]] == [3, 2, 1]
    assert "rerank" in found.citations[0].scores
    assert all("reader" not in c.scores for c in found.citations[3:])


@pytest.mark.parametrize("system", WITHOUT_MODEL)
def test_results_are_equal_for_any_number_of_shards(system: str) -> None:
    corpus: list[Citation] = [c for c in generate_citations(150, seed=5) if c.search_text]
    one, four = (make_answerer(None, corpus, shards=n) for n in (1, 4))
    for asked in corpus[:5]:
        question = Question("", asked.search_text[:80])
        found, same = (reply_of(answerer.search, question, system) for answerer in (one, four))
        assert [c.pmid for c in found.citations] == [c.pmid for c in same.citations]


@pytest.mark.parametrize("ahead", [0, 1])
def test_oldest_version_of_the_shards_is_reported(tmp_path: Path, ahead: int) -> None:
    answerer = make_answerer(tmp_path, CORPUS)
    newer = read_manifest(tmp_path).model_copy(
        update={"version": "v000010", "last_source": "n10.xml"}
    )
    reader = ShardReader(tmp_path, ahead, newer.shards[ahead], ef_search=64, exact_below=10**9)
    parts = parts_of(answerer)
    parts[shard_stage(ahead)] = ShardVersion(reader, newer)
    found = search(answerer)
    assert (found.index_version, found.last_source) == ("v000001", "")
    parts[shard_stage(1 - ahead)] = parts[shard_stage(ahead)]
    found = search(answerer)
    assert (found.index_version, found.last_source) == ("v000010", "n10.xml")


def test_version_of_fetched_citations_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two replicas of a shard can differ: one searches, the other fetches."""
    monkeypatch.setattr(search_shards, "FETCHED_LATER", 1e9)
    answerer = make_answerer(tmp_path, CORPUS)
    newer = read_manifest(tmp_path).model_copy(update={"version": "v000002"})

    class Ahead(ShardVersion):
        def find(self, query: ShardQuery) -> FromVersion[Found]:
            return replace(super().find(query), read=VersionName.of(newer))

    parts = parts_of(answerer)
    for name in ("shard-0000", "shard-0001"):
        parts[name] = Ahead(parts[name].reader, read_manifest(tmp_path))
    assert search(answerer).index_version == "v000001"


OLD, NEW = "simple-lower-english-stop-stem-1", ANALYSER.name


@pytest.mark.parametrize(
    ("analyser", "found"),
    [
        (OLD, {"sjo\u0308gren": [], "sj\u00f6gren": [2], "tnf\u03b1": [1]}),
        (NEW, {"sjogren": [2], "sjo\u0308gren": [2], "SJ\u00d6GREN": [2], "TNF\u03b1": [1]}),
    ],
)
def test_questions_are_split_as_the_index_was_built(
    analyser: str, found: dict[str, list[int]]
) -> None:
    corpus = [
        citation(1, "TNF\u03b1 rises."), citation(2, "Rates of Sj\u00f6gren in 5 cities."),
        citation(3, "Rates in 5 towns."),
    ]  # fmt: skip
    answerer = make_answerer(None, corpus, analyser=Analyser(analyser))
    for over in ("citations", "passages"):
        system = _bm25_of(over)
        for body, pmids in found.items():
            result = reply_of(answerer.search, Question("q", body), system)
            assert [c.pmid for c in result.citations] == pmids, (over, body)
            assert all(item.scores["bm25"] > 0 for item in result.evidence)


def _bm25_of(over: str) -> SystemSettings:
    system = load_system("bm25")
    retrieve = system.retrieve.model_copy(update={"bm25_over": over})
    return system.model_copy(update={"retrieve": retrieve, "ranks": over})


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_rerank_by_stored_token_vectors(shards: int) -> None:
    # Neither the reranker nor the encoder is called to rerank.
    answerer = make_answerer(None, CORPUS, shards=shards, broken=["rerank"], late=True)
    found = search(answerer)
    assert not any("first-stage order kept" in loss for loss in found.degraded)
    scores = [citation.scores["rerank"] for citation in found.citations]
    assert all(0 <= score <= 1.01 for score in scores)
    assert found.citations[0].scores["rerank"] == max(scores)
    again = search(make_answerer(None, CORPUS, shards=1, late=True))
    assert [c.pmid for c in again.citations] == [c.pmid for c in found.citations]
    assert [c.scores["rerank"] for c in again.citations] == pytest.approx(scores, abs=1e-6)


def test_search_calls_each_shard_once() -> None:
    answerer = make_answerer(None, CORPUS, shards=2, late=True)
    search(answerer)
    calls = sorted(call for call in calls_of(answerer) if call.startswith("shard-"))
    assert calls == ["shard-0000 find", "shard-0001 find"]


def test_missing_citations_are_fetched_later(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = search(make_answerer(None, CORPUS, late=True))
    # Let the search return no citations, so that all of them are fetched later.
    monkeypatch.setattr(search_shards, "FETCHED_LATER", 1e9)
    late = search(make_answerer(None, CORPUS, late=True))
    assert late.citations == whole.citations
    assert late.evidence == whole.evidence
    assert "fetch" in late.timings_ms
    assert "fetch" not in whole.timings_ms
