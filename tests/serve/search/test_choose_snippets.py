from __future__ import annotations

from cluster.answers import Evidence
from serve.search.choose_snippets import choose_snippets, whole_passages
from tests.serve.answering import encode, evidence, passage

ABSTRACT = "Cats sleep. Metformin lowers glucose. Dogs bark. Birds fly."
BODY = "Does metformin lower glucose?"


def test_snippet_offsets_refer_to_the_section() -> None:
    item = Evidence(passage(ABSTRACT, begin=100))
    (found,) = choose_snippets(BODY, [item], encode, window=1)
    # "Metformin lowers glucose." is at 12 to 37 of the passage, which begins at 100.
    assert (found.begin, found.end, found.text) == (112, 137, "Metformin lowers glucose.")


def test_snippet_contains_consecutive_sentences() -> None:
    body = "Cats sleep and does metformin lower glucose?"
    (found,) = choose_snippets(body, [Evidence(passage(ABSTRACT))], encode, window=2)
    assert found.text == "Cats sleep. Metformin lowers glucose."


def test_snippets_follow_the_evidence_up_to_the_limit() -> None:
    found = choose_snippets(BODY, evidence("Cats sleep.", "Metformin lowers glucose."), encode)
    assert [p.pmid for p in found] == [1, 2]
    assert len(choose_snippets(BODY, evidence(*"abcd"), encode, limit=3)) == 3
    assert choose_snippets(BODY, [], encode) == []


def test_overlapping_snippets_are_left_out() -> None:
    one, two = passage("Metformin lowers glucose.", begin=0), passage("lowers glucose.", begin=10)
    given = [Evidence(one), Evidence(two)]
    assert len(choose_snippets(BODY, given, encode)) == 1
    assert whole_passages(given) == [one]
    assert len(whole_passages(evidence(*"abcd"), limit=3)) == 3
    apart = [Evidence(passage("Metformin works.", title=title)) for title in (False, True)]
    assert len(choose_snippets(BODY, apart, encode)) == 2
