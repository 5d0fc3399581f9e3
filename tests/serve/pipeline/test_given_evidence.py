"""Questions with given evidence, over a small index with fake models."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.answers import Answer, Question
from cluster.records import Passage
from cluster.settings.presets import load_system, system_names
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from serve.pipeline.answer_question import QuestionAnswerer
from serve.pipeline.given_evidence import NOT_HELD, RETRACTED
from tests.serve.answering import passage
from tests.serve.small_graph import make_answerer
from tests.small_index import citation

BODY = "Does metformin activate AMPK?"
YES = "Metformin activates AMPK in human muscle."
CORPUS = [
    citation(1, "Metformin activates AMPK in the liver of diabetic mice."),
    citation(2, "Warfarin inhibits VKORC1.", "On warfarin", year=1999),
    citation(4, "Metformin inhibits AMPK.", publication_types=("Retracted Publication",)),
]
HELD, WITHDRAWN, UNKNOWN = passage(YES, 2), passage("Metformin inhibits AMPK.", 4), passage(YES, 99)


@pytest.fixture(scope="module")
def answerer(tmp_path_factory: pytest.TempPathFactory) -> QuestionAnswerer:
    return make_answerer(tmp_path_factory.mktemp("index"), CORPUS, names=("AMPK",))


def ask(
    answerer: QuestionAnswerer,
    *given: Passage,
    system: str = "bm25",
    exclude: tuple[int, ...] = (),
    limit: int = 10,
    snippets: bool = False,
) -> Answer:
    question = Question("q", BODY, "yesno", exclude, given)
    return asyncio.run(answerer.answer(Request(question, load_system(system), limit, snippets)))


def texts(found: Answer) -> list[str]:
    return [item.passage.text for item in found.evidence]


def pmids(ideal: Sequence[object]) -> set[int]:
    return {pmid for sentence in ideal for pmid in sentence.pmids}  # type: ignore[attr-defined]


def test_given_passages_are_the_only_evidence_in_every_preset(
    answerer: QuestionAnswerer, subtests: pytest.Subtests
) -> None:
    for system in system_names():
        with subtests.test(system=system):
            found = ask(answerer, HELD, system=system)
            assert texts(found) == [YES]
            assert pmids(found.ideal) == {2}
            assert not {"retrieve", "rerank", "rewrite", "pubmed"} & found.timings_ms.keys()


def test_given_passages_get_metadata_from_the_index(answerer: QuestionAnswerer) -> None:
    found = ask(answerer, HELD)
    assert [(e.title, e.year, e.stance) for e in found.evidence] == [
        ("On warfarin", 1999, "support")
    ]
    assert [(c.pmid, c.title, c.year) for c in found.citations] == [(2, "On warfarin", 1999)]
    assert (found.index_version, found.coverage) == ("v000001", "2/2")
    assert not [loss for loss in found.degraded if loss.startswith("evidence")]


def test_given_passages_missing_from_the_index_are_noted(answerer: QuestionAnswerer) -> None:
    found = ask(answerer, UNKNOWN)
    assert [(e.passage, e.title, e.year) for e in found.evidence] == [(UNKNOWN, "", None)]
    assert pmids(found.ideal) == {99}
    assert NOT_HELD in found.degraded


def test_retracted_given_passages_are_left_out_and_noted(
    answerer: QuestionAnswerer,
) -> None:
    found = ask(answerer, WITHDRAWN, HELD)
    assert texts(found) == [YES]
    assert [(c.pmid, c.retracted) for c in found.citations] == [(4, True), (2, False)]
    assert RETRACTED in found.degraded


def test_no_answer_without_usable_given_passages(answerer: QuestionAnswerer) -> None:
    found = ask(answerer, WITHDRAWN)
    assert (found.origin, found.ideal, found.evidence) == ("none", (), ())
    assert "evidence: none found" in found.degraded


def test_given_passages_of_excluded_articles_are_left_out(answerer: QuestionAnswerer) -> None:
    found = ask(answerer, HELD, UNKNOWN, exclude=(2,))
    assert [c.pmid for c in found.citations] == [99]
    assert [e.passage.pmid for e in found.evidence] == [99]


def test_given_passages_are_distinct_and_in_order(answerer: QuestionAnswerer) -> None:
    late = passage("Warfarin inhibits VKORC1.", 2, begin=50)
    found = ask(answerer, HELD, UNKNOWN, late, HELD)
    assert [e.passage for e in found.evidence] == [HELD, UNKNOWN, late]
    assert [c.pmid for c in found.citations] == [2, 99]


def test_snippets_are_given_passages_and_the_limit_counts_citations(
    answerer: QuestionAnswerer,
) -> None:
    found = ask(answerer, HELD, UNKNOWN, limit=1, snippets=True)
    assert ([c.pmid for c in found.citations], len(found.evidence)) == ([2], 2)
    assert found.snippets == (HELD, UNKNOWN)


def test_entities_of_given_questions_depend_on_the_preset(answerer: QuestionAnswerer) -> None:
    assert [e.text for e in ask(answerer, HELD, system="aqams2").entities] == ["AMPK"]
    assert ask(answerer, HELD, system="bm25").entities == ()


def test_lost_shard_only_loses_metadata(tmp_path: Path) -> None:
    half = make_answerer(tmp_path, CORPUS, broken=("shard-0",))
    found = ask(half, HELD, passage(YES, 1), UNKNOWN)
    assert pmids(found.ideal)
    assert found.coverage == "1/2"
    assert "fetch: failed, shard 0 left out" in found.degraded


def test_given_question_fails_without_any_shard(tmp_path: Path) -> None:
    with pytest.raises(StageLostError, match="no shard"):
        ask(make_answerer(tmp_path, CORPUS, broken=("shard-0", "shard-1")), HELD)
