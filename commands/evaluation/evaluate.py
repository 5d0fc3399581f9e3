"""`citeray evaluate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console, ConsoleDimensions
from rich.table import Table

from cluster.errors import cut
from cluster.settings.settings import Settings
from commands.context import Config, Context, Json, Overrides, make_context
from evaluation.answers.find_judge import JUDGE_KEY, OF_SETTINGS
from evaluation.bioasq.risk_coverage import KINDS, ROWS
from evaluation.bioasq.risk_coverage import NAMES as RISK_NAMES
from evaluation.bootstrap import RESAMPLES, Interval, intervals
from evaluation.evaluate_run import Request, evaluate_run, find_leakage
from evaluation.evaluated import Evaluated, compare, make_report
from evaluation.report.render_report import write_report
from evaluation.report.report import Comparison

# Measures that are printed without --full. For other tasks, the first MOST_SHOWN are printed.
MOST_SHOWN = 16
MAIN = frozenset(
    {
        "documents recall", "documents MAP", "snippets F1", "snippets MAP", "yesno accuracy",
        "yesno macro F1", "factoid MRR", "list F1", "ROUGE-2 F1", "ROUGE-SU4 F1", "BLEU",
        "BERTScore F1",
    }
)  # fmt: skip

RunArgument = Annotated[Path, typer.Argument(help="Run file, as written by `citeray answer`.")]
GoldArgument = Annotated[
    Path, typer.Argument(help="Gold file of BioASQ or Synergy, or BioGen's judgements or topics.")
]
Against = Annotated[
    Path | None,
    typer.Option(help="Another run to compare with; significant differences are marked."),
]
ReportFolder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Write a report page into this folder.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="bioasq, synergy, biogen-a or biogen-b (default: detected)."),
]
Feedback = Annotated[
    list[Path] | None,
    typer.Option(
        help="Synergy feedback of an earlier round; its documents do not count. Repeatable."
    ),
]
Qrels = Annotated[
    Path | None, typer.Option(help="TREC qrels with judged documents in addition to the gold.")
]
TrainedOn = Annotated[
    list[Path] | None,
    typer.Option(
        help="Training data to check for leakage, in addition to the data that model cards name."
    ),
]
Bleu = Annotated[bool, typer.Option("--bleu", help="Compute BLEU of exact and ideal answers.")]
BertScore = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Compute BLEU and BERTScore of exact and ideal answers with the model in this folder; "
        '"encoder" means the encoder of the settings.',
    ),
]
Full = Annotated[
    bool,
    typer.Option(
        "--full", help="Print all measures, the risk by confidence, and the complete notes."
    ),
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Score a run without answers.")]
Seed = Annotated[int, typer.Option(min=0, help="Random seed of the bootstrap.")]
Resamples = Annotated[int, typer.Option(min=1000, max=100_000, help="Number of bootstrap samples.")]


def evaluate(
    run: RunArgument,
    gold: GoldArgument,
    against: Against = None,
    report: ReportFolder = None,
    run_format: Format = None,
    feedback: Feedback = None,
    qrels: Qrels = None,
    trained_on: TrainedOn = None,
    bleu: Bleu = False,
    bertscore: BertScore = None,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = "",
    concurrent: Concurrent = 4,
    allow_empty: AllowEmpty = False,
    full: Full = False,
    seed: Seed = 0,
    resamples: Resamples = RESAMPLES,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Score a run against gold: BioASQ, Synergy or BioGen measures with 95% intervals."""
    context = make_context(config, overrides, json)
    request = Request(
        gold, run_format, tuple(feedback or ()), qrels, bleu, bertscore, judge, judge_model,
        concurrent, allow_empty,
    )  # fmt: skip
    settings, tell = context.settings, _notes_printer(context, full=full)
    evaluated = evaluate_run(run, request, settings, tell)
    evaluated = _with_leaks(evaluated, gold, trained_on or (), settings, tell)
    compared = None
    if against is not None:
        other = evaluate_run(against, request, settings, tell)
        compared = compare(evaluated, other, str(against), seed=seed, resamples=resamples)
    found = intervals(evaluated.scores, seed=seed, resamples=resamples)
    for note in evaluated.notes:
        tell(f"{run if full else run.name}: {note}")
    if report is not None:
        page = make_report(
            evaluated, run, gold, found, seed=seed, resamples=resamples, against=compared
        )
        context.log.print(f"report: {write_report(report, page)}")
    if json:
        context.print_json(_plain(evaluated, found, compared))
    elif full:
        _print_all(context.out, evaluated, found, compared)
    else:
        _print_main(context.out, evaluated, found, compared)


