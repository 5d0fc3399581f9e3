import pytest

from evaluation.bioasq.check_types import asked_type, wrong_names


def test_the_words_of_a_question_tell_its_type(subtests: pytest.Subtests) -> None:
    for body, asked in [
        ("How many genes does the human mitochondrion have?", "number"),
        ("What is the prevalence of cystic fibrosis?", "number"),
        ("What is the recommended dose of rivaroxaban?", "number"),
        ("In which year was imatinib approved?", "number"),
        ("Which gene is mutated in Huntington's disease?", "name"),
        ("Which are the main drugs against malaria?", "name"),
        ("List monoclonal antibodies against CGRP.", "name"),
        ("What is the target of imatinib?", "name"),
        ("What is the role of imatinib?", None),
        ("What causes gout?", None),
        ("When was imatinib approved?", "number"),
        ("When is imatinib used?", None),
        ("Does metformin activate AMPK?", None),
    ]:
        with subtests.test(body=body, asked=asked):
            assert asked_type(body) == asked


def test_a_number_needs_a_digit_or_a_number_word() -> None:
    names = ["37", "10 mg/day", "twice daily", "mitochondrion", "high"]
    assert wrong_names("number", names) == 2


def test_a_name_is_no_everyday_word_and_no_bare_number() -> None:
    names = [
        "HTT",
        "p53",
        "brain-derived neurotrophic factor",
        "gene",
        "patients",
        "12",
        "the cell",
    ]
    assert wrong_names("name", names) == 4
