from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cluster.answers import QuestionType
from cluster.records import Entity
from cluster.settings.answer_settings import AnswerSettings
from cluster.settings.presets import load_system, system_names
from serve.answer.ask_model import WriterLimits
from serve.answer.prepare_briefing import NO_EXAMPLES, UNCOMPARED, UNREAD
from serve.answer.write_answer import BY_WORDING, WrittenAnswer
from tests.serve.answer import writing
from tests.serve.answer.examples.test_few_shot import row, store
from tests.serve.answer.writing import BODY, TEXT
from tests.serve.answering import evidence, lost_encode
from tests.serve.scripted_model import Script

DENIAL = "Metformin did not lower blood glucose in adults."

SINAI = AnswerSettings(
    prompts="sinai", reasoned=True, examples=3, exact_from="model", temperature=0.11,
    repetition_penalty=1.15, ideal_tokens=1024, exact_tokens=1024,
)  # fmt: skip
AQAMS2 = AnswerSettings(prompts="aqams2", examples=2, supported=True)
UDINE = AnswerSettings(prompts="udine", weigh=10, max_words=250, exact_from="evidence")


def write(
    model: Script,
    style: AnswerSettings,
    *texts: str,
    kind: QuestionType = "yesno",
    body: str = BODY,
    **options: Any,
) -> WrittenAnswer:
    return writing.write(model, kind, evidence(*texts or (TEXT,)), body, style=style, **options)


def reasoned(answer: Any, reasoning: str = "The passage says so.") -> str:
    return json.dumps({"chain_of_thought": reasoning, "answer": answer})


def said(model: Script, call: int) -> str:
    return "\n".join(m["content"] for m in model.calls[call]["messages"])


def memory(folder: Path) -> Path:
    old = row("old", "Does insulin lower blood glucose?", ideal_answer=["Insulin lowers it."])
    return store(folder / "memory", "gold.json", old)


def test_reasoning_is_passed_to_the_next_stage() -> None:
    model = Script(reasoned(TEXT, "Adults were treated. So metformin lowers it."), reasoned("yes"))
    answer = write(model, SINAI)
    assert [s.text for s in answer.ideal] == [TEXT]
    assert (answer.exact, answer.origin) == ("yes", "generated")
    assert "Adults were treated. So metformin lowers it." in said(model, 1)
    assert f"so far: {TEXT}" not in said(model, 1)
    for call in model.calls:
        assert call["json_schema"]["required"] == ["chain_of_thought", "answer"]
        sampling = (call["temperature"], call["repetition_penalty"], call["max_tokens"])
        assert sampling == (0.11, 1.15, 1024)


def test_exact_answer_agrees_with_the_ideal_answer() -> None:
    model = Script(f"Yes, {TEXT[0].lower()}{TEXT[1:]}", "no")
    assert write(model, AnswerSettings(prompts="aqams")).exact == "yes"
    assert model.calls[1]["choices"] == ("yes", "no")


def test_names_are_copied_from_the_evidence() -> None:
    model = Script(reasoned(TEXT), reasoned(["Aspirin", "metformin", "Metformin."]))
    found = write(model, SINAI, kind="list", body="Which drugs lower blood glucose?")
    assert found.exact == [["metformin"]]


def test_examples_fill_the_prompts_variable(tmp_path: Path) -> None:
    model = Script(reasoned(TEXT), reasoned("yes"))
    write(model, SINAI, examples=memory(tmp_path))
    assert len(model.calls[0]["messages"]) == 2
    assert 'blood glucose? -> answer: "Insulin lowers it."' in said(model, 0)
    assert 'Insulin lowers it. - answer: "yes"' in said(model, 1)


def test_examples_are_conversation_turns_by_default(tmp_path: Path) -> None:
    model = Script(TEXT, "yes", f"{TEXT[:-1]} [1].")
    write(model, AQAMS2, examples=memory(tmp_path))
    roles = [[m["role"] for m in call["messages"]] for call in model.calls]
    assert roles == [["system", "user", "assistant", "user"]] * 2 + [["system", "user"]]
    assert model.calls[1]["messages"][2]["content"] == "yes"


