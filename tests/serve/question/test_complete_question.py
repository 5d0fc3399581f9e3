from __future__ import annotations

import asyncio
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster.answers import Question, Turn
from cluster.errors import LLMError
from cluster.records import Citation, Entity
from cluster.settings.presets import load_system
from cluster.settings.settings import load_settings
from serve.contracts.backend import IndexFacts
from serve.contracts.request import Request
from serve.contracts.stage_calls import StageMethod
from serve.contracts.stage_watch import StageWatch
from serve.contracts.watched_model import WatchedModel
from serve.llm.language_model import NO_MODEL, NoModelError
from serve.pipeline.read_request import read_request
from serve.question.complete_question import (
    MAX_BEFORE,
    MAX_CHARACTERS,
    complete_question,
    read_whole_question,
)
from serve.question.guess_type import typed
from serve.question.understand_question import ENTITIES
from tests.serve.scripted_model import Reply, Script
from tests.serve.small_graph import NamedThings
from tests.small_index import make_index

NAMES = ("metformin", "AMPK", "aspirin", "cancer", "asthma", "semaglutide", "TP53", "pregnancy")
ABSENT = NoModelError(NO_MODEL)


class Said:
    """Stages with a language model that replies `reply`; by default no model is available."""

    def __init__(self, reply: Reply = ABSENT, *, completes: bool = True) -> None:
        self.script = Script(reply, repeats=True)
        self.watch = StageWatch(math.inf)
        self.model = WatchedModel(self.script, self.watch)
        self.backend = SimpleNamespace(facts=IndexFacts(1, 1.2, 0.75, completes=completes))

    def chat_model(self, *_: object) -> Script:
        return self.script

    async def call(self, method: StageMethod[..., Any], text: str) -> list[Entity]:
        assert method == ENTITIES
        return NamedThings(NAMES).entities(text)


def completed(body: str, *before: str, said: Any = None, answer: str = "") -> tuple[str, str]:
    turns = [Turn(question, answer) for question in before]
    return asyncio.run(complete_question(body, turns, said or Said()))


WHOLE = "Does metformin activate AMPK?"
RESTING = [
    "and in pregnancy?",
    "side effects of semaglutide",
    "Why?",
    "Is it safe in pregnancy?",
    "Which other drugs treat asthma?",
    "What is the life expectancy?",
    "Is there a cure?",
]
ALONE = [
    "Is aspirin safe in pregnancy?",
    "What is the function of TP53?",
    "Which drugs treat asthma?",
    "List drugs against cancer.",
    "Which drugs that inhibit PCSK9 are given for the same reason as aspirin?",
    # An unknown word that is written like a name.
    "Which gene regulates ZEL1?",
]


def test_self_contained_or_first_question_is_unchanged() -> None:
    said = Said("Something else?")
    found = {body: completed(body, WHOLE, said=said) for body in ALONE}
    assert found == {body: (body, "") for body in ALONE}
    assert said.script.calls == []
    assert completed("and in children?") == ("and in children?", "")


def test_follow_up_question_is_joined_to_the_last_self_contained_one() -> None:
    said = Said()
    found = {body: completed(body, WHOLE, said=said) for body in RESTING}
    assert found == {body: (f"{WHOLE} {body}", "rules") for body in RESTING}
    # A missing model does not count as a loss.
    assert (said.watch.degraded, said.watch.model_calls) == ([], 0)
    before = [ALONE[0], WHOLE, "And in pregnancy?", "Why?"]
    assert completed("How does it work?", *before)[0] == f"{WHOLE} How does it work?"
    assert completed("Why?", "In mice?", "And in rats?")[0] == "In mice? Why?"


def test_model_completes_the_question_from_quoted_turns() -> None:
    said = Said("Is metformin safe for children?\n")
    asked = completed("and in children?", "Is metformin </x> safe?", said=said, answer="Yes.")
    assert asked == ("Is metformin safe for children?", "model")
    assert "Assistant: Yes." in said.script.users()[-1]
    assert "</x>" not in said.script.users()[-1]


def test_model_too_small_to_write_answers_completes_no_question() -> None:
    said = Said("Metformin is safe for children.", completes=False)
    whole = f"{WHOLE} and in children?"
    assert completed("and in children?", WHOLE, said=said) == (whole, "rules")
    assert said.script.calls == []
    assert said.watch.degraded == []


def test_settings_decide_whether_the_model_completes_questions(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, [Citation(pmid=1, title="Metformin activates AMPK.")])
    for overrides, completes in (([], False), (["llm.ideal_from=model"], True)):
        facts = IndexFacts.of(manifest, load_settings(overrides=overrides))
        assert facts.completes is completes


@pytest.mark.parametrize("reply", [LLMError("gone"), "", "Buy cheap watches from this shop now"])
def test_failed_or_unusable_model_reply_is_noted_and_replaced_by_rules(
    reply: str | Exception,
) -> None:
    said, joined = Said(reply), f"{WHOLE} and in children?"
    assert completed("and in children?", WHOLE, said=said) == (joined, "rules")
    assert said.watch.degraded == ["rewrite: failed, follow-up question completed by rules"]


def test_joined_question_is_limited_and_ends_with_the_current_question() -> None:
    for length in (10, MAX_CHARACTERS - 20, MAX_CHARACTERS, 2 * MAX_CHARACTERS):
        whole, _ = completed("Is it safe?", f"Does metformin help {'x' * length}?")
        assert whole.endswith("Is it safe?")
        assert whole.startswith("Does metformin")
        assert len(whole) <= MAX_BEFORE + len(" Is it safe?")
    asked = f"Is it {'so ' * MAX_CHARACTERS}?"
    assert len(completed(asked, WHOLE)[0]) == MAX_CHARACTERS
    # A question completed by a model has a limit as well.
    assert read_whole_question('"metformin?"', {"metformin"}) == "metformin?"
    with pytest.raises(LLMError):
        read_whole_question("metformin " * 100, {"metformin"})


def test_joined_question_has_the_type_of_the_current_question() -> None:
    """The type is not that of the earlier question, which now comes first."""
    for body, given, kind in [
        ("What are its side effects?", "unknown", "summary"),
        ("Which gene is it?", "unknown", "factoid"),
        ("Which gene is it?", "list", "list"),
        # Text that does not begin like a question has the type of the previous question.
        ("and in pregnancy?", "unknown", "yesno"),
    ]:
        question = Question("q", body, given)  # type: ignore[arg-type]
        request = Request(question, load_system("citeray"), turns=(Turn(WHOLE, ""),))
        stages: Any = Said()
        read = asyncio.run(read_request(request, stages))
        assert read.request.question.body == f"{WHOLE} {body}"
        assert typed(read.request.question).type == kind, body
