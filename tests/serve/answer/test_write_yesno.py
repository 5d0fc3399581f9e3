from __future__ import annotations

import json

import pytest

from cluster.settings.answer_settings import AnswerSettings
from serve.answer.write_answer import WrittenAnswer
from tests.serve.answer.writing import BODY, TEXT, kept, write
from tests.serve.answering import evidence
from tests.serve.scripted_model import Script


def decided(yes: float) -> str:
    return json.dumps({"yes": yes, "no": 1 - yes})


YES = "Yes, metformin lowers blood glucose by 30% in adults."
NO = "No, aspirin does not lower blood glucose in adults."
BOTH = (TEXT, "Aspirin does not lower blood glucose in adults.")


@pytest.mark.parametrize(("share", "text", "exact"), [(0.95, YES, "yes"), (0.1, NO, "no")])
def test_yesno_is_decided_before_it_is_explained(share: float, text: str, exact: str) -> None:
    """A 1.5B model that writes first begins with "Yes, ..." although the evidence says no."""
    model = Script(decided(share), text)
    answer = write(model, "yesno", evidence(*BOTH), "Is a related finding enough?")
    assert (answer.exact, answer.degraded) == (exact, ())
    assert [s.text for s in answer.ideal] == [text]
    assert model.calls[0]["weigh"] == ("yes", "no")
    prompt = model.calls[1]["messages"][1]["content"]
    assert f"the answer is: {exact.capitalize()}." in prompt


def test_yes_needs_a_margin_over_no() -> None:
    """Small models prefer yes."""
    shares = {0.8: "no", 0.95: "yes"}
    assert {s: write(Script(decided(s), TEXT), "yesno").exact for s in shares} == shares


@pytest.mark.parametrize(("share", "said"), [(0.95, NO), (0.1, YES)])
def test_sentence_that_opens_with_the_other_verdict_is_dropped(share: float, said: str) -> None:
    rest = "Metformin and aspirin were given to adults."
    items = evidence(*BOTH, rest)
    answer = write(Script(decided(share), f"{said} {rest}"), "yesno", items, "Is glucose lower?")
    first, *quoted = [s.text for s in answer.ideal]
    assert first == rest
    assert [text.startswith("In contrast: ") for text in quoted] in ([], [True])


@pytest.mark.parametrize("reply", ["yes", "{}", '{"yes": "much", "no": 0}'])
def test_decision_without_probabilities_falls_back_to_the_evidence(reply: str) -> None:
    answer = write(Script(reply), "yesno", body="Does metformin lower blood glucose?")
    assert answer.exact == "yes"
    assert answer.degraded[0] == "llm: failed, extractive answer"


def read_off(word: str, text: str = TEXT, *passages: str) -> WrittenAnswer:
    """Return an answer with a paper's prompts, which write before they decide."""
    found, style = evidence(*passages or (TEXT,)), AnswerSettings(prompts="biorag")
    return write(Script(text, word), "yesno", found, BODY, style=style)


@pytest.mark.parametrize(
    ("decision", "exact", "verdict", "degraded"),
    [
        ("yes", "yes", "answered", ()),
        ("no", "no", "mixed", ()),
        # The evidence decides if the model gives neither yes nor no.
        ("mixed", "yes", "mixed", ()),
        ("not stated", "yes", "not_enough_evidence", ()),
        ("perhaps", "yes", "answered", ("llm: nothing usable, extractive exact answer",)),
    ],
)
def test_decision_of_a_papers_preset_is_kept(
    decision: str, exact: str, verdict: str, degraded: tuple[str, ...]
) -> None:
    answer = read_off(decision)
    assert (answer.exact, answer.verdict, answer.degraded) == (exact, verdict, degraded)


@pytest.mark.parametrize(
    ("text", "said", "exact"), [(YES, "no", "yes"), (NO, "yes", "no"), (NO, "mixed", "no")]
)
def test_opening_verdict_overrides_the_exact_stage(text: str, said: str, exact: str) -> None:
    answer = read_off(said, text, *BOTH)
    assert (answer.exact, answer.ideal[0].text) == (exact, text)


def test_generated_yesno_quotes_the_opposition() -> None:
    answer = read_off("yes", YES, *BOTH)
    assert (answer.verdict, answer.exact) == ("mixed", "yes")
    assert kept(answer) == [(YES, (1,)), (f"In contrast: {BOTH[1]}", (2,))]


def test_reader_decides_if_the_model_only_writes() -> None:
    model = Script(f"{YES} {NO}")
    answer = write(model, "yesno", body=BODY, exact_from="evidence")
    assert "the answer is: Yes." in model.calls[0]["messages"][1]["content"]
    assert ([s.text for s in answer.ideal], answer.exact) == ([YES], "yes")
    assert (answer.origin, len(model.calls)) == ("generated", 1)
