"""Run a paper's systems over questions, and fill its tables with the measured values."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from rich.console import Console

from cluster.answers import Question
from cluster.settings.settings import Settings
from evaluation.ablation.ask_graph import Ask, Plan, open_graph
from evaluation.ablation.judge_runs import judge_runs
from evaluation.ablation.run_plans import Run, complete_runs, open_run, run_key
from evaluation.ablation.tabulate_runs import score_with_cutoffs
from evaluation.answers.find_judge import Judge
from evaluation.bioasq.read_bioasq import Entry
from evaluation.bootstrap import Interval, intervals
from evaluation.reproduce.read_paper import Paper, PaperTable
from evaluation.scores import Scores
from serve.formats.bioasq import MAX_DOCUMENTS
from serve.formats.given_snippets import give_snippets

OpenJudge = Callable[[], AbstractContextManager[Judge]]
# Measures of a whole run, in addition to those of its questions.
CALLS, SEARCH_MS = "model calls", "search ms"


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of one run: `scores` by question, `whole` over all, `types` of its questions.

    `degraded` counts the questions of each degradation.
    """

    scores: Scores
    types: Mapping[str, str] = field(default_factory=dict)
    whole: Mapping[str, float] = field(default_factory=dict)
    degraded: Mapping[str, int] = field(default_factory=dict)

    def measure(self, name: str) -> Interval | None:
        """Return a measure, or None if it does not apply.

        A name that ends in " of TYPE" is measured over the questions of that type.
        """
        if (value := self.whole.get(name)) is not None:
            return Interval(value, math.nan, math.nan)
        base, _, kind = name.partition(" of ")
        scores = self.scores
        if kind:
            scores = scores.only([id_ for id_ in scores.ids if self.types.get(id_) == kind])
        found = intervals(scores).get(base)
        return None if found is None or math.isnan(found.value) else found


@dataclass(frozen=True, slots=True)
class FilledTable:
    """A paper's table, and measured values by row and column; None if a system was not run."""

    paper: PaperTable
    here: tuple[tuple[Interval | None, ...], ...]


def run_paper(
    paper: Paper,
    settings: Settings,
    files: tuple[Path, Path],
    asked: Sequence[Question],
    gold: Mapping[str, Entry],
    output: Path,
    log: Console,
    *,
    judge: OpenJudge | None = None,
    concurrent: int = 1,
) -> dict[str, Measured]:
    """Run and measure each run, by name; replies already stored in `output` are reused.

    `concurrent` questions are asked, and judged, at once. `files` are the question file and the
    gold file. Raises as `complete_runs` and `judge_runs` do.
    """
    plans = plans_of(paper)
    timed = any(SEARCH_MS in table.columns.values() for table in paper.tables)
    runs = [open_run(output, plan, run_key(plan, settings, *files)) for plan in plans]
    searching = [run for run in runs if run.plan.system.name not in paper.given]
    reading = [run for run in runs if run.plan.system.name in paper.given]
    with ExitStack() as opened_once:

        @cache
        def ask() -> Ask:
            graph = open_graph(settings, plans, gold, log, cache_replies=not timed)
            return opened_once.enter_context(graph)

        for group, given in ((searching, False), (reading, True)):
            if group:
                questions = give_snippets(asked, [files[0]]) if given else asked
                complete_runs(
                    group, questions, lambda: nullcontext(ask()), log, concurrent=concurrent
                )
    judged: Mapping[str, Scores] = {}
    if judge is not None:
        with judge() as opened:
            judged = judge_runs(runs, gold, opened, concurrent, log.print)
    return {run.plan.name: _measured(run, gold, paper.depth, judged) for run in runs}


def plans_of(paper: Paper) -> list[Plan]:
    """Return the runs of the paper's tables over BioASQ's questions, in the paper's order."""
    plans = []
    depth = max(MAX_DOCUMENTS, paper.depth)
    for name in paper.systems:
        # An endpoint has its own deadlines and limits, so the graph runs in this process.
        plan = Plan(paper.system(name), depth, paper.answers, own=True)
        plans += [plan, *(replace(plan, evidence=k) for k in paper.evidence.get(name, ()))]
    return plans


def _measured(
    run: Run, gold: Mapping[str, Entry], depth: int, judged: Mapping[str, Scores]
) -> Measured:
    scores = score_with_cutoffs(run, gold, sorted({MAX_DOCUMENTS, depth}))
    if run.plan.name in judged:
        scores = scores.beside(judged[run.plan.name])
    whole = {CALLS: run.model_calls(), SEARCH_MS: statistics.fmean(run.latencies())}
    types = {id_: gold[id_].type for id_ in run.replies}
    return Measured(scores, types, whole, run.degraded())


def fill(tables: Sequence[PaperTable], measured: Mapping[str, Measured]) -> list[FilledTable]:
    """Return the tables with the measured values."""
    return [
        FilledTable(table, tuple(_measure_row(table, row.system, measured) for row in table.rows))
        for table in tables
    ]


def _measure_row(
    table: PaperTable, system: str | None, measured: Mapping[str, Measured]
) -> tuple[Interval | None, ...]:
    run = measured.get(system) if system else None
    names = table.columns.values()
    return tuple(None if run is None else run.measure(name) for name in names)
