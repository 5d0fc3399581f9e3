"""References as NLM, APA and AMA print them. NLM's examples are of its "Samples of Formatted
References for Authors of Journal Articles", without the PMIDs that the style adds."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.records import Author, Citation, Link
from serve.references.prepare_for_style import STYLE_NAMES, StyleName
from serve.references.style_references import STYLES, style_references
from tests.serve.references.generated_citations import generated_citations


def by(*names: str, groups: tuple[str, ...] = ()) -> tuple[Author, ...]:
    """Authors as "Halpern SD"; groups after them."""
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
CORTICAL = made(
    "Regulation of interstitial excitatory amino acid concentrations after cortical contusion "
    "injury.",
    "Brain Res",
    authors=by(
        "Rose ME", "Huerbin MB", "Melick J", "Marion DW", "Palmer AM", "Schiding JK", "Kochanek PM"
    ),
    volume="935", issue="1-2", pages="40-6",
)  # fmt: skip
GROUP = made(
    "Hypertension, insulin, and proinsulin in participants with impaired glucose tolerance.",
    "Hypertension",
    authors=by(groups=("Diabetes Prevention Program Research Group",)),
    volume="40", issue="5", pages="679-86",
)  # fmt: skip
BOTH = made(
    "Sexual dysfunction in 1,274 European men suffering from lower urinary tract symptoms.",
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
    "[Disease anxiety among medical students and law students].",
    "Tidsskr Nor Laegeforen",
    authors=by("Ellingsen AE", "Wilhelmsen I"),
    volume="122", issue="8", pages="785-7", languages=("nor",),
)  # fmt: skip
SUPPLEMENT = made(
    "Tolerability and safety of frovatriptan.", "Headache",
    authors=by("Geraud G"), volume="42 Suppl 2", pages="S93-9",
)  # fmt: skip
IN_ISSUE = made(
    "Integrating clinical trial data into clinical practice.", "Neurology",
    authors=by("Glauser TA"), volume="58", issue="12 Suppl 7", pages="S6-12",
)  # fmt: skip
NO_VOLUME = made(
    "Outreach: bringing HIV-positive individuals into care.", "HRSA Careaction",
    month=6, pages="1-6",
)  # fmt: skip
ROMAN = made(
    "The politics of ethical consensus finding.", "Bioethics",
    authors=by("Chadwick R", "Schuklenk U"), volume="16", issue="2", pages="iii-v",
)  # fmt: skip
JUNIOR = made(
    "Is it so?", "J. Clin. Invest.",
    authors=(Author("King", "Martin Luther Jr", "ML Jr"), Author("Müller", "Wei-Min", "WM")),
    volume="1", pages="1-10", doi="10.1172/JCI1", pmcid="PMC7",
)  # fmt: skip

VANCOUVER = {
    "a journal article": (
        HIV,
        "Halpern SD, Ubel PA, Caplan AL. Solid-organ transplantation in HIV-infected patients. "
        "N Engl J Med. 2002 Jul;347(4):284-7.",
    ),
    "more than six authors": (
        CORTICAL,
        "Rose ME, Huerbin MB, Melick J, Marion DW, Palmer AM, Schiding JK, et al. Regulation of "
        "interstitial excitatory amino acid concentrations after cortical contusion injury. "
        "Brain Res. 2002;935(1-2):40-6.",
    ),
    "an organisation": (
        GROUP,
        "Diabetes Prevention Program Research Group. Hypertension, insulin, and proinsulin in "
        "participants with impaired glucose tolerance. Hypertension. 2002;40(5):679-86.",
    ),
    "people and an organisation": (
        BOTH,
        "Vallancien G, Emberton M, Harving N, van Moorselaar RJ; Alf-One Study Group. Sexual "
        "dysfunction in 1,274 European men suffering from lower urinary tract symptoms. J Urol. "
        "2003;169(6):2257-61.",
    ),
    "no author": (
        NOBODY,
        "21st century heart solution may have a sting in the tail. BMJ. 2002;325(7357):184.",
    ),
    "a volume with supplement": (
        SUPPLEMENT,
        "Geraud G. Tolerability and safety of frovatriptan. Headache. 2002;42 Suppl 2:S93-9.",
    ),
    "an issue with supplement": (
        IN_ISSUE,
        "Glauser TA. Integrating clinical trial data into clinical practice. Neurology. "
        "2002;58(12 Suppl 7):S6-12.",
    ),
    "neither volume nor issue": (
        NO_VOLUME,
        "Outreach: bringing HIV-positive individuals into care. HRSA Careaction. 2002 Jun:1-6.",
    ),
    "Roman numerals": (
        ROMAN,
        "Chadwick R, Schuklenk U. The politics of ethical consensus finding. Bioethics. "
        "2002;16(2):iii-v.",
    ),
}


def text_of(citation: Citation, style: StyleName) -> str:
    return style_references([citation], style)[0].text


def test_vancouver_is_as_nlm_prints_it(subtests: pytest.Subtests) -> None:
    for citation, expected in VANCOUVER.values():
        with subtests.test(citation=citation, expected=expected):
            assert text_of(citation, "vancouver") == f"{expected} PubMed PMID: 1."


def test_vancouver_names_a_language_other_than_english() -> None:
    assert text_of(NORWEGIAN, "vancouver").endswith("785-7. PubMed PMID: 1. Norwegian.")


OTHERS: dict[str, tuple[StyleName, Citation, str]] = {
    "APA": (
        "apa",
        HIV,
        "Halpern, S. D., Ubel, P. A., & Caplan, A. L. (2002). Solid-organ transplantation in "
        "HIV-infected patients. The New England Journal of Medicine, 347(4), 284–287.",  # noqa: RUF001
    ),
    "APA without authors": (
        "apa",
        NOBODY,
        "21st century heart solution may have a sting in the tail. (2002). BMJ, 325(7357), 184.",
    ),
    "APA, a supplement": (
        "apa",
        SUPPLEMENT,
        "Geraud, G. (2002). Tolerability and safety of frovatriptan. Headache, 42(Suppl. 2), "
        "S93–S99.",  # noqa: RUF001
    ),
    "APA, Jr and a hyphen": (
        "apa",
        JUNIOR,
        "King, M. L., Jr., & Müller, W.-M. (2002). Is it so? J. Clin. Invest., 1, 1–10. "  # noqa: RUF001
        "https://doi.org/10.1172/JCI1",
    ),
    "AMA": (
        "ama",
        HIV,
        "Halpern SD, Ubel PA, Caplan AL. Solid-organ transplantation in HIV-infected patients. "
        "N Engl J Med. 2002;347(4):284-287.",
    ),
    "AMA, people and a group": (
        "ama",
        BOTH,
        "Vallancien G, Emberton M, Harving N, van Moorselaar RJ; Alf-One Study Group. Sexual "
        "dysfunction in 1,274 European men suffering from lower urinary tract symptoms. J Urol. "
        "2003;169(6):2257-2261.",
    ),
    "AMA without authors": (
        "ama",
        NOBODY,
        "21st century heart solution may have a sting in the tail. BMJ. 2002;325(7357):184.",
    ),
    "AMA, a supplement": (
        "ama",
        SUPPLEMENT,
        "Geraud G. Tolerability and safety of frovatriptan. Headache. 2002;42(suppl 2):S93-S99.",
    ),
    "Vancouver, DOI, PMCID, Jr and a question": (
        "vancouver",
        JUNIOR,
        "King ML Jr, Müller WM. Is it so? J Clin Invest. 2002;1:1-10. doi: 10.1172/JCI1. "
        "PubMed PMID: 1; PubMed Central PMCID: PMC7.",
    ),
}


def test_other_styles_keep_to_their_rules(subtests: pytest.Subtests) -> None:
    for style, citation, expected in OTHERS.values():
        with subtests.test(style=style, citation=citation):
            assert text_of(citation, style) == expected


def test_a_retracted_article_is_marked_in_bold_with_its_notice(subtests: pytest.Subtests) -> None:
    for style in STYLE_NAMES:
        with subtests.test(style=style):
            notice = Link("RetractionIn", 9, "J Urol. 2003;1:2")
            (reference,) = style_references([made("Safety.", "J Urol", links=(notice,))], style)
            assert reference.text.endswith(
                "[Retracted article; Retraction in: J Urol. 2003;1:2. PMID: 9]"
            )
            assert reference.runs[-1].bold
            assert reference.retracted


def test_html_escapes_what_a_title_holds_and_sets_the_journal_in_italics() -> None:
    (reference,) = style_references([made("A <b>& B</b>.", "BMJ")], "apa")
    assert reference.html == "A &lt;b&gt;&amp; B&lt;/b&gt;. (2002). <i>BMJ</i>."


def test_private_characters_of_a_title_cannot_act_as_our_marks() -> None:
    text = text_of(made("A\ue002\ue000B\ue004.", "BMJ"), "apa")
    assert text == "AB. (2002). BMJ."


@pytest.mark.slow
def test_whatever_a_record_holds_a_reference_comes_of_it(subtests: pytest.Subtests) -> None:
    for style in STYLE_NAMES:
        with subtests.test(style=style):
            citations = [*generated_citations(60), Citation(pmid=5)]
            references = style_references(citations, style)
            assert [reference.pmid for reference in references] == [c.pmid for c in citations]
            assert all(reference.text.strip() for reference in references)


@pytest.mark.slow
def test_a_hundred_references_take_about_a_second_of_one_core(subtests: pytest.Subtests) -> None:
    for style in STYLE_NAMES:
        with subtests.test(style=style):
            style_references([HIV], style)
            citations = [
                made(f"Title {n}", "BMJ", pmid=100 + n, authors=BOTH.authors) for n in range(100)
            ]
            begun = time.process_time()
            style_references(citations, style)
            # 0.2 to 0.6 s on an idle core, several times that on a crowded machine.
            assert time.process_time() - begun < 5


@pytest.mark.slow
def test_threads_may_style_at_once() -> None:
    citations = generated_citations(30)
    alone = [style_references(citations, style) for style in STYLE_NAMES]
    style_references.__globals__["_reference"].cache_clear()
    found: dict[StyleName, list[Any]] = {}
    threads = [
        threading.Thread(target=lambda s=style: found.update({s: style_references(citations, s)}))
        for style in STYLE_NAMES
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[style] for style in STYLE_NAMES] == alone


def test_each_vendored_style_keeps_its_licence() -> None:
    files = sorted(Path(STYLES).glob("*.csl"))
    assert len(files) == 3
    for file in files:
        assert "by-sa/3.0" in file.read_text(encoding="utf-8")
    assert "ShareAlike 3.0" in (STYLES / "README.md").read_text(encoding="utf-8")
