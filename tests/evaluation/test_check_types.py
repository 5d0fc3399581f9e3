import pytest

from evaluation.bioasq.check_types import asked_type, count_non_numbers


def test_question_words_show_whether_a_number_is_asked_for(subtests: pytest.Subtests) -> None:
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


def test_number_requires_digit_or_number_word() -> None:
    names = ["37", "10 mg/day", "twice daily", "mitochondrion", "high"]
    assert count_non_numbers(names) == 2
