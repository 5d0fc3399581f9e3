from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.records import Section
from pipelines.train.reader.abstracts import (
    AbstractQuestion,
    Finding,
    abstract_examples,
    ask_of,
    read_abstract_questions,
    read_abstracts,
    read_findings,
    trial_examples,
)
from pipelines.train.reader.records import MAYBE, NO, SILENT, YES
from tests.pipelines.train.tiny_data import FINDING, abstract, write_corpus, write_gold, write_lines

ABSTRACTS = {
    pmid: abstract(pmid, f"Aim {pmid}.", f"Method {pmid}.", f"Result {pmid}.") for pmid in (1, 2, 3)
}


def test_citations_without_an_abstract_are_skipped(tmp_path: Path) -> None:
    file = write_corpus(tmp_path / "a.xml", {1: "It helps.", 2: ""})
    assert {pmid: c.abstract for pmid, c in read_abstracts([file]).items()} == {1: "It helps."}


def test_abstract_questions_are_read_and_invalid_ones_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    rows = [{"question": f"Is it {a}?", "answer": a, "pmid": 1} for a in ("yes", "no", "maybe")]
    found = read_abstract_questions(write_gold(tmp_path / "q.json", *rows))
    assert [question.stance for question in found] == [YES, NO, MAYBE]
    for text in [
        "{",
        "[]",
        "{}",
        '{"questions": [{"question": "Is it?", "answer": "perhaps", "pmid": 1}]}',
        '{"questions": [{"question": "Is it?", "answer": "yes"}]}',
    ]:
        (tmp_path / "q.json").write_text(text, encoding="utf-8")
        with (
            subtests.test(text=text),
            pytest.raises(InputError, match=r"q\.json: not questions on abstracts"),
        ):
            read_abstract_questions(tmp_path / "q.json")


def test_abstract_question_yields_whole_partial_and_other_abstract() -> None:
    questions = [AbstractQuestion(f"Is it {n}?", stance, n) for n, stance in ((1, YES), (2, MAYBE))]
    others = 0
    for seed in range(10):
        examples = list(abstract_examples(questions, ABSTRACTS, random.Random(seed)))
        for example in examples:
            pmid = 1 if "1" in example.question else 2
            if example.relevant:
                assert example.text.endswith(f"Result {pmid}.")
                assert example.stance == questions[pmid - 1].stance
            else:
                assert f"Result {pmid}" not in example.text
                others += 1
        assert sum(e.relevant == 1 for e in examples) == 4
    assert others > 0


def test_findings_are_read_and_invalid_lines_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    labels = ("increased", "decreased", "no difference")
    rows = [FINDING | {"label": label} for label in labels]
    found = read_findings(write_lines(tmp_path / "f.jsonl", rows))
    assert [finding.effect for finding in found] == [1, -1, 0]
    for change in [{"label": "better"}, {"pmid": "x"}, {"pmid": None}]:
        with (
            subtests.test(change=change),
            pytest.raises(InputError, match="line 2: not a finding"),
        ):
            read_findings(write_lines(tmp_path / "f.jsonl", [FINDING, FINDING | change]))


def test_finding_answer_follows_from_direction_and_question() -> None:
    # Words in each kind of question, and the answers for an increase, a decrease and no change.
    kinds = [
        (r"\b(no difference|similar|unchanged)\b", (NO, NO, YES)),
        (r"\b(affect|change|differ|difference)\b", (YES, YES, NO)),
        (r"\b(increase|higher|raise)\b", (YES, NO, NO)),
        (r"\b(reduce|decrease|lower|less)\b", (NO, YES, NO)),
    ]
    seen = set()
    for column, effect in enumerate((1, -1, 0)):
        finding = Finding(1, "curevit", "placebo", "fever", effect, "It fell.", True)
        for seed in range(60):
            question, stance = ask_of(finding, random.Random(seed))
            kind, answers = next(row for row in kinds if re.search(row[0], question))
            assert stance == answers[column], question
            assert (question[0].isupper(), "{" in question) == (True, False)
            seen.add((kind, effect))
    assert len(seen) == 12


def test_finding_yields_two_questions_and_some_negatives() -> None:
    findings = [
        Finding(1, "curevit", "placebo", "fever", 1, "Fever rose.", True),
        Finding(2, "zelavit", "placebo", "fever", -1, "Fever fell.", False),
    ]
    quiet = 0
    for seed in range(30):
        examples = list(trial_examples(findings, ABSTRACTS, random.Random(seed)))
        relevant = [e for e in examples if e.relevant]
        assert len(relevant) == 4
        assert all(e.stance in (YES, NO) for e in relevant)
        assert all(
            ("Result 1." in e.text or "Fever rose." in e.text) if n < 2 else "Fever fell." in e.text
            for n, e in enumerate(relevant)
        )
        for example in (e for e in examples if not e.relevant):
            assert (example.stance, example.relevant) == (SILENT, 0.0)
            quiet += 1
    assert quiet > 5


def test_last_window_of_a_long_text_contains_the_evidence() -> None:
    evidence = "Fever fell with aspirin (p = 0.01)."
    sections = (Section("", "Much was measured before. " * 60 + evidence + " We met again." * 150),)
    citation = replace(ABSTRACTS[1], sections=sections)
    finding = Finding(1, "aspirin", "placebo", "fever", -1, evidence, True)
    other = replace(finding, intervention="ibuprofen")
    before = 0
    for seed in range(60):
        for example in trial_examples([finding, other], {1: citation}, random.Random(seed)):
            held = evidence in example.text
            if example.relevant:
                assert held
                assert len(example.text) - example.text.index(evidence) <= len(evidence) + 500
            elif not held:
                before += 1
                assert example.stance == SILENT
    assert before
