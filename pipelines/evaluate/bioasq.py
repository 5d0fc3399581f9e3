"""All of BioASQ task b's automatic measures of a run: per question, then over the set.

A question that the run does not answer is left out of every mean, as in the official
program, and counted in `Scores.missing`: a run that answers only the easy ones would
gain by it, so the count must stand beside the measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.evaluate.read_bioasq import Entry
from pipelines.evaluate.score_question import (
    log_average_precision,
    score_documents,
    score_factoid,
    score_list,
    score_snippets,
)

Values = npt.NDArray[np.float64]

# Columns of a question's row; NaN where the measure does not apply to it.
COLUMNS = (
    "documents precision", "documents recall", "documents F1", "documents AP", "documents log AP",
    "snippets precision", "snippets recall", "snippets F1", "snippets AP", "snippets log AP",
    "right yes", "right no", "wrong",
    "factoid strict accuracy", "factoid lenient accuracy", "factoid MRR",
    "list precision", "list recall", "list F1",
)  # fmt: skip
_AT = {name: place for place, name in enumerate(COLUMNS)}
_RENAMED = {
    "documents AP": "documents MAP",
    "snippets AP": "snippets MAP",
    "documents log AP": "documents GMAP",
    "snippets log AP": "snippets GMAP",
}
MEASURES = (
    *(_RENAMED.get(name, name) for name in COLUMNS[:10]),
    "yesno accuracy", "yesno macro F1", "yesno F1 yes", "yesno F1 no",
    *COLUMNS[13:],
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scores:
    """`rows` is (questions, columns) for the answered questions `ids`, in the gold's order."""

    ids: tuple[str, ...]
    rows: Values
    missing: tuple[str, ...]

    def over(self, counts: Values) -> Values:
        """Each of `MEASURES` over resamples of the questions; NaN where none applies.

        `counts` (resamples, questions) says how often each question was drawn; the result
        is (resamples, measures).
        """
        known = ~np.isnan(self.rows)
        sums = counts @ np.where(known, self.rows, 0.0)
        drawn = counts @ known.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = sums / drawn
            yes, no, wrong = (sums[:, _AT[name]] for name in ("right yes", "right no", "wrong"))
            asked = drawn[:, _AT["wrong"]]
            # A wrong answer is a false one of its own label and a missed one of the other.
            f_yes, f_no = _f1(yes, wrong, asked), _f1(no, wrong, asked)
            yesno = [(yes + no) / asked, (f_yes + f_no) / 2, f_yes, f_no]
        columns = [
            np.exp(means[:, place]) if name.endswith("log AP") else means[:, place]
            for place, name in enumerate(COLUMNS)
        ]
        return np.stack([*columns[:10], *yesno, *columns[13:]], axis=1)

    def values(self) -> dict[str, float]:
        """Each measure over the set itself."""
        found = self.over(np.ones((1, len(self.ids))))[0]
        return dict(zip(MEASURES, found.tolist(), strict=True))

    def only(self, ids: Sequence[str]) -> Scores:
        """The same for some of the answered questions, in the order of `ids`."""
        places = {id_: place for place, id_ in enumerate(self.ids)}
        return Scores(tuple(ids), self.rows[[places[id_] for id_ in ids]], self.missing)


def _f1(right: Values, wrong: Values, asked: Values) -> Values:
    found = np.where(2 * right + wrong > 0, 2 * right / (2 * right + wrong), 0.0)
    return np.where(asked > 0, found, np.nan)


def score_run(gold: Mapping[str, Entry], run: Mapping[str, Entry]) -> Scores:
    """The scores of every gold question that the run answers.

    Where the run has no exact answer at all, their measures do not apply.
    """
    ids = tuple(id_ for id_ in gold if id_ in run)
    rows = np.full((len(ids), len(COLUMNS)), np.nan)
    # A run of documents alone is no run of wrong answers.
    answers = any(entry.exact is not None for entry in run.values())
    for row, id_ in zip(rows, ids, strict=True):
        _score_retrieval(gold[id_], run[id_], row)
        if answers:
            _score_answer(gold[id_], run[id_], row)
    return Scores(ids, rows, tuple(id_ for id_ in gold if id_ not in run))


def _score_retrieval(gold: Entry, said: Entry, row: Values) -> None:
    if gold.documents:
        measures = score_documents(gold.documents, said.documents)
        row[:5] = *measures, log_average_precision(measures[3])
    if gold.snippets:
        measures = score_snippets(gold.snippets, said.snippets)
        row[5:10] = *measures, log_average_precision(measures[3])


def _score_answer(gold: Entry, said: Entry, row: Values) -> None:
    if gold.exact is None:
        return
    if gold.type == "yesno":
        right = said.exact == gold.exact
        is_yes = gold.exact == (("yes",),)
        row[10:13] = right and is_yes, right and not is_yes, not right
    elif gold.type == "factoid":
        row[13:16] = score_factoid(gold.exact, said.exact)
    elif gold.type == "list":
        row[16:19] = score_list(gold.exact, said.exact)
