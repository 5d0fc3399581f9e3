"""Published systems over a small index, with a scripted model and a fake PubMed over HTTP."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Question, SearchResult
from cluster.records import Citation
from cluster.settings.presets import load_system, paper_runs, shipped_systems
from cluster.settings.search_settings import RecencySettings
from cluster.settings.system_settings import SystemSettings
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve import service
from tests.serve.eutils_server import EUtils, eutils
from tests.serve.pubmed_online import QuickOnline
from tests.serve.scripted_model import LOST, Reply, Script
from tests.serve.small_graph import make_answerer, parts_of, reply_of
from tests.small_index import citation

pytestmark = pytest.mark.slow

PUBLISHED = [
    name for name in shipped_systems() if load_system(name).group not in ("ours", "ranking")
]
# Runs of the papers that do not call the model.
QUIET_RUNS = ("huang-1", "udine-b1", "udine-b3")
WITH_MODEL = (
    *("biorag-v2", "biorag-v4", "biorag-v5", "biorag-v6"),
    *("aqams", "huang", "udine-a", "udine-b"),
)
CORPUS = [
    *service.CORPUS,
    citation(
        4, "Metformin activates AMPK, as was claimed.", publication_types=("Retracted Publication",)
    ),
    citation(5, "Aspirin acetylates cyclooxygenase in platelets."),
]
QUESTION = Question("q1", "Does metformin activate AMPK?", "yesno")


@pytest.fixture(scope="module")
def running() -> Iterator[EUtils]:
    with eutils(EUtils()) as server:
        yield server


class Graph:
    """Graph over the corpus with scripted replies of the model and of PubMed."""

    def __init__(self, pubmed: EUtils, folder: Path) -> None:
        self.pubmed = pubmed
        self.model = Script(_plausible, repeats=True)
        self._folder = folder
        self.finds(1, 4, 5)

    def says(self, *replies: Reply) -> None:
        self.model.replies[:] = replies

    def finds(self, *pmids: int) -> None:
        self.pubmed.start_over(dict.fromkeys(pmids, date(2020, 1, 1)))

    def answerer(self, corpus: Sequence[Citation] = CORPUS, **options: Any) -> QuestionAnswerer:
        online = QuickOnline(self.pubmed, self._folder)
        return make_answerer(None, corpus, model=self.model, online=online, **options)

    def search(
        self, system: str | SystemSettings, body: str = QUESTION.body, **options: Any
    ) -> SearchResult:
        return reply_of(self.answerer(**options).search, Question("q", body, "yesno"), system)


def _plausible(prompt: str) -> str:
    if "Candidate answer" in prompt:
        return json.dumps({"confidence": "HIGH", "missing": "", "followup_query": ""})
    if "Rank the" in prompt:
        return "[1] > [2]"
    return "Query 1: metformin AMPK\nQuery 2: metformin\nQuery 3: AMPK"


@pytest.fixture
def graph(running: EUtils, tmp_path: Path) -> Graph:
    return Graph(running, tmp_path)


def pmids(found: SearchResult) -> list[int]:
    return [c.pmid for c in found.citations]


def test_published_systems_find_the_answering_citation(
    graph: Graph, subtests: pytest.Subtests
) -> None:
    for system in PUBLISHED:
        with subtests.test(system=system):
            found = graph.search(system)
            assert found.citations[0].pmid in (1, 4)
            assert 4 not in {e.passage.pmid for e in found.evidence}
            assert (found.degraded, found.coverage, found.index_version) == ((), "2/2", "v000001")


def test_asks_model_is_true_for_presets_with_model_steps() -> None:
    assert {name for name in shipped_systems() if load_system(name).asks_model} == {
        "auto-model",
        *WITH_MODEL,
        *(set(paper_runs()) - set(QUIET_RUNS)),
    }


def test_systems_report_a_lost_model_and_continue(graph: Graph, subtests: pytest.Subtests) -> None:
    graph.says(LOST)
    for system in WITH_MODEL:
        with subtests.test(system=system):
            found = graph.search(system)
            assert found.citations[0].pmid in (1, 4)
            assert found.degraded
            assert all(": failed, " in loss for loss in found.degraded)


def test_systems_without_model_steps_never_call_the_model(
    graph: Graph, subtests: pytest.Subtests
) -> None:
    asking = (*WITH_MODEL, *paper_runs())
    for system in [*(name for name in PUBLISHED if name not in asking), *QUIET_RUNS]:
        with subtests.test(system=system):
            graph.search(system)
            assert graph.model.calls == []


def test_systems_report_a_lost_encoder_and_continue(
    graph: Graph, subtests: pytest.Subtests
) -> None:
    for system in ["sinai", "aqams", "biorag-v2", "biorag-v7", "udine-b"]:
        with subtests.test(system=system):
            found = graph.search(system, broken=["encode", "embed"])
            assert found.citations[0].pmid in (1, 4)
            lost = ("encode: failed", "embed: failed")
            assert any(loss.startswith(lost) for loss in found.degraded)


# Paper 002


def test_hyde_searches_by_a_hypothetical_answer(graph: Graph) -> None:
    graph.says("Warfarin inhibits VKORC1.")
    assert graph.search("biorag-v2", "How does it work?").evidence[0].passage.pmid == 2
    # The reranker reads the question, not the hypothesis.
    assert graph.search("biorag-v4").citations[0].pmid in (1, 4)


def test_sub_questions_are_searched_separately(graph: Graph) -> None:
    graph.says("Query 1: warfarin\nQuery 2: imatinib\nQuery 3: aspirin platelets")
    v5 = load_system("biorag-v5")
    few = v5.model_copy(update={"retrieve": v5.retrieve.model_copy(update={"dense": 1})})
    assert sorted(pmids(graph.search(few, "Which drugs thin the blood?"))) == [2, 3, 5]


def test_self_check_searches_the_models_query(graph: Graph) -> None:
    unsure = {"confidence": "LOW", "missing": "platelets", "followup_query": "aspirin platelets"}
    sure = {"confidence": "HIGH", "missing": "", "followup_query": ""}
    graph.says("Maybe.", json.dumps(unsure), "Yes.", json.dumps(sure))
    one = load_system("biorag-v6").model_copy(update={"evidence": 1})
    found = graph.search(one, "What inhibits VKORC1?")
    assert [e.passage.pmid for e in found.evidence] == [2, 5]
    assert pmids(found)[:2] == [2, 5]
    assert len(pmids(found)) == len(set(pmids(found)))


def test_preset_can_set_bm25_constants(graph: Graph) -> None:
    answerer = graph.answerer()
    asked: list[Any] = []
    shard = parts_of(answerer)["shard-0000"]
    find = shard.find

    def note(query: Any) -> Any:
        asked.append(query.bm25)
        return find(query)

    shard.find = note
    for system in ("biorag-v7", "bm25"):
        reply_of(answerer.search, QUESTION, system)
    assert [(query.k1, query.b) for query in asked] == [(1.5, 0.75), (0.9, 0.4)]


# Paper 003


def test_names_in_pseudo_documents_are_searched(graph: Graph) -> None:
    graph.says("It is Warfarin that does so.")
    found = graph.search("huang", "Which pill thins blood?", names=["Warfarin"])
    assert found.citations[0].pmid == 2
    assert len(graph.model.calls) == 2


def test_recency_orders_equal_citations(graph: Graph) -> None:
    text = "Metformin activates AMPK."
    corpus = [citation(1, text, year=1999), citation(2, text, year=2024)]
    huang = load_system("huang")
    strong = huang.model_copy(update={"recency": RecencySettings(weight=2, half_life=5)})
    unweighed = huang.model_copy(update={"recency": RecencySettings()})
    assert pmids(graph.search(strong, corpus=corpus)) == [2, 1]
    assert pmids(graph.search(unweighed, corpus=corpus)) == [1, 2]


# Paper 004


def test_evidence_follows_the_models_ranking_and_expansion(graph: Graph) -> None:
    graph.says("[2] > [1]")
    found = graph.search("udine-b", "warfarin or imatinib")
    shown = re.findall(r"^\[\d+\] (.+)$", graph.model.users()[0], re.MULTILINE)
    assert len(shown) == 2
    assert [e.passage.text for e in found.evidence] == shown[::-1]
    graph.says("VKORC1 is its target.", "[1]")
    assert 2 in pmids(graph.search("udine-a", "What thins blood?"))


# Papers 000 and 001


@pytest.mark.parametrize(
    ("pubmed", "ranked", "losses"),
    [
        ((5, 2, 1, 77), [1, 2, 5], ("pubmed: 1 of 4 PMIDs are not in this index",)),
        ((), [], ()),
    ],
)
def test_online_search_limits_evidence_to_pubmeds_results(
    graph: Graph, pubmed: tuple[int, ...], ranked: list[int], losses: tuple[str, ...]
) -> None:
    graph.finds(*pubmed)
    found = graph.search("sinai")
    assert (sorted(pmids(found)), found.degraded) == (ranked, losses)
    # Passages are ordered by their cosine.
    assert pmids(found)[:1] == ranked[:1]
    assert (found.coverage, found.index_version) == ("2/2", "v000001")


def test_lost_shard_and_encoder_reduce_online_results(graph: Graph) -> None:
    graph.finds(5, 2, 1)
    found = graph.search("sinai", broken=["encode"])
    assert pmids(found) == [5, 2, 1]
    assert "encode: failed, PubMed's order kept" in found.degraded
    found = graph.search("sinai", broken=["shard-0"])
    assert found.coverage == "1/2"
    assert "fetch: failed, shard 0 left out" in found.degraded


def too_few(at_least: int) -> SystemSettings:
    system = load_system("aqams")
    online = system.online.model_copy(update={"at_least": at_least})
    return system.model_copy(update={"online": online})


def test_pubmed_is_searched_only_if_too_few_hits_are_similar(graph: Graph) -> None:
    graph.search(too_few(1))
    assert graph.pubmed.requests == []
    graph.finds(1, 901, 902)
    found = graph.search(too_few(50))
    assert {901, 902} < set(pmids(found))
    assert pmids(found)[0] in (1, 4)
    fetched = next(f["id"] for f in graph.pubmed.requests if f["utility"] == "efetch")
    assert fetched == "901,902"


def test_pubmed_is_also_searched_by_the_models_query(graph: Graph) -> None:
    graph.says("Metformin[mh] AND AMP-Activated Protein Kinases[mh]")
    graph.search(too_few(50))
    terms = [form["term"] for form in graph.pubmed.requests if form["utility"] == "esearch"]
    assert "Metformin[mh] AND AMP-Activated Protein Kinases[mh]" in terms
    assert graph.model.users()[-1].count("Query: ") == 3
