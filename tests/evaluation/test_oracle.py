import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster.answers import Answer, Question, SearchResult
from cluster.errors import InputError
from cluster.index.read_shard import ShardReader
from cluster.records import Citation, Passage
from cluster.settings.presets import load_system
from cluster.settings.search_settings import RerankSettings
from cluster.settings.settings import Settings, load_settings
from cluster.settings.system_settings import SystemSettings
from evaluation.ablation.ask_graph import Plan, ask_backend
from evaluation.ablation.oracle import ORACLES, material
from evaluation.bioasq.read_bioasq import Entry, Snippet
from pipelines.sample.generate_citations import generate_citations
from serve.contracts.stage_watch import StageLostError
from tests.serve.small_graph import small_backend
from tests.small_index import citation, make_index

pytestmark = pytest.mark.slow

SIZE = 60
BM25 = load_system("bm25")
DEPTH = load_system("citeray").rerank.depth
SETTINGS: Settings = load_settings()
SNIPPET = Snippet(
    "7", "abstract", "abstract", 0, 55, "Metformin activates AMPK in the liver of diabetic mice."
)
few = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
relevant = st.sets(st.integers(1, SIZE), min_size=1, max_size=10)


class Graph:
    """Answers questions over a small index, with or without oracles."""

    def __init__(self, index: Path, corpus: Sequence[Citation], *, shards: int = 2) -> None:
        self.manifest = make_index(index, corpus, shards=shards)
        self.readers = [
            ShardReader(index, n, entry, ef_search=64, exact_below=10**9)
            for n, entry in enumerate(self.manifest.shards)
        ]
        self.broken: tuple[str, ...] = ()

    def ask(
        self,
        system: SystemSettings,
        oracle: str | None,
        gold: set[int],
        *,
        k: int = 10,
        body: str = "",
        answers: bool = False,
        snippets: tuple[Snippet, ...] = (),
    ) -> SearchResult | Answer:
        entry = Entry("q", "summary", tuple(map(str, gold)), snippets, None, ())
        backend = small_backend(self.manifest, self.readers, self.broken)
        question = Question("q", body or self.body, "summary")
        plan = Plan(system, k, answers, oracle)
        return asyncio.run(ask_backend(backend, SETTINGS, {"q": entry}, question, plan))

    body = "Which drug is given to patients with the disease?"


def pmids(found: SearchResult | Answer) -> list[int]:
    return [c.pmid for c in found.citations]


@pytest.fixture(scope="module")
def corpus() -> list[Citation]:
    return [c for c in generate_citations(SIZE, seed=3) if c.search_text]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, corpus: list[Citation]) -> Graph:
    made = Graph(tmp_path_factory.mktemp("index"), corpus)
    made.body = corpus[0].search_text[:90]
    return made


def system_of(name: str) -> SystemSettings:
    """Return a preset; "rrf" is `hybrid` with rank fusion."""
    if name != "rrf":
        return load_system(name)
    hybrid = load_system("hybrid")
    return hybrid.model_copy(update={"fuse": hybrid.fuse.model_copy(update={"method": "rrf"})})


@pytest.mark.parametrize("system", ["bm25", "dense", "hybrid", "rrf", "citeray"])
@few
@given(gold=relevant)
def test_gold_retrieval_ranks_all_relevant_citations_first(
    graph: Graph, system: str, gold: set[int]
) -> None:
    """For `citeray`, k is the depth of its reranker."""
    k = DEPTH if system == "citeray" else len(gold)
    assert gold <= set(pmids(graph.ask(system_of(system), "retrieve", gold, k=k)))


@few
@given(gold=relevant)
def test_gold_retrieval_keeps_the_order_of_other_citations(graph: Graph, gold: set[int]) -> None:
    hybrid = load_system("hybrid")
    plain = [p for p in pmids(graph.ask(hybrid, None, gold, k=30)) if p not in gold]
    found = [p for p in pmids(graph.ask(hybrid, "retrieve", gold, k=40)) if p not in gold]
    assert found[:20] == plain[:20]


