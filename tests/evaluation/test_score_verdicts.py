from __future__ import annotations

import pytest

from evaluation.bioasq.read_bioasq import Entry
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_verdicts import reads_as, score_verdicts


def entry(
    id_: str,
    kind: str,
    *names: str,
    ideal: str = "",
    body: str = "Is it so?",
    verdict: str = "",
) -> Entry:
    exact = tuple((name,) for name in names) or None
    texts = (ideal,) if ideal else ()
    return Entry(id_, kind, (), (), exact, texts, body, verdict=verdict)


def measured(gold: list[Entry], run: list[Entry]) -> dict[str, float]:
    wanted, said = ({e.id: e for e in entries} for entries in (gold, run))
    found = score_verdicts(wanted, said, score_run(wanted, said)).values()
    return {name: value for name, value in found.items() if value == value}


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
