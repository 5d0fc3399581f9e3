from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

import pipelines.sample
from serve.question.split_question import MAX_PARTS, split_question

# Questions with their parts and the types of these.
SPLIT = {
    "Is aspirin effective and if so, at what dose?":
        (("Is aspirin effective?", "yesno"), ("If so, at what dose?", "factoid")),
    "Does metformin lower mortality and, if so, in whom?":
        (("Does metformin lower mortality?", "yesno"), ("If so, in whom?", "factoid")),
    "Can statins cause diabetes? If so, which statins carry the risk?": (
        ("Can statins cause diabetes?", "yesno"),
        ("If so, which statins carry the risk?", "factoid"),
    ),
    "Is ibuprofen safe in adults? And in children?":
        (("Is ibuprofen safe in adults?", "yesno"), ("And in children?", "yesno")),
    "1. Which ligands does TREM2 bind? 2. Is it a drug target?":
        (("Which ligands does TREM2 bind?", "factoid"), ("Is it a drug target?", "yesno")),
    "For metformin: (a) does it cause acidosis; and (b) what is the maximum dose?": (
        ("For metformin: Does it cause acidosis?", "yesno"),
        ("For metformin: What is the maximum dose?", "summary"),
    ),
    "I have migraine. Which drugs help? Can I take them during pregnancy?": (
        ("I have migraine. Which drugs help?", "factoid"),
        ("Can I take them during pregnancy?", "yesno"),
    ),
}  # fmt: skip

WHOLE = [
    "What is gout and how is it treated?",
    "Which genes and proteins are associated with Parkinson's disease?",
    "Do ACE inhibitors and beta blockers reduce mortality in heart failure?",
    "Is it viral or is it bacterial?",
    "Which is best: a) aspirin b) ibuprofen c) paracetamol?",
    "Is vitamin D effective? Yes or no?",
    "When aspirin is given with warfarin, what is the risk of bleeding?",
    "In patients with atrial fibrillation, is apixaban better and safer than warfarin?",
    "Which side effects, if any, does metformin have?",
    "Which drug, if not aspirin, is used after stent placement?",
    "Histone acetyltransferases transfer acetyl groups. What is the purpose of this transfer?",
    "Is P. gingivalis found in the brain?",
    "vitamin C and zinc for common cold",
    "?!",
]


def test_only_questions_with_several_parts_are_split_with_their_types() -> None:
    parts = {body: split_question(body) for body in (*SPLIT, *WHOLE)}
    found = {body: tuple((part.text, part.type) for part in of) for body, of in parts.items()}
    assert found == {**SPLIT, **dict.fromkeys(WHOLE, ())}


def test_no_sample_question_has_parts() -> None:
    folder = Path(pipelines.sample.__file__).parent / "questions"
    rows = [row for file in folder.glob("*.yaml") for row in yaml.safe_load(file.read_text())]
    assert len(rows) == 40
    assert not [row["body"] for row in rows if split_question(row["body"])]


def test_further_parts_stay_in_the_last_one() -> None:
    body = " ".join(f"Is drug {n} safe?" for n in range(9))
    parts = split_question(body)
    assert len(parts) == MAX_PARTS
    assert " ".join(part.text for part in parts) == body


@pytest.mark.parametrize("piece", ["if so, ", "what is? ", "1) what "])
def test_longest_question_is_split_within_a_second(piece: str) -> None:
    begun = time.perf_counter()
    split_question((piece * 2000)[:2000])
    assert time.perf_counter() - begun < 1