def test_gold_retrieval_survives_the_limit_of_a_small_branch(
    tmp_path: Path, corpus: list[Citation]
) -> None:
    """With a limit of 2 over 4 shards, the best hits of a weak shard would be lost."""
    graph = Graph(tmp_path, corpus, shards=4)
    graph.body = corpus[0].search_text[:90]
    small = BM25.model_copy(update={"retrieve": BM25.retrieve.model_copy(update={"bm25": 2})})
    last = pmids(graph.ask(BM25, None, set(), k=100))[-2:]
    assert set(pmids(graph.ask(small, "retrieve", set(last)))) == set(last)


def test_gold_retrieval_requires_all_shards_but_no_terms_or_encoder(graph: Graph) -> None:
    assert pmids(graph.ask(BM25, None, {5}, body="???")) == []
    assert pmids(graph.ask(BM25, "retrieve", {5}, body="???")) == [5]
    graph.broken = ("encode",)
    found = graph.ask(load_system("hybrid"), "retrieve", {5, 9}, k=2)
    assert set(pmids(found)) == {5, 9}
    assert "encode: failed, BM25 only" in found.degraded
    graph.broken = ("shard-0",)
    with pytest.raises(StageLostError):
        graph.ask(BM25, "retrieve", {5})
    graph.broken = ()


@pytest.mark.parametrize(("system", "pool"), [("bm25", 100), ("dense", 100), ("citeray", DEPTH)])
@few
@given(gold=relevant)
def test_gold_reranking_puts_relevant_first_and_keeps_order_of_ties(
    graph: Graph, system: str, pool: int, gold: set[int]
) -> None:
    none = RerankSettings()
    first_stage = load_system(system).model_copy(update={"rerank": none, "refine": none})
    plain = pmids(graph.ask(first_stage, None, gold, k=pool))
    found = pmids(graph.ask(load_system(system), "rerank", gold, k=pool))
    assert found == sorted(plain, key=lambda pmid: pmid not in gold)


def test_gold_evidence_includes_snippets_outside_the_index(graph: Graph) -> None:
    far = replace(SNIPPET, document=str(10**9), begin_section="title", end_section="title")
    plain = graph.ask(BM25, None, {7})
    found = graph.ask(BM25, "evidence", {7}, snippets=(SNIPPET, far))
    assert found.snippets == (
        Passage(7, "abstract", 0, 55, SNIPPET.text),
        Passage(10**9, "title", 0, 55, SNIPPET.text),
    )
    assert pmids(found) == pmids(plain)


def test_gold_evidence_reaches_the_writer(graph: Graph) -> None:
    asked = "Does metformin activate AMPK?"
    found = graph.ask(BM25, "evidence", {7}, body=asked, answers=True, snippets=(SNIPPET,))
    assert isinstance(found, Answer)
    assert (found.ideal[0].text, found.ideal[0].pmids) == (SNIPPET.text, (7,))
    assert {pmid for sentence in found.ideal for pmid in sentence.pmids} == {7}


def test_gold_evidence_excludes_retracted_citations(tmp_path: Path) -> None:
    withdrawn = citation(7, SNIPPET.text, publication_types=("Retracted Publication",))
    graph = Graph(tmp_path, [withdrawn, citation(8, "Another one.")])
    found = graph.ask(BM25, "evidence", {7}, snippets=(SNIPPET,))
    assert found.snippets == ()


def test_oracle_without_gold_changes_no_ranking(graph: Graph, subtests: pytest.Subtests) -> None:
    """Without gold, the oracles of retrieval and evidence change no ranking."""
    for oracle in sorted(ORACLES):
        with subtests.test(oracle=oracle):
            system = load_system("citeray")
            plain = graph.ask(system, None, set(), k=DEPTH)
            found = graph.ask(system, oracle, set(), k=DEPTH)
            assert set(pmids(found)) == set(pmids(plain))
            assert found.degraded == ()
            if oracle != "rerank":
                assert pmids(found) == pmids(plain)


def test_oracle_refuses_gold_without_pmid_or_text() -> None:
    with pytest.raises(InputError, match=r"question q: document 'PMC12' does not end in a PMID"):
        material(Entry("q", "summary", ("PMC12",), (), None, ()))
    with pytest.raises(InputError, match="question q: a snippet of 7 has no text"):
        material(Entry("q", "summary", (), (replace(SNIPPET, text=""),), None, ()))