def _print_all(
    out: Console, evaluated: Evaluated, found: Mapping[str, Interval], compared: Comparison | None
) -> None:
    _print(out, _table(evaluated, found, compared))
    if kinds := _risk_kinds(found):
        _print(out, _risk_table(found, kinds))


def _print_main(
    out: Console, evaluated: Evaluated, found: Mapping[str, Interval], compared: Comparison | None
) -> None:
    """Print the main measures, and how many others --full prints."""
    known = {name: interval for name, interval in found.items() if not math.isnan(interval.value)}
    main = _main_measures(known)
    _print(out, _table(evaluated, main, compared))
    if more := len(known) - len(main):
        out.print(f"{more} more measures: add --full")


def _notes_printer(context: Context, *, full: bool) -> Callable[[str], None]:
    """Return a function that prints a note, cut to one line of the terminal unless `full`."""
    log = context.log
    return lambda note: log.print(note if full else cut(note, log.width))


def _main_measures(found: Mapping[str, Interval]) -> dict[str, Interval]:
    """Return the measures by which challenges rank systems; for other tasks, the first ones."""
    main = {name: interval for name, interval in found.items() if name in MAIN}
    return main or dict(islice(found.items(), MOST_SHOWN))


def _with_leaks(
    evaluated: Evaluated,
    gold: Path,
    trained_on: Sequence[Path],
    settings: Settings,
    tell: Callable[[str], None],
) -> Evaluated:
    if not evaluated.groups:
        return evaluated
    leaks, unknown = find_leakage(gold, trained_on, settings)
    if unknown:
        tell(f"leakage cannot be ruled out, training data unknown: {'; '.join(unknown)}")
    return evaluated.with_notes(*leaks)


def _print(out: Console, table: Table) -> None:
    """Print a table at least 132 columns wide, so that its numbers are not truncated."""
    out.size = ConsoleDimensions(max(out.width, 132), out.height)
    out.print(table)


def _plain(
    evaluated: Evaluated, found: Mapping[str, Interval], compared: Comparison | None
) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "questions": len(evaluated.scores.ids),
        "missing": list(evaluated.scores.missing),
        "measures": {n: asdict(i) for n, i in found.items() if not math.isnan(i.value)},
        "notes": list(evaluated.notes),
    }
    if compared is not None:
        plain["against"] = {
            name: {**asdict(interval), "verdict": compared.verdicts[name]}
            for name, interval in compared.differences.items()
            if not math.isnan(interval.value)
        }
    return plain


def _table(
    evaluated: Evaluated, found: Mapping[str, Interval], compared: Comparison | None
) -> Table:
    title = f"{len(evaluated.scores.ids)} questions, 95% bootstrap intervals"
    table = Table(title=title, box=SIMPLE)
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    differences = compared.differences if compared is not None else {}
    if differences:
        table.add_column("difference", justify="right", no_wrap=True)
        table.add_column("verdict", no_wrap=True)
    for name, interval in found.items():
        # Without a comparison, risk measures are in a separate table, with a column for each type.
        if math.isnan(interval.value) or (name in RISK_NAMES and compared is None):
            continue
        cells = [name, _span(interval)]
        if compared is not None and name in differences:
            cells += [_span(differences[name], "+"), compared.verdicts[name]]
        table.add_row(*cells)
    return table


def _risk_kinds(found: Mapping[str, Interval]) -> list[str]:
    """Return the types of question that have a measure of risk or coverage."""
    known = {name for name in RISK_NAMES & found.keys() if not math.isnan(found[name].value)}
    return [kind for kind in KINDS if any(row.format(kind) in known for row in ROWS.values())]


def _risk_table(found: Mapping[str, Interval], kinds: Sequence[str]) -> Table:
    """Make the table of risk and coverage, a column for each type of question."""
    table = Table("", title="Risk and coverage by confidence", box=SIMPLE)
    for kind in kinds:
        table.add_column(kind, justify="right", no_wrap=True)
    for label, name in ROWS.items():
        cells = [found[name.format(kind)] for kind in kinds]
        table.add_row(label, *("-" if math.isnan(cell.value) else _span(cell) for cell in cells))
    return table


def _span(interval: Interval, sign: str = "") -> str:
    value, low, high = (f"{n:{sign}.4f}" for n in (interval.value, interval.low, interval.high))
    return f"{value} ({low} to {high})"


JudgeUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"Judge answers (RAGAS) with the model at this OpenAI-compatible URL (key in "
        f'{JUDGE_KEY}), or with models.judge of the settings if "{OF_SETTINGS}".',
    ),
]
JudgeModel = Annotated[str, typer.Option(help="Name of the judge model at its URL.")]
Concurrent = Annotated[int, typer.Option(min=1, max=64, help="Number of questions judged at once.")]
