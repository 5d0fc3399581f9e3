from __future__ import annotations

import pytest

from serve.answer.clean_answer import clean_answer, clean_entities, is_garbled

GOOD = "Metformin lowers blood glucose by 30% in adults."


def test_good_answer_stays_as_it_is() -> None:
    text = "Metformin lowers glucose by 1.5 mmol/l (p < 0.05). It does not cause weight gain."
    assert " ".join(clean_answer(text)) == text


def test_citations_and_wrapping_are_stripped(subtests: pytest.Subtests) -> None:
    for cited in [
        "Metformin lowers blood glucose by 30% in adults [1].",
        "Metformin lowers blood glucose by 30% in adults [1, 2].",
        "Metformin lowers blood glucose by 30% in adults [1-3].",
        "Metformin lowers blood glucose by 30% in adults (PMID: 12345678).",
        "Metformin lowers blood glucose [PMID 123] by 30% in adults.",
        "Metformin lowers blood glucose by 30% in adults (passage 1).",
        "Metformin lowers blood glucose by 30% in adults (passages 1 and 2).",
        "Metformin lowers blood glucose by 30% in adults PMID 123, 456.",
        "Answer: Metformin lowers blood glucose by 30% in adults.",
        "Based on the passages, Metformin lowers blood glucose by 30% in adults.",
        "- Metformin lowers blood glucose by 30% in adults.",
        "1. Metformin lowers blood glucose by 30% in adults.",
        "<evidence>Metformin lowers blood glucose by 30% in adults.</evidence>",
        "Metformin lowers blood glucose by 30% in adults.<|im_end|>",
    ]:
        with subtests.test(cited=cited):
            assert clean_answer(cited) == [GOOD]


def test_brackets_that_cite_nothing_stay(subtests: pytest.Subtests) -> None:
    for kept in [
        "The interleukin (IL-6) rises in 3 patients.",
        "The dose was 5 (range 3-8) mg in adults.",
        "Complex [Fe(CN)6] binds to the protein.",
        "Risk rose by 10-12% (95% CI 8-14) in adults.",
    ]:
        with subtests.test(kept=kept):
            assert clean_answer(kept) == [kept]


def test_what_answers_nothing_is_dropped(subtests: pytest.Subtests) -> None:
    for said in [
        "I am sorry, but this is beyond me.",
        "As an AI language model this is hard.",
        "The passages do not contain the answer to this.",
        "The provided text does not mention any dose.",
        "There is not enough information to say.",
        "This paragraph is about the role of genes.",
        "1, 2, 3, 4, 5, 6, 7.",
        "12 34 56 and 78 of 90 and 12 34 56 78.",
        "Yes.",
        "What are the causes of it all?",
        "",
        "the gene the gene the gene the gene the gene the gene.",
        "BRCA1 and BRCA2 and BRCA1 and BRCA2 and BRCA1 and BRCA2 genes and and and.",
    ]:
        with subtests.test(said=said):
            assert clean_answer(said) == []


def test_cut_off_last_sentence_is_dropped() -> None:
    assert clean_answer(f"{GOOD} It is also known that") == [GOOD]


def test_repeated_sentence_is_said_once() -> None:
    assert clean_answer(f"{GOOD} {GOOD}") == [GOOD]


def test_sentence_with_another_number_is_no_repetition() -> None:
    other = GOOD.replace("30", "40")
    assert clean_answer(f"{GOOD} {other}") == [GOOD, other]


def test_negated_sentence_is_no_repetition() -> None:
    other = "Metformin never lowers blood glucose by 30% in adults."
    assert clean_answer(f"{GOOD} {other}") == [GOOD, other]


def test_copied_instructions_are_dropped() -> None:
    prompt = "Use only facts, names and numbers from the text."
    assert clean_answer(f"{prompt} {GOOD}", prompt) == [GOOD]


def test_recited_evidence_is_no_answer() -> None:
    assert clean_answer(f"<evidence>\n[1] {GOOD}\n[2] {GOOD}\n</evidence>") == []


def test_entities_must_stand_in_a_source() -> None:
    assert clean_entities(["BRCA1", "TP53"], ["Mutated brca1 was found."], limit=5) == ["BRCA1"]


def test_entity_inside_a_longer_word_does_not_stand_there() -> None:
    assert clean_entities(["BRCA"], ["Mutated BRCA1 was found."], limit=5) == []


def test_entities_come_once_in_order_up_to_the_limit() -> None:
    found = clean_entities(["b", "A", "a", "c"], ["a b c"], limit=2)
    assert found == ["b", "A"]


def test_overlong_entity_is_left_out() -> None:
    assert clean_entities(["a" * 101], ["a" * 101], limit=5) == []


def test_entity_may_span_a_line_break_of_its_source() -> None:
    assert clean_entities(["heart failure"], ["Heart\n failure."], limit=5) == ["heart failure"]


def test_entity_with_signs_of_a_pattern_is_taken_literally() -> None:
    assert clean_entities(["Ca(2+)", "(.*)"], ["Ca(2+) enters."], limit=5) == ["Ca(2+)"]


def test_a_garbled_sentence_does_not_pass(subtests: pytest.Subtests) -> None:
    for said in [
        "Semaglutide is a GLP-1 receptor agonist (GLP-1) receptor agonist (B) that is weekly.",
        "Semaglutide is given once a week to adults that are.",
        "The drug of choice for adults is a GLP-1 receptor agonist or the.",
        "Metformin lowers glucose (as shown in two trials and in adults.",
        "The risk of cancer of the breast rises with the risk of cancer of the breast in age.",
    ]:
        with subtests.test(said=said):
            assert is_garbled(said)
            assert clean_answer(f"{GOOD} {said}") == [GOOD]


def test_a_sentence_that_only_uses_its_words_again_is_kept(subtests: pytest.Subtests) -> None:
    for said in [
        "Vaccine A holds 18 mg of haemagglutinin, vaccine B 17 mg of haemagglutinin per dose.",
        "Swi4 and Swi6 form SBF, Mbp1 and Swi6 form MBF.",
        "Emicizumab facilitates haemostasis in patients with haemophilia A.",
        "A herd immunity of 95% of the population is required.",
        "Patients with type 2 diabetes fare worse than patients with type 1 diabetes.",
    ]:
        with subtests.test(said=said):
            assert clean_answer(said) == [said]


def test_the_aim_of_a_study_is_no_answer() -> None:
    aim = "The aim of this study was to measure glucose under metformin."
    assert clean_answer(f"{aim} This review aimed to find its dose. {GOOD}") == [GOOD]


def test_what_a_passage_is_said_to_state_is_a_claim(subtests: pytest.Subtests) -> None:
    for said, claim in [
        ("The passage states that aspirin thins the blood.", "Aspirin thins the blood."),
        ("Passage 2 clearly states that mTOR is then inhibited.", "mTOR is then inhibited."),
        ("The text notes that drugs, such as this, do it.", "Drugs, such as this, do it."),
        ('The text says that "It lowers glucose in adults."', "It lowers glucose in adults."),
    ]:
        with subtests.test(said=said, claim=claim):
            assert clean_answer(f"{GOOD} {said}") == [GOOD, claim]


def test_what_a_passage_only_suggests_is_no_claim() -> None:
    assert clean_answer("The passage suggests that metformin lowers blood glucose.") == []


def test_a_label_goes_and_its_sentence_stays() -> None:
    assert clean_answer(f"Conclusions: {GOOD}") == [GOOD]
