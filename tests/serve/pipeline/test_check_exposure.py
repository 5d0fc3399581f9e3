from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cluster.answers import Answer, Question
from cluster.exposure import ExposedSource, Knockout
from cluster.records import RETRACTED_TYPE, Citation, Link
from serve.client.print_answer import as_answer
from serve.http.answer_words import answer_words
from tests.serve.api import client_of
from tests.serve.service import SmallService
from tests.serve.small_graph import make_answerer, reply_of
from tests.small_index import citation

BODY = "Does metformin activate AMPK?"
WITHDRAWN = citation(10, "Ginseng cures gout.", publication_types=(RETRACTED_TYPE,))
NOTICE = citation(
    11,
    "The article is withdrawn.",
    links=(Link("RetractionOf", 12, "A journal"),),
    references=(12,),
)
YES = citation(1, "Metformin activates AMPK in human muscle.")
ALSO = citation(2, "Metformin activates AMPK in the liver of adults.")
NO = citation(3, "Metformin does not activate AMPK in human muscle.")
OTHER_NO = citation(4, "Metformin does not activate AMPK in the liver of adults.")


def citing(cited: Citation, *pmids: int) -> Citation:
    return replace(cited, references=(*range(500, 540), *pmids))


def ask(*corpus: Citation) -> Answer:
    answerer = make_answerer(None, [*corpus, WITHDRAWN, NOTICE])
    return reply_of(answerer.answer, Question("q", BODY, "yesno"))


def words(answer: Answer) -> str:
    return " ".join(answer.caveats)


def test_answer_without_exposed_sources_has_no_caveat() -> None:
    found = ask(citing(YES), ALSO)
    assert found.exposure is not None
    assert set(found.exposure.sources) == {1, 2}
    assert (found.exposure.exposed, found.exposure.unknown) == ((), ())
    assert found.exposure.without is None
    assert found.caveats == ()
    assert found.timings_ms["exposure"] < 1000


@pytest.mark.parametrize("retracted", [10, 12])
def test_source_that_cites_a_retracted_article_is_named(retracted: int) -> None:
    found = ask(citing(YES, retracted), ALSO)
    assert found.exposure is not None
    assert found.exposure.exposed == (ExposedSource(1, retracted=(retracted,)),)
    assert found.exposure.without == Knockout("yes", "yes", True)
    said = f"1 of 2 sources cites 1 retracted article (PMID {retracted})."
    assert words(found) == f"{said} Without this source, the answer is still yes."
    notices = {item.passage.pmid: item.notice for item in found.evidence}
    assert notices == {1: f"Cites 1 retracted article (PMID {retracted}).", 2: ""}
    assert {c.pmid: c.notice for c in found.citations if c.pmid == 1} == {1: notices[1]}


def test_source_under_an_expression_of_concern_is_named() -> None:
    doubted = replace(YES, links=(Link("ExpressionOfConcernIn", None, "A journal"),))
    found = ask(doubted, citing(ALSO, 1))
    assert found.exposure is not None
    assert set(found.exposure.exposed) == {
        ExposedSource(1, "expression of concern"),
        ExposedSource(2, doubted=(1,)),
    }
    assert words(found).startswith(
        "1 of 2 sources is under an expression of concern (PMID 1). 1 of 2 sources cites 1 article "
        "under an expression of concern (PMID 1). Without these sources, the answer changes to "
    )


@pytest.mark.parametrize(
    ("corpus", "stated", "before", "outcome"),
    [
        ([citing(YES, 10)], "yes", "yes", "not enough evidence"),
        ([citing(YES, 10), citing(ALSO, 10), NO], "yes", "mixed", "no"),
        ([citing(NO, 12), citing(OTHER_NO, 12), YES], "no", "no", "yes"),
    ],
)
def test_verdict_changes_without_the_exposed_sources(
    corpus: Sequence[Citation], stated: str, before: str, outcome: str
) -> None:
    found = ask(*corpus)
    assert found.exact == stated
    assert found.exposure is not None
    assert found.exposure.without == Knockout(outcome, before, False)
    change = "changes from mixed to" if before == "mixed" else "changes to"
    assert words(found).endswith(f"the answer {change} {outcome}.")


def test_notice_and_republication_are_not_exposed_by_their_own_article() -> None:
    republished = (Link("RetractedandRepublishedFrom", 12, ""),)
    found = ask(replace(YES, links=republished, references=(12,)))
    assert found.exposure is not None
    assert found.exposure.exposed == ()


def test_exposure_is_unknown_without_references() -> None:
    found = ask(replace(YES, references=None), replace(ALSO, references=None))
    assert words(found) == (
        "Exposure to retractions is unknown: this index has no references of these sources."
    )
    found = ask(replace(YES, references=None), citing(ALSO, 10))
    assert words(found).endswith("The references of 1 of 2 sources are unknown.")


def test_exposure_is_in_the_reply_and_its_document() -> None:
    http = client_of(SmallService(citations=[citing(YES, 10), WITHDRAWN]))
    asked = {"question": BODY, "type": "yesno", "system": "bm25"}
    answer = http.post("/v1/answer", json=asked).json()
    source = {"pmid": 1, "state": "", "retracted": [10], "doubted": []}
    outcome = {"outcome": "not enough evidence", "before": "yes", "stays": False}
    assert answer["exposure"] == {
        "sources": [1], "unknown": [], "exposed": [source], "without": outcome
    }  # fmt: skip
    (caveat,) = answer["caveats"]
    document = http.post("/v1/answers/document?form=text", json=answer).text
    assert caveat in " ".join(document.split())
    assert caveat in answer_words(as_answer(answer))


def test_exposure_is_not_known_if_a_shard_does_not_tell_its_doubts() -> None:
    """A partial exposure would make a known one seem new when two versions are compared."""
    for broken, is_known in (((), True), (("shard-0001 doubts",), False)):
        answerer = make_answerer(None, [citation(1, "A."), WITHDRAWN, NOTICE], broken=broken)
        assert (asyncio.run(answerer.exposure([1])) is not None) is is_known
