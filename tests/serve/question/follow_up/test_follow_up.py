"""Follow-up questions are completed, and questions that stand alone are never touched."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import pytest

from cluster.answers import Turn
from cluster.errors import LLMError
from cluster.records import Entity
from serve.graph.watch_stages import StageWatch
from serve.llm.language_model import NO_MODEL
from serve.llm.watched_model import ModelLimits, WatchedModel
from serve.question.follow_up.ask_model import read_whole_question
from serve.question.follow_up.complete_question import complete_question
from serve.question.follow_up.rest_on_before import rests_on_before

NAMES = (
    "metformin", "AMPK", "aspirin", "cancer", "diabetes mellitus", "obesity", "cystic fibrosis",
    "chronic myeloid leukemia", "Noonan syndrome", "Costello syndrome", "asthma", "warfarin",
    "dabigatran", "grapefruit", "statins", "myopathy", "diabetes", "vitamin D", "fractures", "TP53",
    "breast cancer", "Parkinson's disease", "ibuprofen", "alcohol", "semaglutide", "body weight",
    "renal impairment", "huntingtin", "neurodegeneration", "interleukin-6", "rheumatoid arthritis",
    "ovarian cancer", "colorectal cancer", "malaria", "psoriasis", "multiple sclerosis",
    "tuberculosis", "migraine", "hyaluronan", "stroke", "KRAS", "children", "side effects",
    "pregnancy", "prevalence",
)  # fmt: skip


def entities(text: str) -> list[Entity]:
    """Each name at its first place, the longer ones first."""
    found: list[Entity] = []
    for name in sorted(NAMES, key=len, reverse=True):
        at = text.find(name)
        if at >= 0 and not any(e.begin < at + len(name) and at < e.end for e in found):
            found.append(Entity(name, at, at + len(name), "", ""))
    return sorted(found, key=lambda e: e.begin)


class Said:
    """A language model; `reply` is what it says, or raises. By default there is none."""

    def __init__(self, reply: str | Exception | None = None) -> None:
        self.watch = StageWatch(math.inf)
        self._reply = reply if reply is not None else LLMError(NO_MODEL)
        self.heard: list[Any] = []

    def model(self, *_: object) -> Any:
        return self

    async def chat(self, messages: Sequence[Any], **_: Any) -> str:
        self.heard = list(messages)
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply


def completed(
    body: str, *before: str, stages: Said | None = None, answer: str = ""
) -> tuple[str, str]:
    asked: Any = _Stages(stages or Said())
    turns = [Turn(question, answer) for question in before]
    return asyncio.run(complete_question(body, turns, asked))


class _Stages:
    """What completing a question needs of WatchedStages."""

    def __init__(self, said: Said) -> None:
        self.stages, self.watch = said, said.watch
        self.model = WatchedModel(said, said.watch, ModelLimits())

    async def entities(self, text: str) -> list[Entity]:
        return entities(text)


CML = "Is imatinib effective in chronic myeloid leukemia?"
CF = "What causes cystic fibrosis?"
PAIRS = [
    (
        "Does metformin activate AMPK?",
        "Is it safe in pregnancy?",
        "Is metformin safe in pregnancy?",
    ),
    (
        "Does metformin activate AMPK?",
        "and in children?",
        "Does metformin activate AMPK in children?",
    ),
    (
        "Does metformin activate AMPK?",
        "What about side effects?",
        "Describe the side effects of metformin.",
    ),
    (
        "Does metformin reduce cancer risk?",
        "what about aspirin?",
        "Does aspirin reduce cancer risk?",
    ),
    ("Does metformin treat diabetes mellitus?", "And obesity?", "Does metformin treat obesity?"),
    (CML, "What are its side effects?", "What are the side effects of imatinib?"),
    (CML, "How does it work?", "How does imatinib work?"),
    (CML, "Why?", "Why is imatinib effective in chronic myeloid leukemia?"),
    (CML, "And dasatinib?", "Is dasatinib effective in chronic myeloid leukemia?"),
    (CF, "How is it inherited?", "How is cystic fibrosis inherited?"),
    (CF, "Is there a cure?", "Is there a cure for cystic fibrosis?"),
    (CF, "Which drugs treat the disease?", "Which drugs treat cystic fibrosis?"),
    (CF, "What is the life expectancy?", "What is the life expectancy of cystic fibrosis?"),
    (CF, "Which genes are involved?", "Which genes are involved in cystic fibrosis?"),
    (
        "Which gene is mutated in Noonan syndrome?",
        "And in Costello syndrome?",
        "Which gene is mutated in Costello syndrome?",
    ),
    (
        "Which gene is mutated in Noonan syndrome?",
        "What are the symptoms?",
        "What are the symptoms of Noonan syndrome?",
    ),
    (
        "What is the prevalence of asthma in adults?",
        "in children?",
        "What is the prevalence of asthma in children?",
    ),
    (
        "What is the prevalence of asthma in adults?",
        "How about pregnant women?",
        "What is the prevalence of asthma in pregnant women?",
    ),
    (
        "Is warfarin safer than dabigatran?",
        "Does it interact with grapefruit?",
        "Does warfarin interact with grapefruit?",
    ),
    (
        "Can statins cause myopathy?",
        "Do they also cause diabetes?",
        "Do statins also cause diabetes?",
    ),
    (
        "Can statins cause myopathy?",
        "What is the mechanism?",
        "What is the mechanism of statins and myopathy?",
    ),
    ("Can statins cause myopathy?", "Any evidence in mice?", "Can statins cause myopathy in mice?"),
    (
        "Does vitamin D prevent fractures?",
        "Is this true in older people?",
        "Does vitamin D prevent fractures in older people?",
    ),
    (
        "Does vitamin D prevent fractures?",
        "What dose is needed?",
        "What dose of vitamin D is needed?",
    ),
    (
        "What is the function of TP53?",
        "Which drugs target this protein?",
        "Which drugs target TP53?",
    ),
    (
        "What are the symptoms of Parkinson's disease?",
        "What about treatment?",
        "Describe the treatment for Parkinson's disease.",
    ),
    (
        "Is ibuprofen safe in pregnancy?",
        "Is it safe to take with alcohol?",
        "Is ibuprofen safe to take with alcohol?",
    ),
    (
        "Does semaglutide reduce body weight?",
        "side effects?",
        "Describe the side effects of semaglutide.",
    ),
    (
        "Does semaglutide reduce body weight?",
        "What about the dose in renal impairment?",
        "Describe the dose of semaglutide in renal impairment.",
    ),
    (
        "Which proteins interact with huntingtin?",
        "How do they cause neurodegeneration?",
        "How do the proteins that interact with huntingtin cause neurodegeneration?",
    ),
    (
        "What is the role of interleukin-6 in rheumatoid arthritis?",
        "Which antibodies block it?",
        "Which antibodies block interleukin-6?",
    ),
    (
        "Is BRCA1 involved in ovarian cancer?",
        "What about BRCA2?",
        "Is BRCA2 involved in ovarian cancer?",
    ),
    (
        "What is the treatment of malaria?",
        "What about during pregnancy?",
        "What is the treatment of malaria during pregnancy?",
    ),
    (
        "Is levothyroxine safe during pregnancy?",
        "And during breastfeeding?",
        "Is levothyroxine safe during breastfeeding?",
    ),
    (
        "Which drugs are used in tuberculosis?",
        "What are their side effects?",
        "What are the side effects of the drugs that are used in tuberculosis?",
    ),
]


def test_rules_complete_a_follow_up_question(subtests: pytest.Subtests) -> None:
    for before, body, whole in PAIRS:
        with subtests.test(before=before, body=body):
            stages = Said()
            assert completed(body, before, stages=stages) == (whole, "rules")
            # A model that is not there is not missed.
            assert (stages.watch.degraded, stages.watch.model_calls) == ([], 0)


ALONE = [
    "Is aspirin safe in pregnancy?",
    "What is metformin and how does it work?",
    "Does the BRCA1 protein change its conformation?",
    "Is it true that aspirin prevents cancer?",
    "Which histone marks are deposited by Set1?",
    "What about the risk of stroke with apixaban?",
    "Is it safe to use ibuprofen in pregnancy?",
    "And what is the function of TP53?",
    "Which enzymes degrade hyaluronan?",
    "metformin",
    "side effects of semaglutide",
    "Does p53 regulate its own expression?",
    "What is the most common cancer in children?",
    "When did eptinezumab get its first approval?",
    "How does the drug imatinib work?",
    "List types of mutations.",
    "What are antibodies?",
]


def test_a_question_that_stands_alone_is_not_touched(subtests: pytest.Subtests) -> None:
    for body in ALONE:
        with subtests.test(body=body):
            said = Said("Does metformin activate AMPK?")
            assert completed(body, "Does metformin activate AMPK?", stages=said) == (body, "")
            assert said.heard == []
            assert rests_on_before(body, entities(body)) is None


def test_without_turns_nothing_is_completed() -> None:
    assert completed("and in children?") == ("and in children?", "")


def test_a_chain_of_follow_up_questions_is_completed_one_after_the_other() -> None:
    whole, _ = completed("Why?", "Does metformin activate AMPK?", "and in children?")
    assert whole == "Why does metformin activate AMPK in children?"


def test_the_model_completes_where_there_is_one_and_reads_quoted_turns() -> None:
    said = Said("Is metformin safe for children?\n")
    asked = completed("and in children?", "Is metformin </x> safe?", stages=said, answer="Yes.")
    assert asked == ("Is metformin safe for children?", "model")
    assert "Assistant: Yes." in said.heard[-1]["content"]
    assert "</x>" not in said.heard[-1]["content"]


@pytest.mark.parametrize("reply", [LLMError("gone"), "", "Buy cheap watches from this shop now"])
def test_rules_take_over_from_a_model_that_is_lost_or_strays(reply: str | Exception) -> None:
    said = Said(reply)
    whole, by = completed("and in children?", "Does metformin activate AMPK?", stages=said)
    assert (whole, by) == ("Does metformin activate AMPK in children?", "rules")
    assert said.watch.degraded == ["rewrite: failed, follow-up question completed by rules"]


def test_a_completed_question_is_bounded() -> None:
    known = {"metformin"}
    assert read_whole_question('"metformin?"', known) == "metformin?"
    with pytest.raises(LLMError):
        read_whole_question("metformin " * 100, known)
