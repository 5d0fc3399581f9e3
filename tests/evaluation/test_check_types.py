import pytest

from evaluation.bioasq.check_types import asked_type, wrong_names


def test_the_words_of_a_question_tell_its_type(subtests: pytest.Subtests) -> None:
    for body, asked in [
        ("How many genes does the human mitochondrion have?", "number"),
        ("What is the prevalence of cystic fibrosis?", "number"),
        ("What is the recommended dose of rivaroxaban?", "number"),
        ("In which year was imatinib approved?", "number"),
        ("Which gene is mutated in Huntington's disease?", None),
        ("Which are the main drugs against malaria?", None),
        ("List monoclonal antibodies against CGRP.", None),
        ("What is the target of imatinib?", None),
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
    assert wrong_names(names) == 2
