"""Results of an ablation as data: measures, differences, cutoffs and losses.

The tables follow paper 002: Tables 2 and 3 (measures, latency and intervals by system) and 6
(sensitivity to k), with BioASQ's gold in place of a judge.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from evaluation.ablation.run_plans import Run
from evaluation.answers.judge_answers import COLUMNS, FAILURES
from evaluation.bioasq.read_bioasq import Entry, read_run
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_question import MAX_ITEMS, precision_recall_f, score_snippets
from evaluation.bootstrap import Interval, differences, intervals, verdict
from evaluation.scores import Scores, mean, tabulate
from serve.formats.bioasq import document_url

RANKING = ("precision", "recall", "MAP", "MRR", "nDCG")
ANSWERS = (
    "yesno accuracy",
    "yesno macro F1",
    "factoid strict accuracy",
    "factoid MRR",
    "list F1",
    "ROUGE-2 F1",
    "ROUGE-SU4 F1",
)
JUDGED = (*COLUMNS, FAILURES)
# Cutoff of the recall of candidates, which needs a run with at least this many citations.
CANDIDATES = 100
HEADLINE = (
    "documents precision",
    "documents recall",
    "documents MAP",
    f"documents MRR@{MAX_ITEMS}",
    f"documents nDCG@{MAX_ITEMS}",
    f"documents recall@{CANDIDATES}",
    "snippets precision",
    "snippets recall",
    "snippets F1",
    "snippets MAP",
    *ANSWERS,
    *JUDGED,
)

Intervals = Mapping[str, Interval]


def verdict_on(measure: str, difference: Interval) -> str:
    """Return `verdict` of a headline measure: fewer judge failures are better."""
    return verdict(difference, -1 if measure == FAILURES else 1)


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system's measures and their differences from the first system ({} for the first).

    Latencies are milliseconds of the search stages of one question; `whole` includes the answer;
    `stages` are medians of each stage over the questions that used it. `degraded` counts questions
    by degradation. `model_calls` is the mean number of language model calls per search.
    """

    name: str
    questions: int
    measures: Intervals
    differences: Intervals
    latency_mean: float
    latency_median: float
    latency_p95: float
    whole_median: float
    whole_p95: float
    stages: Mapping[str, float]
    degraded: Mapping[str, int]
    model_calls: float


@dataclass(frozen=True, slots=True)
class CutoffRow:
    """A system at cutoff `k`; the names of `measures` do not include the cutoff."""

    name: str
    k: int
    measures: Intervals
    latency_mean: float


@dataclass(frozen=True, slots=True)
class LossRow:
    """A measure with and without gold at a stage; the paired difference is the stage's loss."""

    name: str
    oracle: str
    measure: str
    without: float
    with_oracle: float
    lost: Interval


@dataclass(frozen=True, slots=True)
class Ablation:
    """The tables of an ablation, with the index version and the seeds of its intervals."""

    index_version: str
    seeds: tuple[int, ...]
    systems: tuple[SystemRow, ...]
    cutoffs: tuple[CutoffRow, ...]
    losses: tuple[LossRow, ...]


def tabulate_runs(
    runs: Sequence[Run],
    gold: Mapping[str, Entry],
    cutoffs: Sequence[int],
    seeds: Sequence[int],
    judged: Mapping[str, Scores] = MappingProxyType({}),
) -> Ablation:
    """Return the tables of complete runs; systems are compared with the first run's system.

    `judged` holds the judge's scores by plan name.
    """
    deep = {CANDIDATES} if all(run.plan.k >= CANDIDATES for run in runs) else set()
    every = sorted({MAX_ITEMS, *cutoffs} | deep)
    scores = {run.plan.name: score_with_cutoffs(run, gold, every) for run in runs}
    scores |= {name: scores[name].beside(verdicts) for name, verdicts in judged.items()}
    plain = [run for run in runs if run.plan.is_plain]
    first = plain[0].plan.name
    found = {
        name: covering([intervals(table, seed=seed) for seed in seeds])
        for name, table in scores.items()
    }
    compared = {
        run.plan.name: _differences(scores[run.plan.name], scores[first], seeds)
        for run in plain[1:]
    }
    return Ablation(
        runs[0].version,
        tuple(seeds),
        tuple(_system(run, found[run.plan.name], compared.get(run.plan.name, {})) for run in plain),
        tuple(_cutoff(run, runs, found, k) for run in plain for k in cutoffs),
        tuple(
            row
            for run in runs
            if run.plan.oracle
            for row in _losses(run, scores[run.plan.system.name], scores[run.plan.name], seeds)
        ),
    )


