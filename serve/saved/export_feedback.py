"""Export feedback as a BioASQ gold file for `citeray evaluate` and `citeray remember`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cluster.answers import Answer, ExactAnswer, supported
from serve.formats.bioasq import as_snippet, document_url
from serve.saved.compare_answers import ideal_words, read_answer
from serve.saved.feedback import Feedback
from serve.saved.opinion import Opinion

Row = dict[str, Any]


def gold_rows(feedback: Iterable[Feedback]) -> list[Row]:
    """Return a question for each approved or corrected answer, using its newest feedback.

    `feedback` must be ordered from oldest to newest. A question has the id of its answer. Feedback
    is left out if a reviewer rejected it, if it rates an answer as wrong without a correction, or
    if it approves an answer that states nothing.
    """
    rows: dict[str, Row] = {}
    for item in feedback:
        row = None if item.review and item.review.state == "rejected" else _gold(item)
        if row is not None:
            # Re-insert at the end so that rows are ordered by feedback time.
            rows.pop(item.answer_id, None)
            rows[item.answer_id] = row
    return list(rows.values())


def _gold(item: Feedback) -> Row | None:
    opinion, answer = item.opinion, read_answer(item.answer)
    kind = "summary" if answer.question.type == "unknown" else answer.question.type
    corrected = bool(opinion.ideal or opinion.exact)
    if opinion.rating == "down" and not corrected:
        return None
    ideal = opinion.ideal or _kept_ideal(answer, opinion)
    exact = opinion.exact or _kept_exact(answer, opinion)
    if not ideal and not exact:
        return None
    pmids = opinion.pmids or _cited(answer)
    row: Row = {
        "id": item.answer_id,
        "type": kind,
        "body": answer.question.body,
        "documents": [document_url(pmid) for pmid in pmids],
        "snippets": [
            as_snippet(evidence.passage)
            for evidence in answer.evidence
            if evidence.passage.pmid in pmids
        ],
        "ideal_answer": [ideal] if ideal else [],
    }
    if kind != "summary" and exact:
        row["exact_answer"] = exact
    return row


def _kept_ideal(answer: Answer, opinion: Opinion) -> str:
    """Return the original text if the answer was approved, or else ""."""
    return ideal_words(supported(answer.ideal)) if opinion.rating == "up" else ""


def _kept_exact(answer: Answer, opinion: Opinion) -> ExactAnswer:
    """Return the original exact answer if the answer was approved, or else None."""
    return answer.exact if opinion.rating == "up" else None


def _cited(answer: Answer) -> tuple[int, ...]:
    pmids = (pmid for sentence in supported(answer.ideal) for pmid in sentence.pmids)
    return tuple(dict.fromkeys(pmids))
