"""All automatic measures of BioASQ task b for a run: per question, then over the set.

As in the official program, questions that the run does not answer are excluded from every mean;
they are counted in `Scores.missing`. Report this count with the measures, because a run
that answers only easy questions has higher means.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from evaluation.bioasq.read_bioasq import Entry
from evaluation.bioasq.rouge import MEASURES as IDEAL
from evaluation.bioasq.rouge import score_ideal
from evaluation.bioasq.score_question import (
    MAX_ITEMS,
    condense,
    log_average_precision,
    score_documents,
    score_factoid,
    score_list,
    score_snippets,
)
from evaluation.scores import Drawn, Measure, Scores, Values, mean, tabulate


def _retrieval(of: str) -> tuple[tuple[str, ...], tuple[Measure, ...]]:
    """Return the columns and measures of `documents` or `snippets`."""
    precision, recall, f1, ap, log_ap = (
        f"{of} {name}" for name in ("precision", "recall", "F1", "AP", "log AP")
    )
    measures = (
        mean(precision),
        mean(recall),
        mean(f1),
        mean(f"{of} MAP", ap),
        Measure(f"{of} GMAP", lambda drawn: np.exp(drawn.mean(log_ap))),
    )
    return (precision, recall, f1, ap, log_ap), measures


def _f1(right: str) -> Measure:
    """Return the F1 measure of a label.

    A wrong answer is a false positive of its own label and a false negative of the other.
    """

    def of(drawn: Drawn) -> Values:
        hits, wrong = drawn.sum(right), drawn.sum("wrong")
        found = np.where(2 * hits + wrong > 0, 2 * hits / (2 * hits + wrong), 0.0)
        return np.where(drawn.questions("wrong") > 0, found, np.nan)

    return Measure(f"yesno F1 {right.removeprefix('right ')}", of)


def _accuracy(drawn: Drawn) -> Values:
    return (drawn.sum("right yes") + drawn.sum("right no")) / drawn.questions("wrong")


DOCUMENTS, _DOCUMENT_MEASURES = _retrieval("documents")
SNIPPETS, _SNIPPET_MEASURES = _retrieval("snippets")
YESNO = ("right yes", "right no", "wrong")
FACTOID = ("factoid strict accuracy", "factoid lenient accuracy", "factoid MRR")
LIST = ("list precision", "list recall", "list F1")
_F1_YES, _F1_NO = _f1("right yes"), _f1("right no")

EXACT_TEXT = "exact "
"""Name prefix of the measures of exact answers as texts (evaluate_answers.add_texts)."""

POOL = ("documents unjudged rate at 10", "documents condensed AP")

COLUMNS = (*DOCUMENTS, *POOL, *SNIPPETS, *YESNO, *FACTOID, *LIST, *IDEAL)
MEASURES = (
    *_DOCUMENT_MEASURES,
    mean(POOL[0], direction=0),
    mean("documents condensed MAP", POOL[1]),
    *_SNIPPET_MEASURES,
    Measure("yesno accuracy", _accuracy),
    Measure("yesno macro F1", lambda drawn: (_F1_YES.of(drawn) + _F1_NO.of(drawn)) / 2),
    _F1_YES,
    _F1_NO,
    *map(mean, (*FACTOID, *LIST, *IDEAL)),
)


def score_run(
    gold: Mapping[str, Entry],
    run: Mapping[str, Entry],
    judged: Mapping[str, Collection[str]] | None = None,
    depth: int = MAX_ITEMS,
) -> Scores:
    """Return the scores of every gold question that the run answers.

    If the run has no exact answers at all, their measures do not apply; the same holds for ideal
    answers. `depth` is the number of documents and snippets scored per question. `judged`
    (read_judgements.judged_documents) adds the pool measures, which always use the first 10
    documents.
    """
    # A run with only documents must not be scored as wrong answers.
    exact = any(entry.exact is not None for entry in run.values())
    ideal = any(entry.ideal for entry in run.values())
    found = {}
    for id_, wanted in gold.items():
        if id_ not in run:
            continue
        said = run[id_]
        found[id_] = _score_retrieval(wanted, said, depth)
        if judged is not None and wanted.documents:
            unjudged, known = condense(said.documents, judged.get(id_, ()))
            condensed = score_documents(wanted.documents, known)[3]
            found[id_] |= zip(POOL, (unjudged, condensed), strict=True)
        if exact:
            found[id_] |= _score_answer(wanted, said)
        if ideal and wanted.ideal:
            found[id_] |= score_ideal(wanted.ideal, " ".join(said.ideal))
    missing = [id_ for id_ in gold if id_ not in run]
    return tabulate(found, COLUMNS, MEASURES, missing)


def _score_retrieval(gold: Entry, said: Entry, depth: int) -> dict[str, float]:
    found: dict[str, float] = {}
    if gold.documents:
        values = score_documents(gold.documents, said.documents, depth)
        found |= zip(DOCUMENTS, (*values, log_average_precision(values[3])), strict=True)
    if gold.snippets:
        values = score_snippets(gold.snippets, said.snippets, depth)
        found |= zip(SNIPPETS, (*values, log_average_precision(values[3])), strict=True)
    return found


def _score_answer(gold: Entry, said: Entry) -> dict[str, float]:
    if gold.exact is None:
        return {}
    if gold.type == "yesno":
        right = said.exact == gold.exact
        is_yes = gold.exact == (("yes",),)
        return dict(zip(YESNO, (right and is_yes, right and not is_yes, not right), strict=True))
    if gold.type == "factoid":
        return dict(zip(FACTOID, score_factoid(gold.exact, said.exact), strict=True))
    return dict(zip(LIST, score_list(gold.exact, said.exact), strict=True))
