from __future__ import annotations

import pytest

from evaluation.bioasq.read_bioasq import Entry
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_verdicts import most_confident, reads_as, score_verdicts


def entry(
    id_: str,
    kind: str,
    *names: str,
    ideal: str = "",
    body: str = "Is it so?",
    verdict: str = "",
    confidence: float | None = None,
) -> Entry:
    exact = tuple((name,) for name in names) or None
    texts = (ideal,) if ideal else ()
    return Entry(id_, kind, (), (), exact, texts, body, verdict=verdict, confidence=confidence)


def measured(gold: list[Entry], run: list[Entry]) -> dict[str, float]:
    wanted, said = ({e.id: e for e in entries} for entries in (gold, run))
    found = score_verdicts(wanted, said, score_run(wanted, said)).values()
    return {name: value for name, value in found.items() if value == value}


def yesno(confidences: list[float | None], right: list[bool]) -> dict[str, float]:
    gold = [entry(str(n), "yesno", "yes") for n in range(len(right))]
    run = [
        entry(str(n), "yesno", "yes" if is_right else "no", confidence=confidence)
        for n, (confidence, is_right) in enumerate(zip(confidences, right, strict=True))
    ]
    return measured(gold, run)


def test_verdict_shares_and_accuracy_among_answered() -> None:
    gold = [
        entry("1", "yesno", "yes"),
        entry("2", "yesno", "no"),
        entry("3", "summary"),
        entry("4", "factoid", "a"),
    ]
    run = [
        entry("1", "yesno", "yes", verdict="answered"),
        entry("2", "yesno", "yes", verdict="not_enough_evidence"),
        entry("3", "summary", verdict="mixed"),
        entry("4", "factoid", "b", "a", verdict="answered"),
    ]
    found = measured(gold, run)
    assert found["verdict yesno answered"] == found["verdict yesno not enough evidence"] == 0.5
    assert (found["verdict yesno mixed"], found["verdict summary mixed"]) == (0, 1)
    assert "verdict list answered" not in found
    assert found["answered yesno accuracy"] == 1
    assert found["answered factoid strict accuracy"] == 0
    assert found["answered factoid lenient accuracy"] == 1


def test_accuracy_of_the_most_confident_answers() -> None:
    found = yesno([0.9, 0.8, 0.3, 0.1], [True, True, True, False])
    assert found["coverage 75% yesno accuracy"] == 1
    assert found["coverage 90% yesno accuracy"] == 0.75
    without = yesno([None, None], [True, False])
    assert not [name for name in without if name.startswith(("verdict", "answered", "coverage"))]


def test_coverage_includes_ties_with_the_last_question() -> None:
    assert most_confident({"a": 0.9, "b": 0.5, "c": 0.5, "d": 0.1}, 50) == ["a", "b", "c"]
    assert most_confident({}, 50) == []


def test_first_sentence_is_read_as_yes_or_no(subtests: pytest.Subtests) -> None:
    for question, ideal, said in [
        ("Does iron help?", "Yes, iron helps. No harm was seen.", "yes"),
        ("Does iron help?", "No. Iron helps nobody.", "no"),
        ("Does iron help?", "Iron helps in anaemia. It does not help in gout.", "yes"),
        ("Does iron help?", "Iron does not help.", "no"),
        ("Is iron contraindicated?", "Iron is contraindicated in overload.", "yes"),
        ("Is iron safe?", "Iron is contraindicated in overload.", "no"),
        ("Iron is a metal, yes or no?", "Iron is a metal.", "yes"),
        ("Is iron safe?", "Northern diets hold iron.", "yes"),
    ]:
        with subtests.test(question=question, ideal=ideal):
            assert reads_as(question, ideal) == said


def test_agreement_of_exact_and_ideal_answers() -> None:
    gold = [entry("1", "yesno", "yes"), entry("2", "factoid", "a"), entry("3", "list", "a")]
    run = [
        entry("1", "yesno", "no", ideal="Yes, it does."),
        entry("2", "factoid", "htt", "bdnf", ideal="The gene HTT is mutated."),
        entry("3", "list", "aspirin", "iron", ideal="Aspirin may; ironing does not."),
    ]
    found = measured(gold, run)
    assert found["agreement yesno"] == 0
    assert found["agreement factoid"] == 1
    assert found["agreement list"] == 0.5


def test_non_numbers_are_counted_if_a_number_is_asked() -> None:
    body = "What is the recommended dose of imatinib?"
    gold = [entry("1", "list", "400 mg", body=body), entry("2", "list", "a", body="What is so?")]
    run = [entry("1", "list", "400 mg", "high", "twice daily", "oral"), entry("2", "list", "gene")]
    assert measured(gold, run)["wrong type list"] == 0.5
