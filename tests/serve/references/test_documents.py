"""Answers as documents, read with independent parsers."""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import docx
import pypdf
import pytest

from cluster.answers import Answer, Evidence, Question, RankedCitation, Sentence, TracedSource
from cluster.appraisal import Agreement
from cluster.errors import InputError
from cluster.records import Author, Citation, Link, Passage
from serve.pipeline.appraise_answer import list_sides
from serve.references.documents.number_answer import DISCLAIMER, cited_pmids
from serve.references.documents.number_run import number_run
from serve.references.documents.write_document import FORMS, FormName, write_document
from tests.serve.answering import answer as bare_answer

pytestmark = pytest.mark.slow

DAY = date(2026, 11, 26)
CITATIONS = [
    Citation(
        pmid=n, title=f"Title {n}.", authors=(Author("Doe", "Jo", "J"),), journal="BMJ",
        journal_abbreviation="BMJ", year=2000 + n, doi=f"10.1/{n}",
    )
    for n in range(1, 6)
]  # fmt: skip
ANSWER = replace(
    bare_answer("Does *metformin* activate <AMPK>?"),
    citations=(RankedCitation(5, 1.0, title="Title 5."),),
    degraded=("llm: not configured",),
    index_version="v000007",
    last_source="pubmed26n0010.xml.gz",
    confidence=0.8,
    exact="yes",
    ideal=(
        Sentence("Metformin activates β-AMPK.", (3, 1), 0.9),
        Sentence("It is [not](http://x) disputed.", (1, 4), 0.9, contradicted=(2,)),
    ),
)


def _texts(part: Any) -> Iterator[str]:
    """Yield the texts of JSON in order; a reference in one piece, as it is printed."""
    if isinstance(part, dict) and "runs" in part:
        yield f"[{part['number']}] {''.join(run['text'] for run in part['runs'])}"
    elif isinstance(part, dict | list):
        for child in part.values() if isinstance(part, dict) else part:
            yield from _texts(child)
    else:
        yield str(part)


def text_of(form: FormName, content: bytes) -> str:
    """Return the text of the document, with single spaces."""
    if form == "markdown":
        text = re.sub(r"\\([^\w\s])", r"\1", content.decode())
    elif form in ("text", "json"):
        text = content.decode() if form == "text" else "\n".join(_texts(json.loads(content)))
    elif form == "docx":
        text = "\n".join(p.text for p in docx.Document(io.BytesIO(content)).paragraphs)
    else:
        pages = pypdf.PdfReader(io.BytesIO(content)).pages
        text = "\n".join(page.extract_text() for page in pages)
    return " ".join(text.split())


def write(form: FormName, answer: Answer = ANSWER, citations: Any = CITATIONS) -> str:
    return text_of(form, write_document(answer, citations, form, "vancouver", DAY))


def test_document_has_every_part_and_numbers_references_by_first_citation(
    subtests: pytest.Subtests,
) -> None:
    for form in FORMS:
        with subtests.test(form=form):
            text = write(form)
            said = (
                "Does *metformin* activate <AMPK>?",
                "Answered. Confidence 0.80 of 1.",
                "Yes",
                "Metformin activates β-AMPK. [1, 2] It is [not](http://x) disputed. "
                "[2, 3; contradicted by 4]",
                "[1] Doe J. Title 3. BMJ. 2003. doi: 10.1/3. PubMed PMID: 3.",
                "[2] Doe J. Title 1.",
                "[3] Doe J. Title 4.",
                "[4] Doe J. Title 2.",
                "This answer may be incomplete: llm: not configured.",
                "Index v000007, PubMed files up to pubmed26n0010.xml.gz.",
                "2026-11-26",
                DISCLAIMER,
            )
            places = [text.find(part) for part in said]
            assert -1 not in places, said[places.index(-1)]
            assert places == sorted(places)
            assert "Title 5" not in text


def test_document_shows_verdict_sides_marks_and_missing_records(subtests: pytest.Subtests) -> None:
    silent = replace(ANSWER, verdict="not_enough_evidence", exact=None, ideal=(), origin="none")
    passage = Passage(5, "abstract", 0, 5, "It does not.")
    mixed = replace(
        ANSWER,
        verdict="mixed",
        agreement=Agreement(2, 1, 0.5, 0.5),
        sides=list_sides([Evidence(passage, stance="contradict")], ()),
        ideal=(Sentence("Perhaps.", (), 0.0, unsupported=True),),
    )
    assert cited_pmids(mixed) == (5,)
    notice = Link("RetractionIn", 9, "BMJ. 2004;1:2")
    held = [replace(CITATIONS[2], links=(notice,)), *CITATIONS[3:]]
    for form in FORMS:
        with subtests.test(form=form):
            text = write(form, silent)
            assert "CiteRay could not decide this from the articles that it found." in text
            assert "Nearest citations [1] Doe J. Title 5." in text.replace("## ", "")
            assert "Quoted from" not in text
            quoted = "Quoted from the abstracts. Answered with CiteRay on 2026-11-26."
            assert quoted in write(form, replace(ANSWER, origin="extractive"))
            text = write(form, mixed)
            assert "Sources disagree: 1 of 2 studies says yes." in text
            assert "Perhaps. [no evidence supports this]" in text
            assert 'Contradicts yes: "It does not." [1]' in text
            text = write(form, citations=held)
            assert "[Retracted article; Retraction in: BMJ. 2004;1:2. PMID: 9]" in text
            assert "[2] PMID 1: not in this index." in text


