"""`citeray ablate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cluster.cli import Config, Json, Overrides, make_context
from cluster.errors import InputError
from cluster.records import Question
from cluster.settings import load_system
from evaluation.ablation.ask_graph import Plan, open_graph
from evaluation.ablation.oracle import ORACLES, material
from evaluation.ablation.run_plans import complete_runs, digest, open_run, run_key
from evaluation.ablation.tabulate_runs import Ablation, CutoffRow, SystemRow, tabulate_runs
from evaluation.bioasq.read_bioasq import Entry, read_gold
from evaluation.bootstrap import Interval, verdict
from serve.formats.bioasq import MAX_DOCUMENTS, read_questions
from serve.gateway import MAX_CITATIONS

CUTOFFS = (3, 5, 10)
FOLDER = Path(".citeray/ablate")
FILE_WIDTH = 120


Systems = Annotated[list[str], typer.Argument(help="Presets; each is compared with the first.")]
Questions = Annotated[Path, typer.Option(help="Questions in BioASQ's JSON form.")]
Gold = Annotated[Path, typer.Option(help="Their gold file; it may be the same file.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="The folder of the runs; if not given, one for these questions in .citeray/ablate.",
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        help="Of the bootstrap, the only thing drawn by chance; of several, such as 0,1,2, the "
        "intervals cover those of all.",
    ),
]
Cutoffs = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=MAX_CITATIONS,
        help="A cutoff; repeatable; 3, 5 and 10 if not given. Rankings are cut, not run again; "
        "with --answers, each given k is a run whose answers see k passages.",
    ),
]
Answers = Annotated[bool, typer.Option("--answers/--no-answers", help="Answers too; slow.")]
Oracles = Annotated[
    list[str] | None,
    typer.Option(help="retrieve, rerank or evidence: gold at that stage; repeatable."),
]


def ablate(
    systems: Systems,
    questions: Questions,
    gold: Gold,
    output: Output = None,
    seeds: Seeds = "0",
    k: Cutoffs = None,
    answers: Answers = False,
    oracle: Oracles = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Runs presets over questions and shows what each brings, with 95% bootstrap intervals.

    Questions are asked one at a time. A run that was interrupted goes on where it stopped,
    and one that is complete is not asked again.
    """
    context = make_context(config, overrides, json)
    settings = context.settings
    asked, wanted = read_questions(questions), read_gold(gold)
    plans = make_plans(systems, k or (), answers, oracle or ())
    check_gold(asked, wanted, questions, gold)
    if any(plan.oracle for plan in plans):
        for question in asked:
            material(wanted[question.id])
    drawn = read_seeds(seeds)
    output = output or FOLDER / digest(questions.read_bytes())
    make_folder(output)
    runs = [open_run(output, plan, run_key(plan, settings, questions, gold)) for plan in plans]
    complete_runs(
        runs, asked, lambda: open_graph(settings, plans, wanted, context.log), context.log
    )
    found = tabulate_runs(runs, wanted, sorted(set(k or CUTOFFS)), drawn)
    if json:
        context.print_json(as_plain(found))
    else:
        print_tables(context.out, found)


