from __future__ import annotations

from serve.answer.clean_answer import clean_answer

GOOD = "Metformin lowers blood glucose by 30% in adults."
NO_STATEMENTS = [
    "1, 2, 3, 4, 5, 6, 7.",
    "12 34 56 and 78 of 90 and 12 34 56 78.",
    "Yes.",
    "What are the causes of it all?",
    "",
    "the gene the gene the gene the gene the gene the gene.",
    "BRCA1 and BRCA2 and BRCA1 and BRCA2 and BRCA1 and BRCA2 genes and and and.",
]
BRACKETS = [
    "The interleukin (IL-6) rises in 3 patients.",
    "The dose was 5 (range 3-8) mg in adults.",
    "Complex [Fe(CN)6] binds to the protein.",
    "Risk rose by 10-12% (95% CI 8-14) in adults.",
    "The CI [0.1, 0.5] was wide.",
]
MARKED = [
    "Metformin lowers blood glucose by 30% in adults [1].",
    "Metformin lowers blood glucose by 30% in adults [1, 2].",
    "Metformin lowers blood glucose by 30% in adults [1-3].",
    "Metformin lowers blood glucose by 30% in adults (PMID: 12345678).",
    "Metformin lowers blood glucose [PMID 123] by 30% in adults.",
    "Metformin lowers blood glucose by 30% in adults (passage 1).",
    "Metformin lowers blood glucose by 30% in adults (passages 1 and 2).",
    "Answer: Metformin lowers blood glucose by 30% in adults.",
    "Based on the passages, Metformin lowers blood glucose by 30% in adults.",
    "Conclusions: Metformin lowers blood glucose by 30% in adults.",
    "- Metformin lowers blood glucose by 30% in adults.",
    "1. Metformin lowers blood glucose by 30% in adults.",
    "<evidence>Metformin lowers blood glucose by 30% in adults.</evidence>",
    "Metformin lowers blood glucose by 30% in adults.<|im_end|>",
]


def test_only_complete_statements_are_kept_once() -> None:
    other = GOOD.replace("30", "40")
    whole = ["Metformin lowers glucose by 1.5 mmol/l (p < 0.05).", "It does not cause weight gain."]
    cleaned = {
        " ".join(whole): whole,
        f"{GOOD} {GOOD}": [GOOD],
        f"{GOOD} {other}": [GOOD, other],
        f"{GOOD} It is also known that": [GOOD],
        f"<evidence>\n[1] {GOOD}\n[2] {GOOD}\n</evidence>": [],
        **{text: [] for text in NO_STATEMENTS},
        **{text: [text] for text in BRACKETS},
        **{text: [GOOD] for text in MARKED},
    }
    assert {text: [*clean_answer(text)] for text in cleaned} == cleaned


KNOWN = {1: 101, 2: 102, 3: 103}


def cited(text: str, known: dict[int, int] = KNOWN) -> list[tuple[str, tuple[int, ...]]]:
    return [*clean_answer(text, known).items()]


def test_marks_of_every_form_become_pmids() -> None:
    texts = [
        "Metformin lowers blood glucose [1, 3].",
        "Metformin lowers blood glucose [1][3].",
        "Metformin lowers blood glucose. [1, 3]",
        "Metformin lowers blood glucose [Snippet 1; Snippet 3].",
        "Metformin lowers blood glucose (snippets 1 and 3).",
        "Metformin lowers blood glucose [1 and 3], [1].",
    ]
    marked = [("Metformin lowers blood glucose.", (101, 103))]
    assert {text: cited(text) for text in texts} == dict.fromkeys(texts, marked)


def test_ranges_are_expanded_and_unknown_numbers_ignored() -> None:
    marks = {"1-3": (101, 102, 103), "0, 2, 9": (102,), "1-99999999": (101,)}
    found = {mark: cited(f"It helps most of them [{mark}].") for mark in marks}
    assert found == {mark: [("It helps most of them.", pmids)] for mark, pmids in marks.items()}


def test_mark_after_the_stop_belongs_to_the_previous_sentence() -> None:
    found = cited("It helps most of them. [2] It is safe for them. [3]")
    assert found == [("It helps most of them.", (102,)), ("It is safe for them.", (103,))]
    (first, _) = cited("It fell there again by 30%. [2] It is safe for them.")
    assert first == ("It fell there again by 30%.", (102,))


def test_pmids_in_marks_are_read() -> None:
    known = {30311221: 30311221, 21306691: 21306691}
    found = cited("It helps most of them [30311221, PMID: 21306691].", known)
    assert found == [("It helps most of them.", (30311221, 21306691))]
