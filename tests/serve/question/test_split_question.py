from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

import pipelines.sample
from serve.question.split_question import MAX_PARTS, split_question

SPLIT = {
    "Is aspirin effective and if so, at what dose?": (
        ("Is aspirin effective?", "yesno"),
        ("If so, at what dose?", "factoid"),
    ),
    "Does metformin lower mortality and, if so, in whom?": (
        ("Does metformin lower mortality?", "yesno"),
        ("If so, in whom?", "factoid"),
    ),
    "Can statins cause diabetes? If so, which statins carry the risk?": (
        ("Can statins cause diabetes?", "yesno"),
        ("If so, which statins carry the risk?", "factoid"),
    ),
    "Is ibuprofen safe in adults? And in children?": (
        ("Is ibuprofen safe in adults?", "yesno"),
        ("And in children?", "yesno"),
    ),
    "What is gout, how is it diagnosed, and how is it treated?": (
        ("What is gout?", "summary"),
        ("How is it diagnosed?", "summary"),
        ("How is it treated?", "summary"),
    ),
    "1. Which ligands does TREM2 bind? 2. Is it a drug target?": (
        ("Which ligands does TREM2 bind?", "factoid"),
        ("Is it a drug target?", "yesno"),
    ),
    "For metformin: (a) does it cause acidosis; and (b) what is the maximum dose?": (
        ("For metformin: Does it cause acidosis?", "yesno"),
        ("For metformin: What is the maximum dose?", "summary"),
    ),
    "I have migraine. Which drugs help? Can I take them during pregnancy?": (
        ("I have migraine. Which drugs help?", "factoid"),
        ("Can I take them during pregnancy?", "yesno"),
    ),
    "What is a prolactinoma and where in the body would they be found?": (
        ("What is a prolactinoma?", "summary"),
        ("Where in the body would they be found?", "factoid"),
    ),
    "Which test is recommended prior to carbamazepine and why?": (
        ("Which test is recommended prior to carbamazepine?", "factoid"),
        ("Why?", "summary"),
    ),
    "Define pseudotumor cerebri. How is it treated?": (
        ("Define pseudotumor cerebri.", "summary"),
        ("How is it treated?", "summary"),
    ),
    "What is the role of ivermectin; is it effective against COVID-19?": (
        ("What is the role of ivermectin?", "summary"),
        ("Is it effective against COVID-19?", "yesno"),
    ),
}

WHOLE = [
    "What and where is the pineal gland?",
    "How and why does metformin cause lactic acidosis?",
    "Which genes and proteins are associated with Parkinson's disease?",
    "What genes in humans and what genes in mice are associated with obesity?",
    "Do ACE inhibitors and beta blockers reduce mortality in heart failure?",
    "List genes that SWIM has identified and which are down-regulated in glioblastoma.",
    "Which drugs are used in patients who smoke and who have COPD?",
    "Is it viral or is it bacterial?",
    "Which is best: a) aspirin b) ibuprofen c) paracetamol?",
    "Is vitamin D effective? Yes or no?",
    "When aspirin is given with warfarin, what is the risk of bleeding?",
    "In patients with atrial fibrillation, is apixaban better and safer than warfarin?",
    "Which side effects, if any, does metformin have?",
    "Which drug, if not aspirin, is used after stent placement?",
    "Which kinases are inhibited by dasatinib and are expressed in T cells?",
    "Which tissues express ACE2 and do not express TMPRSS2?",
    "Rickettsia felis was described two decades ago, what is its main arthropod vector?",
    "Histone acetyltransferases transfer acetyl groups. What is the purpose of this transfer?",
    "Explain how p53 is regulated and how it induces apoptosis.",
    "Is P. gingivalis found in the brain?",
    "vitamin C and zinc for common cold",
    "?!",
]


@pytest.mark.parametrize("body", SPLIT)
def test_parts_are_split_with_their_types(body: str) -> None:
    assert tuple((part.text, part.type) for part in split_question(body)) == SPLIT[body]


@pytest.mark.parametrize("body", WHOLE)
def test_single_question_is_not_split(body: str) -> None:
    assert split_question(body) == ()


def test_only_one_sample_question_has_parts() -> None:
    folder = Path(pipelines.sample.__file__).parent / "questions"
    rows = [row for file in folder.glob("*.yaml") for row in yaml.safe_load(file.read_text())]
    split = [row["body"] for row in rows if split_question(row["body"])]
    assert len(rows) == 40
    assert split == [
        "What causes cytokine release syndrome after CAR T cells and how is it treated?"
    ]


def test_further_parts_stay_in_the_last_one() -> None:
    body = " ".join(f"Is drug {n} safe?" for n in range(9))
    parts = split_question(body)
    assert len(parts) == MAX_PARTS
    assert " ".join(part.text for part in parts) == body


@pytest.mark.parametrize("piece", ["and what ", "what is ", ", what b c d e is f", "1) what "])
def test_longest_question_is_split_within_a_second(piece: str) -> None:
    begun = time.perf_counter()
    split_question((piece * 2000)[:2000])
    assert time.perf_counter() - begun < 1
