"""The answer writer with the prompts of the presets, against an OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.answers import Question, QuestionType
from cluster.records import Entity
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.presets import load_system, system_names
from serve.answer.ask_model import WriterLimits
from serve.answer.examples.example_store import store_examples
from serve.answer.names.cluster_names import Recognise
from serve.answer.prepare_briefing import NO_EXAMPLES, UNCOMPARED, UNREAD
from serve.answer.write_answer import BY_WORDING, AnswerWriter, WrittenAnswer
from serve.support.attribute_sentences import Encode
from tests.serve.answering import CALIBRATION, WordReader, encode, evidence
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint

TEXT = "Metformin lowers blood glucose by 30% in adults."
DENIAL = "Metformin did not lower blood glucose in adults."
BODY = "Does metformin lower blood glucose?"

SINAI = AnswerSettings(
    prompts="sinai", reasoned=True, examples=3, exact_from="model", temperature=0.11,
    repetition_penalty=1.15, ideal_tokens=1024, exact_tokens=1024,
)  # fmt: skip
AQAMS2 = AnswerSettings(prompts="aqams2", examples=2, supported=True)
UDINE = AnswerSettings(prompts="udine", weigh=10, max_words=250, exact_from="evidence")


@pytest.fixture(scope="module")
def serving() -> Iterator[ChatEndpoint]:
    with chat_endpoint(TEXT) as serving:
        yield serving


@pytest.fixture
def endpoint(serving: ChatEndpoint) -> ChatEndpoint:
    serving.asked.clear()
    return serving


def recognise(text: str) -> list[Entity]:
    begin = text.find("Metformin")
    return [Entity("Metformin", begin, begin + 9, "D1", "drug")] if begin >= 0 else []


def write(
    endpoint: ChatEndpoint,
    style: AnswerSettings,
    *texts: str,
    kind: QuestionType = "yesno",
    body: str = BODY,
    examples: Path | None = None,
    recognise: Recognise = recognise,
    encode: Encode = encode,
) -> WrittenAnswer:
    limits = WriterLimits(deadline_s=600)
    writer = AnswerWriter(
        endpoint.model(), encode, None, recognise, WordReader(), CALIBRATION, limits, examples
    )
    return asyncio.run(writer.write(Question("q", body, kind), evidence(*texts or (TEXT,)), style))


def reasoned(answer: Any, reasoning: str = "The passage says so.") -> str:
    return json.dumps({"chain_of_thought": reasoning, "answer": answer})


def said(endpoint: ChatEndpoint, call: int) -> str:
    return "\n".join(m["content"] for m in endpoint.asked[call]["messages"])


def memory(folder: Path) -> Path:
    row = {
        "id": "old",
        "type": "yesno",
        "body": "Does insulin lower blood glucose?",
        "exact_answer": "yes",
        "ideal_answer": ["Insulin lowers it."],
    }
    (folder / "gold.json").write_text(json.dumps({"questions": [row]}))
    store_examples(folder / "memory", [folder / "gold.json"])
    return folder / "memory"


def test_reasoning_is_passed_to_the_next_stage(
    endpoint: ChatEndpoint,
) -> None:
    endpoint.replies[:] = [
        reasoned(TEXT, "Adults were treated. So metformin lowers it."),
        reasoned("yes"),
    ]
    answer = write(endpoint, SINAI)
    assert [s.text for s in answer.ideal] == [TEXT]
    assert (answer.exact, answer.origin) == ("yes", "generated")
    assert "Adults were treated. So metformin lowers it." in said(endpoint, 1)
    assert f"so far: {TEXT}" not in said(endpoint, 1)
    for body in endpoint.asked:
        schema = body["response_format"]["json_schema"]["schema"]
        assert schema["required"] == ["chain_of_thought", "answer"]
        sampling = (body["temperature"], body["repetition_penalty"], body["max_tokens"])
        assert sampling == (0.11, 1.15, 1024)


def test_exact_answer_agrees_with_the_ideal_answer(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [f"Yes, {TEXT[0].lower()}{TEXT[1:]}", "no"]
    answer = write(endpoint, AnswerSettings(prompts="aqams"))
    assert answer.exact == "yes"
    assert endpoint.asked[1]["structured_outputs"] == {"choice": ["yes", "no"]}


def test_names_are_copied_from_the_evidence(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [reasoned(TEXT), reasoned(["Aspirin", "metformin", "Metformin."])]
    found = write(endpoint, SINAI, kind="list", body="Which drugs lower blood glucose?")
    assert found.exact == [["metformin"]]


def test_examples_fill_the_prompts_variable(endpoint: ChatEndpoint, tmp_path: Path) -> None:
    endpoint.replies[:] = [reasoned(TEXT), reasoned("yes")]
    write(endpoint, SINAI, examples=memory(tmp_path))
    assert len(endpoint.asked[0]["messages"]) == 2
    assert 'blood glucose? -> answer: "Insulin lowers it."' in said(endpoint, 0)
    assert 'Insulin lowers it. - answer: "yes"' in said(endpoint, 1)


def test_examples_are_conversation_turns_by_default(endpoint: ChatEndpoint, tmp_path: Path) -> None:
    endpoint.replies[:] = [TEXT, "yes", f"{TEXT[:-1]} [1]."]
    write(endpoint, AQAMS2, examples=memory(tmp_path))
    roles = [[m["role"] for m in body["messages"]] for body in endpoint.asked]
    assert roles == [["system", "user", "assistant", "user"]] * 2 + [["system", "user"]]
    assert endpoint.asked[1]["messages"][2]["content"] == "yes"


def test_missing_or_unreadable_examples_are_reported(
    endpoint: ChatEndpoint, tmp_path: Path
) -> None:
    def lost(texts: Sequence[str]) -> np.ndarray:
        raise TimeoutError

    endpoint.replies[:] = [reasoned(TEXT)]
    assert write(endpoint, SINAI, kind="summary", examples=tmp_path).degraded == (NO_EXAMPLES,)
    folder = memory(tmp_path)
    written = write(endpoint, SINAI, kind="summary", examples=folder, encode=lost)
    assert written.degraded == (UNCOMPARED, BY_WORDING)
    (newest,) = folder.iterdir()
    newest.write_text("{}")
    assert write(endpoint, SINAI, kind="summary", examples=folder).degraded == (UNREAD,)


def test_entities_are_listed_by_concept(endpoint: ChatEndpoint) -> None:
    def recognise(text: str) -> list[Entity]:
        linked = (("heart attack", "D009203"), ("myocardial infarction", "D009203"), ("pain", ""))
        return [
            Entity(name, text.find(name), text.find(name) + len(name), concept, "disease")
            for name, concept in linked
            if name in text
        ]

    endpoint.replies[:] = [TEXT]
    texts = ("A heart attack brings pain.", "After myocardial infarction there is pain.")
    write(endpoint, AQAMS2, *texts, kind="summary", recognise=recognise)
    named = "Concepts named in them: heart attack = myocardial infarction (D009203); pain\n"
    assert named in said(endpoint, 0)


def test_passages_are_shown_with_pmid_and_relevance(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [TEXT]
    write(endpoint, load_system("aqams").answer, TEXT, "Cats sleep.", kind="summary")
    shown = re.findall(r"\[(\d)\] \(PMID (\d+), relevance ([01]\.\d{3})\) (\w+)", said(endpoint, 0))
    assert [(number, pmid, word) for number, pmid, _, word in shown] == [
        ("1", "1", "Metformin"),
        ("2", "2", "Cats"),
    ]
    assert float(shown[0][2]) > float(shown[1][2])


def test_supported_answer_cites_the_numbered_passages(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [TEXT, "It lowers blood glucose in adults [9]. " + TEXT[:-1] + " [2]."]
    answer = write(endpoint, AQAMS2, "Cats sleep all day long.", TEXT, kind="summary")
    assert [s.pmids for s in answer.supported] == [(2,), (2,)]


def test_unsupported_answer_is_dropped_and_reported(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [TEXT, "Aspirin prevents colorectal cancer in mice [1]."]
    answer = write(endpoint, AQAMS2, kind="summary")
    assert answer.supported == ()
    assert "llm: nothing usable, no supported answer" in answer.degraded


def test_contradicting_evidence_is_shown_and_listed(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = [f"{TEXT[:-1]} [1]."]
    answer = write(endpoint, UDINE, TEXT, DENIAL, kind="summary")
    shown = said(endpoint, 0)
    assert f"<supporting>\n[1] {TEXT}" in shown
    assert f"<contradicting>\n[2] {DENIAL}" in shown
    assert (answer.ideal[0].pmids, answer.ideal[0].contradicted) == ((1,), (2,))


def test_models_citations_are_kept_or_corrected(
    endpoint: ChatEndpoint,
) -> None:
    endpoint.replies[:] = [f"{TEXT[:-1]} [2, 77]."]
    for second, kept in [(TEXT, (2,)), ("Cats sleep all day long.", (1,))]:
        answer = write(endpoint, UDINE, TEXT, second, kind="summary")
        assert [(s.text, s.pmids) for s in answer.ideal] == [(TEXT, kept)]


def test_long_answer_is_cut_at_a_sentence(endpoint: ChatEndpoint) -> None:
    endpoint.replies[:] = ["Metformin lowers blood glucose. Adults take metformin."]
    style = AnswerSettings(max_words=5)
    answer = write(endpoint, style, f"{TEXT} Adults take metformin.", kind="summary")
    assert [s.text for s in answer.ideal] == ["Metformin lowers blood glucose."]
    assert "repetition_penalty" not in endpoint.asked[0]


def test_presets_that_write_by_model_also_decide_by_model(subtests: pytest.Subtests) -> None:
    # Otherwise the exact answer could contradict the ideal answer.
    for name in [n for n in system_names() if load_system(n).answer.ideal_from]:
        with subtests.test(name=name):
            limits = WriterLimits(ideal_from="evidence", exact_from="evidence")
            chosen = limits.for_preset(load_system(name).answer)
            assert (chosen.ideal_from, chosen.exact_from) == ("model", "model")
    limits = WriterLimits(ideal_from="evidence", exact_from="evidence")
    apart = AnswerSettings(ideal_from="model", exact_from="evidence")
    assert limits.for_preset(apart).exact_from == "evidence"
