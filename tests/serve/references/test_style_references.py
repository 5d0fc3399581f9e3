"""References in the styles of NLM, APA and AMA.

NLM's examples are from its "Samples of Formatted References for Authors of Journal Articles", some
shortened, with the PMIDs that the style adds.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from cluster.records import MORE_AUTHORS, Author, Citation, Link
from serve.references.prepare_for_style import RULES, StyleName
from serve.references.style_references import style_references
from tests.serve.references.generated_citations import generated_citations


def by(*names: str, groups: tuple[str, ...] = ()) -> tuple[Author, ...]:
    """Return authors from names such as "Halpern SD", followed by groups."""
    people = (name.rsplit(" ", 1) for name in names)
    found = [Author(last, " ".join(initials), initials) for last, initials in people]
    return (*found, *(Author(collective=group) for group in groups))


def made(title: str, journal: str, year: int | None = 2002, **fields: Any) -> Citation:
    full = fields.pop("full", journal)
    named = {"journal": full, "journal_abbreviation": journal}
    return Citation(title=title, year=year, **{"pmid": 1, **named, **fields})


HIV = made(
    "Solid-organ transplantation in HIV-infected patients.",
    "N Engl J Med",
    authors=by("Halpern SD", "Ubel PA", "Caplan AL"),
    full="The New England journal of medicine",
    month=7, volume="347", issue="4", pages="284-7",
)  # fmt: skip
SEVEN = made(
    "Regulation of amino acid concentrations.",
    "Brain Res",
    authors=by(
        "Rose ME", "Huerbin MB", "Melick J", "Marion DW", "Palmer AM", "Schiding JK", "Kochanek PM"
    ),
    volume="935", issue="1-2", pages="40-6",
)  # fmt: skip
BOTH = made(
    "Dysfunction in 1,274 European men.",
    "J Urol",
    2003,
    authors=by(
        "Vallancien G", "Emberton M", "Harving N", "van Moorselaar RJ",
        groups=("Alf-One Study Group",),
    ),
    volume="169", issue="6", pages="2257-61",
)  # fmt: skip
NOBODY = made(
    "21st century heart solution may have a sting in the tail.",
    "BMJ", volume="325", issue="7357", pages="184",
)  # fmt: skip
NORWEGIAN = made(
    "[Disease anxiety].", "BMJ", volume="122", issue="8", pages="785-7", languages=("nor",)
)
SUPPLEMENT = made(
    "Tolerability and safety of frovatriptan.", "Headache",
    authors=by("Geraud G"), volume="42 Suppl 2", pages="S93-9",
)  # fmt: skip
IN_ISSUE = made("Trial data.", "Neurology", volume="58", issue="12 Suppl 7", pages="S6-12")
NO_VOLUME = made("Outreach: into care.", "HRSA Careaction", month=6, pages="iii-v")
JUNIOR = made(
    "Is it so?", "J. Clin. Invest.",
    authors=(Author("King", "Martin Luther Jr", "ML Jr"), Author("Müller", "Wei-Min", "WM")),
    volume="1", pages="1-10", doi="10.1172/JCI1", pmcid="PMC7",
)  # fmt: skip

# Authors, their names in APA style, and their names in the styles of NLM and AMA.
NAMES: list[tuple[tuple[Author, ...], str, str]] = [
    (
        (Author(collective="Trial Group"), *by("Low J"), Author(collective="B Inc."), *by("Doe A")),
        "Trial Group, Low, J., B Inc., & Doe, A.",
        "Trial Group; Low J; B Inc.; Doe A.",
    ),
    ((*by("Low J", "Doe A"), MORE_AUTHORS), "Low, J., Doe, A., et al.", "Low J, Doe A, et al."),
    (
        (Author("Hooks", "bell Jr", "b Jr"), Author("\u738b", "\u5c0f\u660e", "\u5c0f")),
        "Hooks, b., Jr., & \u738b, \u5c0f.",
        "Hooks b Jr, \u738b \u5c0f.",
    ),
]

# The expected references of each style, and their citations.
CASES: dict[StyleName, dict[str, Citation]] = {
    "vancouver": {
        "Halpern SD, Ubel PA, Caplan AL. Solid-organ transplantation in HIV-infected patients. "
        "N Engl J Med. 2002 Jul;347(4):284-7. PubMed PMID: 1.": HIV,
        "Rose ME, Huerbin MB, Melick J, Marion DW, Palmer AM, Schiding JK, et al. Regulation of "
        "amino acid concentrations. Brain Res. 2002;935(1-2):40-6. PubMed PMID: 1.": SEVEN,
        "Vallancien G, Emberton M, Harving N, van Moorselaar RJ; Alf-One Study Group. "
        "Dysfunction in 1,274 European men. J Urol. 2003;169(6):2257-61. PubMed PMID: 1.": BOTH,
        "Geraud G. Tolerability and safety of frovatriptan. Headache. 2002;42 Suppl 2:S93-9. "
        "PubMed PMID: 1.": SUPPLEMENT,
        "Trial data. Neurology. 2002;58(12 Suppl 7):S6-12. PubMed PMID: 1.": IN_ISSUE,
        "Outreach: into care. HRSA Careaction. 2002 Jun:iii-v. PubMed PMID: 1.": NO_VOLUME,
        "[Disease anxiety]. BMJ. 2002;122(8):785-7. PubMed PMID: 1. Norwegian.": NORWEGIAN,
        "King ML Jr, Müller WM. Is it so? J Clin Invest. 2002;1:1-10. doi: 10.1172/JCI1. "
        "PubMed PMID: 1; PubMed Central PMCID: PMC7.": JUNIOR,
    },
    "apa": {
        "Halpern, S. D., Ubel, P. A., & Caplan, A. L. (2002). Solid-organ transplantation in "
        "HIV-infected patients. The New England Journal of Medicine, 347(4), 284–287.": HIV,  # noqa: RUF001
        "21st century heart solution may have a sting in the tail. (2002). BMJ, 325(7357), "
        "184.": NOBODY,
        "Geraud, G. (2002). Tolerability and safety of frovatriptan. Headache, 42(Suppl. 2), "
        "S93–S99.": SUPPLEMENT,  # noqa: RUF001
        "King, M. L., Jr., & Müller, W.-M. (2002). Is it so? J. Clin. Invest., 1, 1–10. "  # noqa: RUF001
        "https://doi.org/10.1172/JCI1": JUNIOR,
        "Trial. (2002). BMJ, 4, Article e1002195. https://doi.org/10.1/X": made(
            "Trial.", "BMJ", volume="4", pages="e1002195", doi="https://doi.org/10.1/X"
        ),
    },
    "ama": {
        "Halpern SD, Ubel PA, Caplan AL. Solid-organ transplantation in HIV-infected patients. "
        "N Engl J Med. 2002;347(4):284-287.": HIV,
        "Vallancien G, Emberton M, Harving N, van Moorselaar RJ; Alf-One Study Group. "
        "Dysfunction in 1,274 European men. J Urol. 2003;169(6):2257-2261.": BOTH,
        "Geraud G. Tolerability and safety of frovatriptan. Headache. 2002;42(suppl 2):"
        "S93-S99.": SUPPLEMENT,
    },
}


def text_of(citation: Citation, style: StyleName) -> str:
    return style_references([citation], style)[0].text


def test_references_follow_the_style(subtests: pytest.Subtests) -> None:
    for style, references in CASES.items():
        for expected, citation in references.items():
            with subtests.test(style=style, expected=expected):
                assert text_of(citation, style) == expected
    for authors, inverted, plain in NAMES:
        trial = made("Trial.", "BMJ", authors=authors, volume="4")
        with subtests.test(authors=plain):
            assert text_of(trial, "vancouver") == f"{plain} Trial. BMJ. 2002;4. PubMed PMID: 1."
            assert text_of(trial, "ama") == f"{plain} Trial. BMJ. 2002;4."
            assert text_of(trial, "apa") == f"{inverted} (2002). Trial. BMJ, 4."


def test_retraction_is_marked_in_bold(subtests: pytest.Subtests) -> None:
    for style in RULES:
        with subtests.test(style=style):
            notice = Link("RetractionIn", 9, "J Urol. 2003;1:2")
            (reference,) = style_references([made("Safety.", "J Urol", links=(notice,))], style)
            assert reference.text.endswith(
                "[Retracted article; Retraction in: J Urol. 2003;1:2. PMID: 9]"
            )
            assert reference.runs[-1].bold
            assert reference.retracted


def test_markup_and_private_characters_of_a_title_are_escaped() -> None:
    (reference,) = style_references([made("A <b>& B</b>.", "BMJ")], "apa")
    assert reference.html == "A &lt;b&gt;&amp; B&lt;/b&gt;. (2002). <i>BMJ</i>."
    text = text_of(made("A\ue002\ue000B\ue004.", "BMJ"), "apa")
    assert text == "AB. (2002). BMJ."


@pytest.mark.slow
def test_every_record_has_a_reference(subtests: pytest.Subtests) -> None:
    citations = [*generated_citations(100), Citation(pmid=5)]
    for style in RULES:
        with subtests.test(style=style):
            begun = time.process_time()
            references = style_references(citations, style)
            # About ten times the usual time, for busy machines.
            assert time.process_time() - begun < 5
            assert [reference.pmid for reference in references] == [c.pmid for c in citations]
            assert all(reference.text.strip() for reference in references)


@pytest.mark.slow
def test_styling_is_thread_safe() -> None:
    citations = generated_citations(30)
    alone = [style_references(citations, style) for style in RULES]
    style_references.__globals__["_reference"].cache_clear()
    with ThreadPoolExecutor(len(RULES)) as pool:
        found = list(pool.map(lambda style: style_references(citations, style), RULES))
    assert found == alone
