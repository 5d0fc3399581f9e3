import pytest

from cluster.answers import Question, SearchResult
from cluster.settings.presets import load_system
from serve.pipeline.answer_question import QuestionAnswerer
from tests.serve.small_graph import make_answerer, reply_of
from tests.small_index import citation

CORPUS = [
    citation(1, "Metformin activates AMPK in muscle."),
    citation(2, "Metformin activates many enzymes of the liver in diabetic mice."),
    citation(3, "Metformin was first made in the year 1922 by two chemists in Dublin."),
]


@pytest.fixture(scope="module")
def answerer() -> QuestionAnswerer:
    return make_answerer(None, CORPUS)


def search(answerer: QuestionAnswerer, share: float, exclude: tuple[int, ...] = ()) -> SearchResult:
    question = Question("q", "Does metformin activate AMPK in muscle?", "yesno", exclude)
    system = load_system("bm25").model_copy(update={"evidence_share": share})
    return reply_of(answerer.search, question, system, snippets=True)


def pmids(found: SearchResult) -> list[int]:
    return [item.passage.pmid for item in found.evidence]


def test_evidence_share_drops_low_scoring_evidence(answerer: QuestionAnswerer) -> None:
    every = search(answerer, 0.0)
    scores = {item.passage.pmid: item.scores["score"] for item in every.evidence}
    assert pmids(every) == [1, 2, 3]
    found = search(answerer, scores[2] / scores[1])
    assert pmids(found) == [1, 2]
    assert {snippet.pmid for snippet in found.snippets} == {1, 2}
    best = search(answerer, 1.0)
    assert pmids(best) == [1]
    # All citations stay in the ranking.
    assert [c.pmid for c in best.citations] == [1, 2, 3]
    # Excluded citations do not count for the best score.
    assert pmids(search(answerer, 1.0, exclude=(1,))) == [2]


def test_evidence_share_accepts_empty_evidence() -> None:
    empty = make_answerer(None, [citation(1, "Nothing of the kind.")])
    assert pmids(search(empty, 0.75)) == []