def score_with_cutoffs(run: Run, gold: Mapping[str, Entry], cutoffs: Sequence[int]) -> Scores:
    """Return the measures of `citeray evaluate` for a run, and those at each cutoff."""
    asked = {id_: entry for id_, entry in gold.items() if id_ in run.replies}
    said = read_run(run.path, asked)
    names = [f"documents {name}@{k}" for k in cutoffs for name in RANKING]
    names += [f"snippets {name}@{k}" for k in cutoffs for name in ("precision", "recall")]
    found: dict[str, dict[str, float]] = {id_: {} for id_ in asked}
    for id_, wanted in asked.items():
        ranked = [document_url(pmid) for pmid in run.ranked(id_)]
        for k in cutoffs:
            if wanted.documents:
                values = score_ranking(wanted.documents, ranked, k)
                found[id_] |= {f"documents {n}@{k}": values[n] for n in RANKING}
            # A run file holds at most 10 snippets, so larger cutoffs would repeat the values at 10.
            if wanted.snippets and k <= MAX_ITEMS:
                precision, recall, *_ = score_snippets(wanted.snippets, said[id_].snippets[:k])
                found[id_] |= {f"snippets precision@{k}": precision, f"snippets recall@{k}": recall}
    return score_run(asked, said).beside(tabulate(found, names, [mean(name) for name in names]))


def score_ranking(gold: Sequence[str], ranked: Sequence[str], k: int) -> dict[str, float]:
    """Return the measures in RANKING for the first `k` of `ranked` (distinct, best first).

    MAP is average precision over min(k, gold documents), which equals BioASQ's at 10; MRR is the
    reciprocal rank of the first relevant document; nDCG has gains of 0 and 1 and the discount 1 /
    log2(rank + 1) (Jarvelin and Kekalainen 2002). `gold` holds at least one document.
    """
    wanted = set(gold)
    ranks = [rank for rank, document in enumerate(ranked[:k], start=1) if document in wanted]
    best = min(k, len(wanted))
    precision, recall, _ = precision_recall_f(len(ranks), len(ranked[:k]), len(wanted))
    average = sum(hits / rank for hits, rank in enumerate(ranks, start=1)) / best
    gain = sum(1 / math.log2(rank + 1) for rank in ranks)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, best + 1))
    return {
        "precision": precision,
        "recall": recall,
        "MAP": average,
        "MRR": 1 / ranks[0] if ranks else 0.0,
        "nDCG": gain / ideal,
    }


def covering(parts: Sequence[Intervals]) -> dict[str, Interval]:
    """Return for each measure an interval that covers those of all seeds; NaN is left out."""
    return {
        name: Interval(
            interval.value,
            min(part[name].low for part in parts),
            max(part[name].high for part in parts),
        )
        for name, interval in parts[0].items()
        if not math.isnan(interval.value)
    }


def _differences(one: Scores, other: Scores, seeds: Sequence[int]) -> dict[str, Interval]:
    found = covering([differences(one, other, seed=seed) for seed in seeds])
    return _chosen(found)


def _system(run: Run, measures: Intervals, compared: Intervals) -> SystemRow:
    latencies, waits = run.latencies(), run.waits()
    return SystemRow(
        run.plan.name,
        len(run.replies),
        _chosen(measures),
        compared,
        statistics.fmean(latencies),
        statistics.median(latencies),
        float(np.percentile(latencies, 95)),
        statistics.median(waits),
        float(np.percentile(waits, 95)),
        {stage: statistics.median(spent) for stage, spent in run.stages().items()},
        run.degraded(),
        run.model_calls(),
    )


def _chosen(found: Intervals) -> dict[str, Interval]:
    return {name: found[name] for name in HEADLINE if name in found}


def _cutoff(run: Run, runs: Sequence[Run], found: Mapping[str, Intervals], k: int) -> CutoffRow:
    """Return the row of a cutoff, from the run that answered from `k` passages if there is one.

    Otherwise it is computed from the first `k` results of `run`. Measures of answers are included
    only if these were written from `k` passages.
    """
    system = run.plan.system
    for other in runs:
        if other.plan.system == system and other.plan.evidence == k:
            run = other
    known = found[run.plan.name]
    measures = {name.removesuffix(f"@{k}"): known[name] for name in known if name.endswith(f"@{k}")}
    if k == (run.plan.evidence or system.evidence):
        measures |= {name: known[name] for name in (*ANSWERS, *JUDGED) if name in known}
    return CutoffRow(system.name, k, measures, statistics.fmean(run.latencies()))


def _losses(run: Run, without: Scores, with_: Scores, seeds: Sequence[int]) -> list[LossRow]:
    before, after = without.values(), with_.values()
    return [
        LossRow(run.plan.system.name, str(run.plan.oracle), name, before[name], after[name], lost)
        for name, lost in _differences(with_, without, seeds).items()
        # The evidence oracle does not change the documents.
        if run.plan.oracle != "evidence" or not name.startswith("documents")
    ]
