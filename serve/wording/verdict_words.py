"""Describe a verdict in plain words, for all clients with text output."""

from __future__ import annotations

from textwrap import shorten

from cluster.answers import NOT_ENOUGH, Answer, Evidence, RankedCitation
from cluster.records import NO_TITLE
from cluster.study_design.design_classifier import design_words

NO_ANSWER = "CiteRay could not decide this from the articles that it found."
NOT_GIVEN = "CiteRay could not decide this from the given passages."
CLOSEST = "Closest evidence:"
DISAGREE = "Sources disagree."
NEAREST = "Nearest citations:"
UNSUPPORTED = "no evidence supports this"
MAX_NEAREST = 5
# Passages quoted for each side where sources disagree.
MAX_QUOTED = 2
QUOTE_CHARACTERS = 400
# Characters of the passage shown instead of a missing title; as in http/page/references.js.
TITLE_CHARACTERS = 140


def verdict_words(answer: Answer) -> str:
    """Return one or two sentences that explain the verdict; "" for the verdict "answered"."""
    if answer.verdict == NOT_ENOUGH:
        if answer.filtered_out:
            return answer.filtered_out
        return NOT_GIVEN if answer.question.given else NO_ANSWER
    if answer.verdict != "mixed":
        return ""
    leaning = f" The evidence leans to {answer.exact}." if isinstance(answer.exact, str) else ""
    return DISAGREE + leaning


def closest_words(answer: Answer) -> list[str]:
    """Return the sentences closest to an answer, with their PMIDs, if no answer is stated."""
    return [
        f'"{shortened(sentence.text)}" [{", ".join(map(str, sentence.pmids))}]'
        for sentence in answer.closest
    ]


def nearest_words(answer: Answer) -> list[str]:
    """Return the first citations, one per line, if the evidence is not enough."""
    if answer.verdict != NOT_ENOUGH:
        return []
    passages = {item.passage.pmid: item.passage.text for item in reversed(answer.evidence)}
    return [_cited(c, passages.get(c.pmid, "")) for c in answer.citations[:MAX_NEAREST]]


def side_words(answer: Answer) -> list[str]:
    """Return quotations of both sides, with stance, PMID and design, if sources disagree."""
    if answer.verdict != "mixed":
        return []
    return [
        f'{stance_words(item)}: "{shortened(item.passage.text)}" [{_source(item)}]'
        for stance in ("support", "contradict")
        for item in [i for i in answer.evidence if i.stance == stance][:MAX_QUOTED]
    ]


def stance_words(item: Evidence) -> str:
    """Return the stance and what it refers to, such as "Supports yes"."""
    word = "Supports" if item.stance == "support" else "Contradicts"
    on = item.stance_on
    return f"{word} {on}" if on in ("yes", "no") else f'{word} "{shortened(on)}"' if on else word


def shortened(text: str) -> str:
    """Return `text` on one line, cut at a word boundary if it is long."""
    # Not textwrap.shorten, which is much slower.
    text = " ".join(text.split())
    if len(text) <= QUOTE_CHARACTERS:
        return text
    return f"{text[:QUOTE_CHARACTERS].rsplit(' ', 1)[0]}…"


def _source(item: Evidence) -> str:
    design = design_words(item.design, item.subjects)
    return ", ".join(filter(None, [f"PMID {item.passage.pmid}", design]))


def _cited(citation: RankedCitation, passage: str) -> str:
    known = [str(citation.year or ""), design_words(citation.design, citation.subjects)]
    about = f" ({', '.join(filter(None, known))})" if any(known) else ""
    mark = " RETRACTED" if citation.retracted else ""
    title = " ".join(citation.title.split()) or "no title"
    if passage and citation.title in ("", NO_TITLE):
        title = f'no English title, "{shorten(passage, TITLE_CHARACTERS, placeholder="…")}"'
    return f"PMID {citation.pmid}{about}{mark}: {title}"
