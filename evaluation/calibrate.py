"""Collect outcomes of held-out questions, and fit the probability that an answer is right.

The model is a logistic regression over a few features of each answer. Thresholds are chosen from
cross-validated predictions, so that no question is predicted by a model fitted to it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.storage.whole_files import write_atomically

FEATURES: Mapping[str, tuple[str, ...]] = {
    "yesno": ("share", "said", "relevance", "salience"),
    "factoid": ("name", "margin", "mean_name", "relevance"),
    "list": ("name", "margin", "mean_name", "relevance"),
    "summary": ("relevance", "salience", "cosine"),
}
FOLDS = 10
# Maximum share of the answerable questions that may be classified as unrelated to the collection.
MISSED = 0.01
# Minimum number of outcomes per question type.
FEWEST = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer to a held-out question.

    `wrong` is its loss: 0 for a right answer, 1 for a wrong one, and for a list the share of its
    names that are wrong. `source` names the data set of the question. `gold` is the right answer to
    a yes/no question, "" if it is neither yes nor no.
    """

    kind: str
    features: Mapping[str, float]
    wrong: float
    source: str = ""
    gold: str = ""


def read_outcomes(paths: Sequence[Path]) -> list[Outcome]:
    """Read outcomes from JSON lines; raises InputError for an invalid file or row."""
    return [outcome for path in paths for outcome in _read_outcomes(path)]