def test_missing_or_unreadable_examples_are_reported(tmp_path: Path) -> None:
    def losses(folder: Path, **options: Any) -> tuple[str, ...]:
        model = Script(reasoned(TEXT))
        return write(model, SINAI, kind="summary", examples=folder, **options).degraded

    assert losses(tmp_path) == (NO_EXAMPLES,)
    folder = memory(tmp_path)
    assert losses(folder, encoder=lost_encode) == (UNCOMPARED, BY_WORDING)
    (newest,) = folder.iterdir()
    newest.write_text("{}")
    assert losses(folder) == (UNREAD,)


def test_entities_are_listed_by_concept() -> None:
    def recognise(text: str) -> list[Entity]:
        linked = (("heart attack", "D009203"), ("myocardial infarction", "D009203"), ("pain", ""))
        return [
            Entity(name, text.find(name), text.find(name) + len(name), concept, "disease")
            for name, concept in linked
            if name in text
        ]

    model = Script(TEXT, TEXT)
    texts = ("A heart attack brings pain.", "After myocardial infarction there is pain.")
    write(model, AQAMS2, *texts, kind="summary", recognise=recognise)
    named = "Concepts named in them: heart attack = myocardial infarction (D009203); pain\n"
    assert named in said(model, 0)


def test_passages_are_shown_with_pmid_and_relevance() -> None:
    model = Script(TEXT)
    write(model, load_system("aqams").answer, TEXT, "Cats sleep.", kind="summary")
    shown = re.findall(r"\[(\d)\] \(PMID (\d+), relevance ([01]\.\d{3})\) (\w+)", said(model, 0))
    assert [(number, pmid, word) for number, pmid, _, word in shown] == [
        ("1", "1", "Metformin"),
        ("2", "2", "Cats"),
    ]
    assert float(shown[0][2]) > float(shown[1][2])


def test_supported_answer_cites_the_numbered_passages() -> None:
    model = Script(TEXT, "It lowers blood glucose in adults [9]. " + TEXT[:-1] + " [2].")
    answer = write(model, AQAMS2, "Cats sleep all day long.", TEXT, kind="summary")
    assert [s.pmids for s in answer.supported] == [(2,), (2,)]


def test_unsupported_answer_is_dropped_and_reported() -> None:
    model = Script(TEXT, "Aspirin prevents colorectal cancer in mice [1].")
    answer = write(model, AQAMS2, kind="summary")
    assert answer.supported == ()
    assert "llm: nothing usable, no supported answer" in answer.degraded


def test_best_evidence_of_each_side_is_shown_and_listed() -> None:
    model = Script(f"{TEXT[:-1]} [2].")
    style = UDINE.model_copy(update={"weigh": 1})
    answer = write(model, style, "Cats sleep all day long.", TEXT, DENIAL, kind="summary")
    assert f"<supporting>\n[2] {TEXT}" in said(model, 0)
    assert f"<contradicting>\n[3] {DENIAL}" in said(model, 0)
    assert (answer.ideal[0].pmids, answer.ideal[0].contradicted) == ((2,), (3,))
    assert answer.shown == tuple(i.passage.id for i in evidence("Cats", TEXT, DENIAL)[1:])


def test_models_citations_are_kept_or_corrected() -> None:
    for second, kept in [(TEXT, (2,)), ("Cats sleep all day long.", (1,))]:
        model = Script(f"{TEXT[:-1]} [2, 77].")
        answer = write(model, UDINE, TEXT, second, kind="summary")
        assert [(s.text, s.pmids) for s in answer.ideal] == [(TEXT, kept)]


def test_long_answer_is_cut_at_a_sentence() -> None:
    model = Script("Metformin lowers blood glucose. Adults take metformin.")
    style = AnswerSettings(max_words=5)
    answer = write(model, style, f"{TEXT} Adults take metformin.", kind="summary")
    assert [s.text for s in answer.ideal] == ["Metformin lowers blood glucose."]
    assert "repetition_penalty" not in model.calls[0]


def test_presets_that_write_by_model_also_decide_by_model() -> None:
    # Otherwise the exact answer could contradict the ideal answer.
    limits = WriterLimits(ideal_from="evidence", exact_from="evidence")
    styles = {name: load_system(name).answer for name in system_names()}
    chosen = {name: limits.for_preset(style) for name, style in styles.items() if style.ideal_from}
    sources = {name: (of.ideal_from, of.exact_from) for name, of in chosen.items()}
    assert sources == dict.fromkeys(chosen, ("model", "model")) != {}
    apart = AnswerSettings(ideal_from="model", exact_from="evidence")
    assert limits.for_preset(apart).exact_from == "evidence"
