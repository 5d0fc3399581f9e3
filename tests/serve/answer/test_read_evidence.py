from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.answers import Evidence
from cluster.models.readings import Reading, ScoredSpan
from cluster.records import NO_TITLE, Passage
from cluster.text.sentences import sentence_spans
from serve.answer.read_evidence import (
    MAX_READ,
    CachedReader,
    ReadCitation,
    answering,
    join_text,
    read_evidence,
)
from tests.serve.answering import citation, evidence

ABSTRACT = "Metformin lowers glucose. It activates AMPK in the liver. Adults took it daily."
HEADING = "Metformin in adults."


class Counting:
    """Reader that scores longer texts as more relevant, and records the texts that it reads."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        self.texts += texts
        return [Reading(len(text) / 100, 0.0, 0.0, 1.0) for text in texts]


def test_cached_reader_reads_a_text_once_per_question() -> None:
    counting = Counting()
    reader = CachedReader(counting)
    first = reader.read("why?", ["one", "three", "one"])
    assert [reading.relevance for reading in first] == [0.03, 0.05, 0.03]
    assert reader.read("why?", ["three", "seven or so"])[0] == first[1]
    assert counting.texts == ["one", "three", "seven or so"]
    reader.read("how?", ["one"])
    assert counting.texts[-1] == "one"


def test_cached_reader_is_bounded_and_complete() -> None:
    counting = Counting()
    reader = CachedReader(counting, size=2)
    texts = ["a", "bb", "ccc", "dddd"]
    assert [r.relevance for r in reader.read("?", texts)] == [0.01, 0.02, 0.03, 0.04]
    reader.read("?", ["ccc", "dddd"])
    assert counting.texts == texts
    reader.read("?", ["a"])
    assert counting.texts == [*texts, "a"]


def test_answering_combines_relevance_and_best_sentence() -> None:
    spans = (ScoredSpan(0, 5, 0.16), ScoredSpan(6, 9, 0.25))
    assert answering(Reading(1.0, 0, 0, 1, (), spans)) == pytest.approx(0.5)
    assert answering(Reading(0.25, 0, 0, 1, (), spans)) == pytest.approx(0.25)
    assert answering(Reading(0.9, 0, 0, 1)) == 0.0


def part(begin: int, end: int, *, title: str = HEADING, text: str = ABSTRACT) -> Evidence:
    return Evidence(Passage(1, "abstract", begin, end, text[begin:end]), title=title)


def joined(*items: Evidence) -> tuple[str, list[str]]:
    """Return the joined text, and the part of it at the offset of each item."""
    text, begins = join_text(items)
    held = [
        text[begin : begin + len(item.passage.text)] if begin >= 0 else ""
        for item, begin in zip(items, begins, strict=True)
    ]
    return text, held


def test_join_text_removes_overlap(subtests: pytest.Subtests) -> None:
    for name, items in {
        "overlapping": [part(0, 40), part(26, 60), part(50, len(ABSTRACT))],
        "in another order": [part(50, len(ABSTRACT)), part(26, 60), part(0, 40)],
        "one within another": [part(0, 60), part(26, 40), part(50, len(ABSTRACT))],
        "the same twice": [part(0, len(ABSTRACT)), part(0, len(ABSTRACT))],
        "next to each other": [part(0, 25), part(26, len(ABSTRACT))],
        "with its title": [part(0, len(ABSTRACT)), Evidence(Passage(1, "title", 0, 20, HEADING))],
    }.items():
        with subtests.test(name):
            text, held = joined(*[replace_title(item) for item in items])
            assert text == f"{HEADING} {ABSTRACT}"
            assert held == [item.passage.text for item in items]


def replace_title(item: Evidence) -> Evidence:
    return Evidence(item.passage, title=HEADING)


def test_join_text_begins_with_the_title_ended_by_a_stop() -> None:
    for title, read in [
        ("", ""),
        (NO_TITLE, ""),
        ("Metformin in adults", "Metformin in adults. "),
        ("Does metformin help?", "Does metformin help? "),
        ("[Metformin in adults].", "[Metformin in adults]. "),
        ("Metformin (a biguanide.)", "Metformin (a biguanide.) "),
    ]:
        text, held = joined(part(0, 25, title=title))
        assert (text, held) == (f"{read}{ABSTRACT[:25]}", [ABSTRACT[:25]])
        assert sentence_spans(text)[0] == (0, len(read.strip() or text))
    for title in ("", HEADING):
        item = Evidence(Passage(1, "title", 0, len(HEADING), HEADING), title=title)
        assert joined(item)[0] == HEADING


def test_join_text_separates_passages_that_do_not_touch() -> None:
    text, held = joined(part(0, 25, title=""), part(58, len(ABSTRACT), title=""))
    assert text == f"{ABSTRACT[:25]} {ABSTRACT[58:]}"
    assert held == [ABSTRACT[:25], ABSTRACT[58:]]
    # These have unrelated offsets.
    texts = ["Metformin helps.", "It is a biguanide that adults take.", "It is old."]
    items = [Evidence(Passage(1, "abstract", 0, len(text), text)) for text in texts]
    text, held = joined(*items)
    assert (held, len(text)) == (texts, sum(map(len, texts)) + 2)


def test_read_evidence_groups_passages_by_citation() -> None:
    items = [*evidence("One is long.", "Two."), Evidence(Passage(1, "abstract", 13, 18, "More."))]
    found = read_evidence("why?", items, Counting())
    assert [(c.pmid, c.rank, c.text) for c in found] == [
        (1, 0, "One is long. More."),
        (2, 1, "Two."),
    ]
    assert found[0].items == (items[0], items[2])
    assert found[0].reading.relevance == len(found[0].text) / 100


def test_read_evidence_is_limited_to_the_first_citations() -> None:
    items = evidence(*(f"Text {n}." for n in range(MAX_READ + 5)))
    found = read_evidence("why?", items, Counting())
    assert [c.pmid for c in found] == list(range(1, MAX_READ + 1))
    assert read_evidence("why?", [], Counting()) == []


def test_item_at_returns_the_passage_of_an_offset() -> None:
    items = (part(0, 25), part(26, 57))
    text, begins = join_text(items)
    found = ReadCitation(1, 0, items, begins, text, Reading(0.9, 0, 0, 1))
    assert found.item_at(text.index("AMPK")) is items[1]
    assert found.item_at(text.index("glucose")) is items[0]
    # The title belongs to no passage here.
    assert found.item_at(0) is items[0]


def test_weight_and_clearest_sentence_of_a_side() -> None:
    spans = (ScoredSpan(0, 5, 0.9, -2.0), ScoredSpan(6, 9, 0.1, 3.0))
    found = citation("It is not so.", relevance=0.5, yes=0.6, no=0.2, sentences=spans)
    assert (found.weight("yes"), found.weight("no")) == (0.3, 0.1)
    assert (found.clearest("yes"), found.clearest("no")) == (spans[1], spans[0])
    assert citation(sentences=()).clearest("yes") is None