def read_seeds(text: str) -> list[int]:
    """Whole numbers with commas between them. Raises InputError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds {text}: must be whole numbers with commas, such as 0,1,2")
    return [int(part) for part in parts]


def make_plans(
    systems: Sequence[str], cutoffs: Sequence[int], answers: bool, oracles: Sequence[str]
) -> list[Plan]:
    """The runs, the presets first. Raises InputError for an unknown system or oracle."""
    for oracle in oracles:
        if oracle not in ORACLES:
            raise InputError(f"--oracle {oracle}: unknown; there are: {', '.join(ORACLES)}")
    deepest = max(MAX_DOCUMENTS, *cutoffs, *CUTOFFS)
    presets = [Plan(load_system(name), deepest, answers) for name in dict.fromkeys(systems)]
    plans = list(presets)
    for plan in presets:
        system = plan.system
        if answers:
            others = sorted(set(cutoffs) - {system.evidence})
            plans += [Plan(system, deepest, answers, evidence=k) for k in others]
        plans += [Plan(system, deepest, answers, oracle=name) for name in dict.fromkeys(oracles)]
    return plans


def check_gold(
    asked: Sequence[Question], wanted: Mapping[str, Entry], questions: Path, gold: Path
) -> None:
    """Raises InputError where there is no question, or one without gold."""
    if not asked:
        raise InputError(f"{questions}: holds no question to run")
    lacking = [question.id for question in asked if question.id not in wanted]
    if lacking:
        raise InputError(
            f"{gold}: lacks {len(lacking)} of the {len(asked)} questions of {questions}, such as "
            f"{lacking[0]!r}; name the gold file of these questions"
        )


def make_folder(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output}: cannot be made: {error.strerror}") from None


def as_plain(found: Ablation) -> dict[str, Any]:
    """The tables for JSON; a difference carries its verdict."""
    plain = asdict(found)
    for row, system in zip(plain["systems"], found.systems, strict=True):
        for name, difference in system.differences.items():
            row["differences"][name]["verdict"] = verdict(difference)
    for row, loss in zip(plain["losses"], found.losses, strict=True):
        row["lost"]["verdict"] = verdict(loss.lost)
    return plain


def print_tables(out: Console, found: Ablation) -> None:
    """The tables that have rows, in the order of paper 002's: 2, 3, 6, then the oracles'."""
    if not out.is_terminal:
        out.width = max(out.width, FILE_WIDTH)
    out.print(_systems_table(found))
    out.print(
        "Latency: milliseconds of expand, encode, statistics, retrieve, fetch and rerank added up "
        "for each question. Expanding and encoding go on at once, so the wait is a little shorter."
    )
    for row in found.systems:
        for loss, count in row.degraded.items():
            out.print(f"{row.name}: {count} of {row.questions} questions: {loss}")
    if len(found.systems) > 1:
        out.print(_intervals_table(found.systems))
    out.print(_cutoffs_table(found.cutoffs))
    if found.losses:
        out.print(_losses_table(found))


def _systems_table(found: Ablation) -> Table:
    seeds = ", ".join(map(str, found.seeds))
    title = (
        f"{found.systems[0].questions} questions, index {found.index_version}, 95% bootstrap "
        f"intervals (seed {seeds})"
    )
    table = _table(title, ["measure"], [system.name for system in found.systems])
    table.show_lines = True
    for name in found.systems[0].measures:
        table.add_row(name, *(_system_cell(system, name) for system in found.systems))
    table.add_row("latency, mean ms", *(f"{s.latency_mean:.1f}" for s in found.systems))
    table.add_row("latency, median ms", *(f"{s.latency_median:.1f}" for s in found.systems))
    return table


def _system_cell(system: SystemRow, name: str) -> str:
    if name not in system.measures:
        return "-"
    lines = [f"{system.measures[name].value:.4f}", _span(system.measures[name])]
    if name in system.differences:
        difference = system.differences[name]
        lines += [f"{difference.value:+.4f}", verdict(difference)]
    return "\n".join(lines)


def _intervals_table(systems: Sequence[SystemRow]) -> Table:
    table = _table(
        f"Means and paired differences from {systems[0].name}",
        ["system", "measure"],
        ["mean", "95% interval", "difference", "95% interval"],
    )
    for system in systems:
        for name, interval in system.measures.items():
            cells = [system.name, name, f"{interval.value:.4f}", _span(interval)]
            if name in system.differences:
                difference = system.differences[name]
                cells += [f"{difference.value:+.4f}", _span(difference, "+")]
            table.add_row(*cells)
    return table


def _cutoffs_table(rows: Sequence[CutoffRow]) -> Table:
    cutoffs = list(dict.fromkeys(row.k for row in rows))
    table = _table("Sensitivity to k", ["system", "measure"], [f"k = {k}" for k in cutoffs])
    for name in dict.fromkeys(row.name for row in rows):
        mine = [row for row in rows if row.name == name]
        for measure in dict.fromkeys(measure for row in mine for measure in row.measures):
            found = (row.measures.get(measure) for row in mine)
            table.add_row(name, measure, *(f"{i.value:.4f}" if i else "-" for i in found))
        table.add_row(name, "latency, mean ms", *(f"{row.latency_mean:.1f}" for row in mine))
    return table


def _losses_table(found: Ablation) -> Table:
    table = _table(
        "Lost at each stage: with gold there, less as it is",
        ["system", "oracle", "measure"],
        ["as it is", "with gold", "lost", "95% interval"],
    )
    for row in found.losses:
        values = (f"{row.without:.4f}", f"{row.with_oracle:.4f}", f"{row.lost.value:+.4f}")
        table.add_row(row.name, row.oracle, row.measure, *values, _span(row.lost, "+"))
    return table


def _table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title)
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    return table


def _span(interval: Interval, sign: str = "") -> str:
    return f"{interval.low:{sign}.4f} to {interval.high:{sign}.4f}"
