"""Sentence splitting, with cases that are typical of PubMed abstracts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.text.sentences import asks, sentence_spans


def sentences(text: str) -> list[str]:
    return [text[begin:end] for begin, end in sentence_spans(text)]


ENDS = [
    ("We did it. It worked.", ["We did it.", "It worked."]),
    ("Does it work? Yes! It does.", ["Does it work?", "Yes!", "It does."]),
    ("It rose (p < 0.05). We stopped.", ["It rose (p < 0.05).", "We stopped."]),
    ("It was p < 0.05. We stopped.", ["It was p < 0.05.", "We stopped."]),
    ("(It did not.) We stopped.", ["(It did not.)", "We stopped."]),
    ('He said "no." We stopped.', ['He said "no."', "We stopped."]),
    ("He said \u201cno.\u201d We stopped.", ["He said \u201cno.\u201d", "We stopped."]),
    ("It binds IL-6. TNF does not.", ["It binds IL-6.", "TNF does not."]),
    ("It binds IL-2R. TNF does not.", ["It binds IL-2R.", "TNF does not."]),
    ("Enrolled in 2010. 25 died.", ["Enrolled in 2010.", "25 died."]),
    ("It acts on cells. p53 is lost.", ["It acts on cells.", "p53 is lost."]),
    ("It acts on cells. mRNA fell.", ["It acts on cells.", "mRNA fell."]),
    ("It ends. (See below) It goes on.", ["It ends.", "(See below) It goes on."]),
    ("We saw Candida spp. The rest died.", ["We saw Candida spp.", "The rest died."]),
    ("The answer was no. We left.", ["The answer was no.", "We left."]),
    ("She had hepatitis C. The rest had not.", ["She had hepatitis C.", "The rest had not."]),
    ("It failed... We stopped.", ["It failed...", "We stopped."]),
    ("One.  \n Two.", ["One.", "Two."]),
    ("No full stop at the end", ["No full stop at the end"]),
    ("Proven efficacy.METHODS: We did it.", ["Proven efficacy.", "METHODS: We did it."]),
    ("AIM: To see. METHODS AND RESULTS: We saw.", ["AIM: To see.", "METHODS AND RESULTS: We saw."]),
]

ONE_SENTENCE = [
    "Drugs, e.g. Aspirin, were given.",
    "Salts (i.e. Sodium) were given.",
    "Drug vs. Placebo was tested.",
    "It is shown in Fig. 2 and Figs. 3-4.",
    "Smith et al. (2003) saw it.",
    "Smith et al. found it.",
    "Candida spp. were found.",
    "Sample No. 5 was lost.",
    "E. coli and S. aureus grew.",
    "J. A. Smith wrote it.",
    "It was made in the U.S. Army.",
    "Approx. 30 g of St. John's wort was given by Dr. Miller.",
    "The mean was 3.5 mg and .05 g.",
    "METHODS: We did it.",
    "See www.nih.gov for more.",
    "Streptomyces sp. nov. was found.",
    "It was 5 mg/kg b.i.d. for a week.",
]


@pytest.mark.parametrize(("text", "expected"), [*ENDS, *((text, [text]) for text in ONE_SENTENCE)])
def test_sentences_end_at_stops_but_not_at_dots_within_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentence_offsets_are_code_points() -> None:
    assert sentence_spans("  \U0001f9ec DNA.  It is. ") == [(2, 8), (10, 16)]
    assert sentence_spans("\n\t\u2009") == sentence_spans("") == []


@pytest.mark.slow
@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from(". !?)(AaZ:1\n\u2009"))))
def test_sentence_spans_cover_all_text(text: str) -> None:
    spans = sentence_spans(text)
    bounds = [0, *(at for span in spans for at in span), len(text)]
    assert bounds == sorted(bounds)
    outside = [text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2)]
    assert "".join(outside).strip() == ""
    assert all(part and part == part.strip() for part in sentences(text))


@pytest.mark.slow
def test_repetitive_text_takes_linear_time(subtests: pytest.Subtests) -> None:
    """Quadratic rules would take minutes."""
    for unit in [".", ". ", ".)", "A.", "A. ", ".A", ". AAAA", " ", "?!", "e.g. "]:
        with subtests.test(unit=unit):
            text = "x" + unit * (200_000 // len(unit))
            spans = sentence_spans(text)
            assert spans[0][0] == 0
            assert spans[-1][1] == len(text.rstrip())


@pytest.mark.parametrize(
    ("sentence", "is_question"),
    [
        ("Is valproate safe in pregnancy?", True),
        ("Is the score useful in predicting outcomes in bleeding ulcers", True),
        ("Aspirin for all: does it prevent cancer?", True),
        ("[Can statins prevent dementia?].", True),
        ("Does metformin reduce the risk of cancer: a meta-analysis", True),
        ("Valproate is contraindicated in pregnancy", False),
        ("Is contraindicated in pregnancy.", False),
        ("Do not give valproate in pregnancy", False),
        ("It is unknown whether it is safe (why?) in pregnancy.", False),
        ("Iscador in breast cancer", False),
    ],
)
def test_questions_are_recognised_without_a_question_mark(sentence: str, is_question: bool) -> None:
    assert asks(sentence) is is_question