def test_quoted_sides_have_reference_numbers_if_they_are_listed() -> None:
    """A client may send an answer whose list of sources does not match its verdict."""
    passage = Passage(5, "abstract", 0, 5, "It does not.")
    against = Evidence(passage, stance="contradict", design="cohort")
    both = replace(ANSWER, verdict="mixed", sides=list_sides([against], ()), ideal=())
    content = write_document(both, CITATIONS, "text").decode()
    assert 'Contradicts yes: "It does not." [1, cohort study]' in content
    one = replace(both, sides=list_sides([replace(against, stance="support")], ()))
    content = write_document(one, CITATIONS, "text").decode()
    assert 'Supports yes: "It does not." [PMID 5, cohort study]' in content


def test_references_are_ordered_by_design_and_quote_their_source() -> None:
    text = "We studied mice. Metformin activates β-AMPK. Nothing else was seen."
    evidence = Evidence(Passage(1, "abstract", 0, len(text), text), design="meta_analysis")
    strong = RankedCitation(4, 1.0, design="randomised_trial")
    answer = replace(ANSWER, evidence=(evidence,), citations=(strong,))
    # PMIDs 3 and 2 are of unknown design.
    assert cited_pmids(answer) == (1, 4, 3, 2)
    content = write_document(answer, CITATIONS, "text", address="http://here/?q=1").decode()
    assert "AMPK. [1, 3]" in content
    assert "[1] Doe J. Title 1. BMJ. 2001. doi: 10.1/1. PubMed PMID: 1. https://pub" in content
    assert "\n    Meta-analysis: “Metformin activates β-AMPK.”\n[2] Doe J. Title 4." in content
    assert "\nAddress: http://here/?q=1\n" in content


def test_references_tell_the_original_study_from_the_review_that_reports_it() -> None:
    primary, secondary = TracedSource("primary", 1, 3), TracedSource("secondary", 4)
    first, second = ANSWER.ideal
    ideal = (replace(first, traced=primary), replace(second, traced=secondary))
    review = RankedCitation(4, 1.0, design="review")
    answer = replace(ANSWER, ideal=ideal, citations=(review,))
    assert cited_pmids(answer) == (4, 3, 1, 2)
    for form in ("text", "markdown", "docx", "pdf"):
        text = text_of(form, write_document(answer, CITATIONS, form)).replace("\\", "")
        assert "Review; secondary source, original study not identified" in text
        assert "Primary study, via [3]" in text
    # An answer that a client sends may name a review that it does not cite.
    odd = replace(ANSWER, ideal=(replace(first, traced=TracedSource("primary", 9, 3)),))
    assert b"Primary study, via PMID 9" in write_document(odd, CITATIONS, "text")


def test_document_of_a_run_states_no_side_if_the_sources_disagree() -> None:
    entry = {"body": "Does it?", "documents": [], "exact_answer": "yes", "ideal_answer": "It may."}
    for verdict, exact in (("answered", ("Yes",)), ("mixed", ())):
        [document] = number_run([entry | {"verdict": verdict}], [], "vancouver", DAY)
        assert (document.exact, document.notes) == (exact, (f"Answered with CiteRay on {DAY}.",))


def test_document_has_links_and_synonyms() -> None:
    file = docx.Document(io.BytesIO(write_document(ANSWER, CITATIONS, "docx")))
    places = {link.address for p in file.paragraphs for link in p.hyperlinks}
    assert {"https://pubmed.ncbi.nlm.nih.gov/3/", "https://doi.org/10.1/3"} <= places
    pdf = pypdf.PdfReader(io.BytesIO(write_document(ANSWER, CITATIONS, "pdf")))
    marks = [mark.get_object() for page in pdf.pages for mark in page.get("/Annots", [])]
    assert "https://doi.org/10.1/3" in {mark["/A"]["/URI"] for mark in marks}
    listed = replace(ANSWER, exact=[["EGFR", "ErbB1"], ["HER2"]])
    document = write_document(listed, CITATIONS, "markdown", "apa", DAY)
    assert b"- EGFR (ErbB1)\n- HER2\n" in document


def test_control_characters_and_missing_glyphs_are_handled(subtests: pytest.Subtests) -> None:
    hostile = replace(
        ANSWER,
        question=Question("q", "a\x00\x0b\x1b[31m\ud800b", "yesno"),
        ideal=(Sentence("x\x00\n\n# y", (3,), 1.0),),
    )
    for form in FORMS:
        with subtests.test(form=form):
            assert "x # y [1]" in write(form, hostile)
    assert "no glyph" not in write("pdf")
    chinese = replace(ANSWER, question=Question("q", "糖尿病?", "yesno"))
    assert "no glyph in this file's font" in write("pdf", chinese)


def test_oversized_answer_is_refused() -> None:
    many = replace(ANSWER, ideal=(Sentence("x", tuple(range(1, 202)), 1.0),))
    with pytest.raises(InputError, match="cites 201 PMIDs; a document lists 200 at most"):
        write_document(many, [], "markdown")
    long = replace(ANSWER, ideal=(Sentence("x" * 100_001, (1,), 1.0),))
    with pytest.raises(InputError, match="characters; a document has 100,000 at most"):
        write_document(long, [], "markdown")
