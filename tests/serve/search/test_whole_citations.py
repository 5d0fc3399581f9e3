from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cluster.answers import Evidence, Question
from cluster.index.read_shard import Fetched
from cluster.records import Citation, Passage
from cluster.settings.presets import load_system
from serve.search.rank_hits import Hit
from serve.search.whole_citations import (
    decisive_passages,
    first_passages,
    other_passages,
    rest_of_citations,
)
from tests.serve.small_graph import make_answerer, reply_of
from tests.small_index import citation

TITLED = "Curevit reduces zelania."
PARTS = ("Zelania is bad.", "We gave curevit.", "It fell by half.")


def hit(pmid: int, position: int, title: str = TITLED, parts: Sequence[str] = PARTS) -> Hit:
    """Return a citation with a title; the parts of the abstract begin every ten characters."""
    passages = [Passage(pmid, "title", 0, len(title), title)]
    passages += [
        Passage(pmid, "abstract", 10 * n, 10 * n + len(part), part) for n, part in enumerate(parts)
    ]
    found = Fetched(Citation(pmid, title=title), tuple(passages), (0.0,) * len(passages))
    return Hit(found, position, 1.0, {})


def texts(evidence: Sequence[Evidence]) -> list[str]:
    return [item.passage.text for item in evidence]


def test_other_passages_yields_all_other_passages(subtests: pytest.Subtests) -> None:
    found = hit(1, 1).fetched
    retracted = replace(found.citation, publication_types=("Retracted Publication",))
    for of, rest in [
        (hit(1, 1), [TITLED, *PARTS[1:]]),
        (hit(1, 3), [TITLED, *PARTS[:2]]),
        (hit(1, 0, parts=()), []),
        (replace(hit(1, 1), alone=True), []),
        (replace(hit(1, 1), place=None), []),
        (replace(hit(1, 1), fetched=replace(found, citation=retracted)), []),
    ]:
        with subtests.test(of=of, rest=rest):
            assert texts(list(other_passages(of))) == rest


def test_only_the_first_citations_are_read_whole() -> None:
    hits = [hit(1, 1), hit(2, 1), hit(3, 1)]
    evidence = [found for of in hits[1:] if (found := of.evidence()) is not None]
    assert {item.passage.pmid for item in rest_of_citations(hits, evidence, 1)} == {2}
    assert rest_of_citations(hits, evidence, 0) == []


def test_neutral_passages_are_removed_after_the_answer() -> None:
    of = hit(1, 1)
    first = of.evidence()
    assert first is not None
    title, _, end = other_passages(of)
    passages = [first, replace(title, stance="neutral"), replace(end, stance="contradict")]
    assert texts(decisive_passages(passages, [])) == [PARTS[0], PARTS[2]]
    assert texts(decisive_passages(passages, [TITLED])) == [PARTS[0], TITLED, PARTS[2]]
    assert texts(first_passages(passages)) == [PARTS[0]]


def test_added_passages_are_evidence_but_not_snippets() -> None:
    body = "Metformin activates AMPK in muscle of mice. " * 12
    end = "In conclusion the enzyme was active."
    title = "Metformin activates an enzyme."
    answerer = make_answerer(None, [citation(1, f"{body}{end}", title)])
    system = load_system("bm25").model_copy(update={"whole": 1})
    question = Question("q", "Does metformin activate AMPK in muscle?", "factoid")
    found = reply_of(answerer.search, question, system, snippets=True)
    first, *rest = texts(found.evidence)
    assert rest[0] == title
    assert rest[-1].endswith(end) or first.endswith(end)
    assert [snippet.text for snippet in found.snippets] == [first]
