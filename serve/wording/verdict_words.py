"""Describe a verdict in plain words, for all clients with text output."""

from __future__ import annotations

from textwrap import shorten

from cluster.answers import NOT_ENOUGH, Answer, Evidence, ExactAnswer, RankedCitation
from cluster.appraisal import Agreement, SideSource
from cluster.records import NO_TITLE
from cluster.study_design.design_classifier import design_words
from serve.wording.quote_sentence import shortened

NO_ANSWER = "CiteRay could not decide this from the articles that it found."
UNRELATED = "None of the articles found seems to be about this question."
# Consequence in `degraded` of a failed writer; as in http/page/verdict_view.js.
LOST_ANSWER = "evidence without an answer"
UNFINISHED = (
    "The answer was not finished in time. A longer serve.writer.deadline_s or "
    "serve.request_deadline_s helps."
)
NOT_WRITTEN = "The answer was not written, because the writer failed; see the server's log."
NOT_GIVEN = "CiteRay could not decide this from the given passages."
CLOSEST = "Closest evidence:"
DISAGREE = "Sources disagree"
NEAREST = "Nearest citations:"
UNSUPPORTED = "no evidence supports this"
MAX_NEAREST = 5
# Passages quoted for each side where sources disagree.
MAX_QUOTED = 2
# Characters of the passage shown instead of a missing title; as in http/page/references.js.
TITLE_CHARACTERS = 140


def exact_words(exact: ExactAnswer) -> str:
    """Return yes, no, or the names separated by "; "; "" if there is no exact answer."""
    if isinstance(exact, str):
        return exact
    return "; ".join(" / ".join(names) for names in exact or ())


def verdict_words(answer: Answer) -> str:
    """Return one or two sentences that explain the verdict; "" for the verdict "answered"."""
    if answer.verdict == NOT_ENOUGH:
        if answer.filtered_out:
            return answer.filtered_out
        if answer.unrelated:
            return UNRELATED
        if f"write: late, {LOST_ANSWER}" in answer.degraded:
            return UNFINISHED
        if any(loss.endswith(LOST_ANSWER) for loss in answer.degraded):
            return NOT_WRITTEN
        return NOT_GIVEN if answer.question.given else NO_ANSWER
    if answer.verdict != "mixed":
        return ""
    agreed = agreement_words(answer)
    return f"{DISAGREE}: {agreed}." if agreed else f"{DISAGREE}."


def agreement_words(answer: Answer) -> str:
    """Return how many of the sources that take a side agree: "6 of 8 studies say yes", or ""."""
    agreed = answer.agreement
    if agreed is None:
        return ""
    count, sources = agreed.supporting, agreed.sources
    who = f"all {sources} studies" if count == sources else f"{count} of {sources} studies"
    who = "1 study" if count == sources == 1 else who
    ending = "s" if count == 1 else ""
    if isinstance(answer.exact, str):
        return f"{who} say{ending} {answer.exact}"
    return f"{who} support{ending} this answer"


def weighted_words(agreement: Agreement) -> str:
    """Return how far the sources agree if the stronger study designs count more."""
    share = f"{agreement.weighted:.0%} for this answer"
    return f"weighted by study design (trials count more than case reports): {share}"


def origin_words(answer: Answer) -> str:
    """Return who wrote the text of a stated answer; "" if nothing is stated."""
    if answer.origin == "generated":
        return f"Written by the language model {answer.written_by}".rstrip()
    return "Quoted from the abstracts" if answer.origin == "extractive" else ""


def closest_words(answer: Answer) -> list[str]:
    """Return the sentences closest to an answer, with their PMIDs, if no answer is stated."""
    return [
        f'"{shortened(sentence.text)}" [{", ".join(map(str, sentence.pmids))}]'
        for sentence in answer.closest
    ]


def nearest_words(answer: Answer) -> list[str]:
    """Return the first citations, one per line, if the evidence is not enough for an answer."""
    if answer.verdict != NOT_ENOUGH:
        return []
    passages = {item.passage.pmid: item.passage.text for item in reversed(answer.evidence)}
    return [_cited(c, passages.get(c.pmid, "")) for c in answer.citations[:MAX_NEAREST]]


def quoted_sides(answer: Answer) -> list[tuple[str, SideSource]]:
    """Return sources of both sides with their stance, "Supports yes", if sources disagree."""
    if answer.verdict != "mixed":
        return []
    on = f" {answer.exact}" if isinstance(answer.exact, str) else ""
    sides = {"Supports": answer.sides.supporting, "Contradicts": answer.sides.contradicting}
    return [
        (f"{does}{on}", source)
        for does, sources in sides.items()
        for source in sources[:MAX_QUOTED]
    ]


def quotation(stance: str, source: SideSource, name: str) -> str:
    """Return a quotation of one side; `name` names the source: a PMID or a reference number."""
    design = design_words(source.design, source.subjects)
    named = ", ".join(filter(None, [name, design]))
    return f'{stance}: "{shortened(source.sentence)}" [{named}]'


def side_words(answer: Answer) -> list[str]:
    """Return quotations of both sides, with stance, PMID and design, if sources disagree."""
    return [quotation(said, source, f"PMID {source.pmid}") for said, source in quoted_sides(answer)]


def about_words(item: RankedCitation | Evidence) -> str:
    """Return journal, year and design, such as " (Lancet, 2019, cohort study)"; "" if unknown."""
    known = [item.journal, str(item.year or ""), design_words(item.design, item.subjects)]
    return f" ({', '.join(filter(None, known))})" if any(known) else ""


def _cited(citation: RankedCitation, passage: str) -> str:
    about = about_words(citation)
    mark = " RETRACTED" if citation.retracted else ""
    title = " ".join(citation.title.split()) or "no title"
    if passage and citation.title == NO_TITLE:
        title = f'no English title, "{shorten(passage, TITLE_CHARACTERS, placeholder="…")}"'
    return f"PMID {citation.pmid}{about}{mark}: {title}"
