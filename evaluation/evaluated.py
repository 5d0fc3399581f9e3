"""The scored run, as input for the terminal output, the JSON and the report page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cluster.errors import InputError
from evaluation.bootstrap import RESAMPLES, Interval, differences, intervals, verdict
from evaluation.report.report import Case, Comparison, Group, Report
from evaluation.scores import Scores

WORST = 30


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A scored run.

    `groups` are the questions of each type; `cases` returns the questions to show, given their
    scores. The first of `ranking_scores`, columns of `scores`, that the run has selects its worst
    questions.
    """

    scores: Scores
    ranking_scores: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    cases: Callable[[Mapping[str, Mapping[str, float]]], Sequence[Case]]
    notes: tuple[str, ...] = ()

    def with_scores(self, more: Scores, *notes: str) -> Evaluated:
        """Return a copy with the measures of `more` added."""
        return replace(self, scores=self.scores.beside(more), notes=(*self.notes, *notes))

    def with_notes(self, *notes: str) -> Evaluated:
        """Return a copy with `notes` appended."""
        return replace(self, notes=(*self.notes, *notes))


def compare(
    one: Evaluated, other: Evaluated, name: str, *, seed: int, resamples: int
) -> Comparison:
    """Return `one` minus `other`, each measure with its interval and verdict.

    Raises InputError if they are runs of different tasks.
    """
    if one.scores.names != other.scores.names:
        raise InputError(f"--against {name}: it has different measures; compare runs of one task")
    found = differences(one.scores, other.scores, seed=seed, resamples=resamples)
    directions = {measure.name: measure.direction for measure in one.scores.measures}
    verdicts = {name: verdict(interval, directions[name]) for name, interval in found.items()}
    return Comparison(name, found, verdicts)


def make_report(
    evaluated: Evaluated,
    run: Path,
    gold: Path,
    found: Mapping[str, Interval],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    against: Comparison | None = None,
) -> Report:
    """Return the content of the report page; `found` holds the intervals over all questions."""
    scores = evaluated.scores
    groups = [Group("all", len(scores.ids), found)]
    if len(evaluated.groups) > 1:
        groups += [
            Group(name, len(ids), intervals(scores.only(ids), seed=seed, resamples=resamples))
            for name, ids in sorted(evaluated.groups.items())
        ]
    by_question = scores.by_question()
    worst: Sequence[str] = ()
    for column in evaluated.ranking_scores:
        ranked = [id_ for id_ in scores.ids if column in by_question[id_]]
        if ranked:
            worst = sorted(ranked, key=lambda id_: by_question[id_][column])[:WORST]
            break
    return Report(
        f"{run.name} against {gold.name}",
        str(run),
        str(gold),
        seed,
        resamples,
        len(scores.ids),
        scores.missing,
        tuple(groups),
        against,
        tuple(evaluated.cases({id_: by_question[id_] for id_ in worst})),
        evaluated.notes,
    )