def _read_outcomes(path: Path) -> Iterator[Outcome]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); name a file of outcomes") from error
    for number, line in enumerate(lines, start=1):
        try:
            yield Outcome(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{path}, line {number}: not an outcome ({error}); it needs `kind`, `features` and "
                "`wrong`"
            ) from error


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes as JSON lines."""
    lines = (json.dumps(asdict(outcome)) for outcome in outcomes)
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


def fit_calibration(
    outcomes: Sequence[Outcome], seed: int = 0, no_weight: float = 1.0
) -> dict[str, Any]:
    """Return the calibration of each type of question, `related` and `no_weight`.

    `no_weight` is the factor that was used when the questions were answered. Raises InputError for
    a type with too few outcomes, or with only right or only wrong ones.
    """
    types = {}
    for kind, features in FEATURES.items():
        held = [outcome for outcome in outcomes if outcome.kind == kind]
        labels = {outcome.wrong >= 0.5 for outcome in held}
        if len(held) < FEWEST or len(labels) < 2:
            raise InputError(
                f"{len(held)} outcomes of {kind} questions, of {len(labels)} kinds: a calibration "
                f"needs at least {FEWEST} questions of each type, right and wrong ones"
            )
        types[kind] = _fit(held, features, seed)
    related, no_weight = related_level(outcomes), no_weight * fit_no_weight(outcomes)
    return {"types": types, "related": related, "no_weight": round(no_weight, 4)}


def fit_no_weight(outcomes: Iterable[Outcome]) -> float:
    """Return the factor for the weight of "no" at which yes and no are equally probable.

    A logistic regression predicts the right answer from the logarithm of the ratio of both weights
    (`lean`), with the same weight for each source of questions; the factor is the ratio at a
    probability of one half. It is 1 if there are fewer than FEWEST questions of either answer, or
    if the ratio does not tell them apart.
    """
    from sklearn.linear_model import LogisticRegression

    held = [o for o in outcomes if o.kind == "yesno" and o.gold in ("yes", "no")]
    is_yes = np.array([o.gold == "yes" for o in held], dtype=bool)
    if min(is_yes.sum(), (~is_yes).sum()) < FEWEST:
        return 1.0
    counts = Counter(o.source for o in held)
    weights = [len(held) / len(counts) / counts[o.source] for o in held]
    model = LogisticRegression(C=10.0)
    model.fit(np.array([[o.features["lean"]] for o in held]), is_yes, sample_weight=weights)
    slope, bias = float(model.coef_[0][0]), float(model.intercept_[0])
    return math.exp(-bias / slope) if slope > 0 else 1.0


def related_level(outcomes: Iterable[Outcome]) -> float:
    """Return the relevance that the best article of a question has if the collection answers it.

    In each source of questions, at most the share MISSED of the right answers is below it, counting
    one more than was observed (conformal prediction). Sources with too few right answers count only
    if none has enough; then all are taken as one, and the level is 0 if they are too few together.
    """
    right = [o for o in outcomes if o.wrong < 0.5]
    sources = {o.source for o in right}
    levels = [_level([o for o in right if o.source == source]) for source in sources]
    return min([level for level in levels if level] or [_level(right)])


def _level(right: Sequence[Outcome]) -> float:
    rank = int(MISSED * (len(right) + 1))
    if not rank:
        return 0.0
    return round(1 / (1 + math.exp(-sorted(o.features["relevance"] for o in right)[rank - 1])), 4)


def _fit(outcomes: Sequence[Outcome], features: Sequence[str], seed: int) -> dict[str, Any]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    try:
        rows = np.array([[o.features[name] for name in features] for o in outcomes])
    except KeyError as error:
        raise InputError(
            f"an outcome has no feature {error}: it is from another version; ask the questions "
            "again"
        ) from error
    wrong = np.array([o.wrong for o in outcomes])
    right = wrong < 0.5
    model = LogisticRegression(C=1.0)
    smaller = int(min(right.sum(), (~right).sum()))
    folds = StratifiedKFold(max(2, min(FOLDS, smaller)), shuffle=True, random_state=seed)
    predicted: NDArray[np.float64] = cross_val_predict(
        model, rows, right, cv=folds, method="predict_proba"
    )[:, 1]
    model.fit(rows, right)
    weights = [float(model.intercept_[0]), *map(float, model.coef_[0])]
    points = sorted(zip(predicted.tolist(), wrong.tolist(), strict=True), reverse=True)
    return {
        "features": list(features),
        "weights": [round(weight, 4) for weight in weights],
        "points": [[round(p, 4), round(w, 4)] for p, w in points],
    }


# Returns the reply of POST /v1/answer to a request with `guess`.
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
TYPES = ("yesno", "factoid", "list", "summary")


def collect_outcomes(
    paths: Sequence[Path], ask: Ask, system: str | None, *, unanswerable: bool = False
) -> Iterator[Outcome]:
    """Ask the questions of BioASQ files and score each answer; skip questions without gold.

    A factoid answer is right if its first name is, a summary if it cites a gold document. With
    `unanswerable`, the index has no answer to the questions, so that every answer is wrong and no
    gold is needed. Raises InputError for a row without `body` or `type`.
    """
    for path in paths:
        for position, row in enumerate(read_rows(path)):
            if row.get("type") not in TYPES or "body" not in row:
                raise InputError(f"{path}: question {position}: needs `body` and a `type`")
            request = {"question": row["body"], "type": row["type"], "guess": True, "k": 10}
            reply = ask({**request, "system": system} if system else request)
            wrong = 1.0 if unanswerable else score_answer(row, reply)
            if wrong is not None and reply["signals"]:
                gold = str(row.get("exact_answer")).strip().lower()
                side = gold if gold in ("yes", "no") and not unanswerable else ""
                yield Outcome(row["type"], reply["signals"], wrong, path.name, side)


def score_answer(gold: Mapping[str, Any], reply: Mapping[str, Any]) -> float | None:
    """Return the loss of an answer, 0 to 1; None without a gold answer.

    If the gold answer is "maybe", neither yes nor no is right.
    """
    said = reply["guess"] or reply
    if gold["type"] == "summary":
        documents = {str(url).rsplit("/", 1)[-1] for url in gold.get("documents", ())}
        cited = {str(pmid) for sentence in said["ideal"] for pmid in sentence["pmids"]}
        return float(not documents & cited) if documents else None
    exact = gold.get("exact_answer")
    if not exact:
        return None
    if gold["type"] == "yesno":
        return float(said["exact"] != str(exact).strip().lower())
    wanted = {_plain(n) for group in exact for n in ([group] if isinstance(group, str) else group)}
    names = said["exact"] or []
    right = [any(_plain(name) in wanted for name in group) for group in names]
    if not right:
        return 1.0
    return float(not right[0]) if gold["type"] == "factoid" else 1 - sum(right) / len(right)


def _plain(name: str) -> str:
    return " ".join(str(name).casefold().split())
