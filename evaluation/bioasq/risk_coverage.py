"""Risk-coverage curves: the error of a run that answers only its most confident questions.

The questions of a type are sorted by confidence, highest first. For each confidence as a threshold,
coverage is the share of questions at or above it, and risk is their mean loss. The loss of a yes/no
question is 1 if its answer is wrong, of a factoid 1 if none of its names is right (1 minus lenient
accuracy), and of a list 1 minus F1. Questions with equal confidence are answered together.

- AURC: the area under the curve, which is the mean risk over the questions' thresholds.
- risk at 30, 50, 70 and 90%: the risk at the smallest coverage that is at least this share.
- risk and coverage of the answered: for the questions whose verdict in the run is `answered`.

Sources: Geifman and El-Yaniv, "Selective Classification for Deep Neural Networks" (NeurIPS 2017);
for AURC Geifman, Uziel and El-Yaniv, "Bias-Reduced Uncertainty Estimation for Deep Neural
Classifiers" (ICLR 2019). Each resample sorts its questions again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evaluation.bioasq.read_bioasq import Entry
from evaluation.scores import Drawn, Measure, Scores, Values, mean, tabulate

KINDS = ("yesno", "factoid", "list")
PERCENTS = (30, 50, 70, 90)
# Rows of the summary: label -> name of the measure, in which {} is the type of question.
ROWS = {
    "AURC": "risk {} AURC",
    **{f"risk at {percent}% coverage": f"risk {{}} at {percent}%" for percent in PERCENTS},
    "risk of the answered": "risk {} answered",
    "coverage of the answered": "coverage {} answered",
}
NAMES = frozenset(name.format(kind) for name in ROWS.values() for kind in KINDS)
_COLUMNS = ("loss {}", "confidence {}", "stated {}", "loss stated {}")
COLUMNS = tuple(column.format(kind) for kind in KINDS for column in _COLUMNS)


def _curve(drawn: Drawn, kind: str) -> tuple[Values, Values]:
    """Return (questions at or above each threshold, their summed loss).

    Both arrays are (resamples, thresholds).
    """
    return drawn.cumulate(f"loss {kind}", f"confidence {kind}")


def _area(kind: str) -> Callable[[Drawn], Values]:
    def of(drawn: Drawn) -> Values:
        answered, lost = _curve(drawn, kind)
        # A threshold without drawn questions at or above it has no risk and no weight.
        risk = np.where(answered > 0, lost / answered, 0.0)
        at_threshold = np.diff(answered, axis=1, prepend=0.0)
        area: Values = (at_threshold * risk).sum(axis=1) / at_threshold.sum(axis=1)
        return area

    return of


def _risk_at(kind: str, percent: int) -> Callable[[Drawn], Values]:
    def of(drawn: Drawn) -> Values:
        answered, lost = _curve(drawn, kind)
        if not answered.shape[1]:
            return np.full(len(answered), np.nan)
        enough = 100 * answered >= percent * answered[:, -1:]
        first = (np.arange(len(answered)), enough.argmax(axis=1))
        risk: Values = lost[first] / answered[first]
        return risk

    return of


def _measures(kind: str) -> tuple[Measure, ...]:
    return (
        Measure(f"risk {kind} AURC", _area(kind), -1),
        *(Measure(f"risk {kind} at {p}%", _risk_at(kind, p), -1) for p in PERCENTS),
        mean(f"risk {kind} answered", f"loss stated {kind}", -1),
        mean(f"coverage {kind} answered", f"stated {kind}", 0),
    )


MEASURES = tuple(measure for kind in KINDS for measure in _measures(kind))


def score_risk(run: Mapping[str, Entry], scores: Scores) -> Scores:
    """Return the risk-coverage measures; `scores` are those of `score_run` for the same run."""
    found = {id_: _one(run[id_], values) for id_, values in scores.by_question().items()}
    return tabulate(found, COLUMNS, MEASURES, scores.missing)


def _one(said: Entry, values: Mapping[str, float]) -> dict[str, float]:
    """Return the columns of a question; {} if it has no exact answer to score."""
    losses = {
        "yesno": values.get("wrong"),
        "factoid": _less(values.get("factoid lenient accuracy")),
        "list": _less(values.get("list F1")),
    }
    found = {}
    for kind, loss in losses.items():
        if loss is None:
            continue
        found[f"loss {kind}"] = loss
        if said.confidence is not None:
            found[f"confidence {kind}"] = said.confidence
        if said.verdict:
            found[f"stated {kind}"] = float(said.verdict == "answered")
        if said.verdict == "answered":
            found[f"loss stated {kind}"] = loss
    return found


def _less(score: float | None) -> float | None:
    return None if score is None else 1 - score
