from collections.abc import Sequence
from typing import Any

import pytest

from cluster.answers import Answer, Question
from cluster.records import Passage
from cluster.settings.presets import system_names
from serve.contracts.stage_watch import StageLostError
from serve.pipeline.answer_question import QuestionAnswerer
from serve.pipeline.given_evidence import NOT_HELD, RETRACTED
from tests.serve.answering import passage
from tests.serve.small_graph import make_answerer, reply_of
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
def answerer() -> QuestionAnswerer:
    return make_answerer(None, CORPUS, names=("AMPK",))


def ask(
    answerer: QuestionAnswerer,
    *given: Passage,
    system: str = "bm25",
    exclude: tuple[int, ...] = (),
    **options: Any,
) -> Answer:
    question = Question("q", BODY, "yesno", exclude, given)
    return reply_of(answerer.answer, question, system, **options)


def pmids(ideal: Sequence[object]) -> set[int]:
    return {pmid for sentence in ideal for pmid in sentence.pmids}  # type: ignore[attr-defined]


def test_given_passages_are_the_only_evidence_in_every_preset(
    answerer: QuestionAnswerer, subtests: pytest.Subtests
) -> None:
    for system in system_names():
        with subtests.test(system=system):
            found = ask(answerer, HELD, system=system)
            assert [item.passage.text for item in found.evidence] == [YES]
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


LATE = passage("Warfarin inhibits VKORC1.", 2, begin=50)


@pytest.mark.parametrize(
    ("given", "options", "evidence", "citations", "lost"),
    [
        ((UNKNOWN,), {}, [UNKNOWN], [99], NOT_HELD),
        ((WITHDRAWN, HELD), {}, [HELD], [4, 2], RETRACTED),
        ((WITHDRAWN,), {}, [], [4], "evidence: none found"),
        ((HELD, UNKNOWN), {"exclude": (2,)}, [UNKNOWN], [99], NOT_HELD),
        ((HELD, UNKNOWN, LATE, HELD), {}, [HELD, UNKNOWN, LATE], [2, 99], NOT_HELD),
        # The limit counts citations.
        ((HELD, UNKNOWN), {"limit": 1}, [HELD, UNKNOWN], [2], NOT_HELD),
    ],
    ids=["not held", "retracted", "none usable", "excluded", "repeated", "limit"],
)
def test_usable_given_passages_are_the_evidence_in_order(
    answerer: QuestionAnswerer,
    given: Sequence[Passage],
    options: dict[str, Any],
    evidence: list[Passage],
    citations: list[int],
    lost: str,
) -> None:
    found = ask(answerer, *given, snippets=True, **options)
    assert [item.passage for item in found.evidence] == evidence
    assert found.snippets == tuple(evidence)
    assert [citation.pmid for citation in found.citations] == citations
    assert lost in found.degraded
    assert pmids(found.ideal) <= {passage.pmid for passage in evidence}
    assert {c.pmid for c in found.citations if c.retracted} == {4} & set(citations)
    assert bool(found.ideal) is bool(evidence)


def test_entities_of_given_questions_depend_on_the_preset(answerer: QuestionAnswerer) -> None:
    assert [e.text for e in ask(answerer, HELD, system="aqams2").entities] == ["AMPK"]
    assert ask(answerer, HELD, system="bm25").entities == ()


def test_lost_shard_only_loses_metadata() -> None:
    half = make_answerer(None, CORPUS, broken=("shard-0",))
    found = ask(half, HELD, passage(YES, 1), UNKNOWN)
    assert pmids(found.ideal)
    assert found.coverage == "1/2"
    assert "fetch: failed, shard 0 left out" in found.degraded


def test_given_question_fails_without_any_shard() -> None:
    with pytest.raises(StageLostError, match="no shard"):
        ask(make_answerer(None, CORPUS, broken=("shard-0", "shard-1")), HELD)
