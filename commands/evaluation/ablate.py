"""`citeray ablate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cluster.answers import Question
from cluster.errors import InputError, cut
from cluster.settings.parse_yaml import parse_yaml
from cluster.settings.presets import is_file, load_system, read_system, shipped_systems, vary
from cluster.settings.system_settings import SystemSettings
from commands.context import Config, Context, Json, Overrides, make_context
from commands.evaluation.evaluate import Concurrent, JudgeModel, JudgeUrl
from evaluation.ablation.ask_graph import Plan, open_graph
from evaluation.ablation.judge_runs import judge_runs
from evaluation.ablation.oracle import ORACLES, material
from evaluation.ablation.print_tables import markdown_table, print_tables
from evaluation.ablation.run_plans import complete_runs, digest, open_run, run_key
from evaluation.ablation.tabulate_runs import Ablation, tabulate_runs, verdict_on
from evaluation.answers.find_judge import check_judge, open_judge
from evaluation.bioasq.read_bioasq import Entry, read_gold
from evaluation.bootstrap import verdict
from serve.contracts.request_forms import MAX_CITATIONS
from serve.formats.bioasq import MAX_DOCUMENTS, read_questions

CUTOFFS = (3, 5, 10)
FOLDER = Path(".citeray/ablate")


Systems = Annotated[
    list[str],
    typer.Argument(help="Presets, or YAML files of presets; each one is compared with the first."),
]
Varied = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="KEY=VALUES",
        help="Run each preset with each of these values, such as rerank.depth=0,20,50; repeat for "
        "all combinations.",
    ),
]
Questions = Annotated[Path, typer.Option(help="Questions in BioASQ's JSON format.")]
Gold = Annotated[Path, typer.Option(help="Gold file of the questions; may be the same file.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Folder of the runs (default: one for these questions in .citeray/ablate).",
    ),
]
Seeds = Annotated[
    str,
    typer.Option(
        help="Random seed of the bootstrap; with several, such as 0,1,2, the intervals cover those "
        "of all seeds.",
    ),
]
Cutoffs = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=MAX_CITATIONS,
        help="Rank cutoff; repeatable (default 3, 5 and 10). Rankings are truncated, not computed "
        "again; with --answers, each k is a separate run whose answers use k passages.",
    ),
]
Answers = Annotated[bool, typer.Option("--answers/--no-answers", help="Score answers too (slow).")]
Depth = Annotated[
    int,
    typer.Option(
        min=1, max=MAX_CITATIONS, help="Minimum number of citations to rank; 100 shows recall@100."
    ),
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Print one Markdown table with a row for each system.")
]
Oracles = Annotated[
    list[str] | None,
    typer.Option(help="Replace a stage by gold: retrieve, rerank or evidence. Repeatable."),
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
    vary: Varied = None,
    depth: Depth = MAX_DOCUMENTS,
    markdown: Markdown = False,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = "",
    concurrent: Concurrent = 4,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Compare presets over the same questions, with 95% bootstrap intervals.

    Questions are asked one at a time. An interrupted run resumes where it stopped. A complete run
    is not repeated.
    """
    context = make_context(config, overrides, json)
    settings = context.settings
    if judge is not None:
        check_judge(judge, judge_model, settings)
        if not answers:
            raise InputError("--judge needs --answers: it judges them")
    asked, wanted = read_questions(questions), read_gold(gold)
    chosen = vary_systems(read_systems(systems), vary or ())
    plans = make_plans(chosen, k or (), answers, oracle or (), depth)
    check_gold(asked, wanted, questions, gold)
    if any(plan.oracle for plan in plans):
        for question in asked:
            material(wanted[question.id])
    drawn = read_seeds(seeds)
    output = output or FOLDER / digest(questions.read_bytes())
    _make_folder(output)
    runs = [open_run(output, plan, run_key(plan, settings, questions, gold)) for plan in plans]
    complete_runs(
        runs, asked, lambda: open_graph(settings, plans, wanted, context.log), context.log
    )
    judged = {}
    if judge is not None:
        with open_judge(judge, judge_model, settings) as opened:
            judged = judge_runs(runs, wanted, opened, concurrent, context.log.print)
    found = tabulate_runs(runs, wanted, sorted(set(k or CUTOFFS)), drawn, judged)
    _show(context, found, markdown=markdown)


def _show(context: Context, found: Ablation, *, markdown: bool) -> None:
    if context.json:
        context.print_json(as_plain(found))
    elif markdown:
        typer.echo(markdown_table(found))
    else:
        print_tables(context.out, found)


def read_seeds(text: str) -> list[int]:
    """Parse whole numbers separated by commas. Raises InputError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"--seeds {text}: must be whole numbers with commas, such as 0,1,2")
    return [int(part) for part in parts]


def read_systems(systems: Sequence[str]) -> list[SystemSettings]:
    """Return the presets by name or file, each once. Raises InputError for an unknown one."""
    found = [
        read_system(system) if is_file(system) else load_system(system)
        for system in dict.fromkeys(systems)
    ]
    names = Counter(system.name for system in found)
    if twice := [name for name, count in names.items() if count > 1]:
        raise InputError(f"two of the systems are named {twice[0]}: rename a file")
    return found


def vary_systems(systems: Sequence[SystemSettings], varied: Sequence[str]) -> list[SystemSettings]:
    """Return each system with every combination of the values; without values, the systems.

    Each item of `varied` is KEY=VALUES, with values separated by commas. Raises InputError for an
    item of another form, and for an unknown key or an invalid value.
    """
    for option in varied:
        key, separator, values = option.partition("=")
        if not separator or not key or not all(v.strip() for v in values.split(",")):
            raise InputError(
                f"--vary {cut(option)}: expected key=values with commas, such as rerank.depth=0,20"
            )
        read = [parse_yaml(value, f"--vary {cut(option)}") for value in values.split(",")]
        systems = [vary(system, key, value) for system in systems for value in read]
    return list(systems)


def make_plans(
    systems: Sequence[SystemSettings],
    cutoffs: Sequence[int],
    answers: bool,
    oracles: Sequence[str],
    depth: int = MAX_DOCUMENTS,
) -> list[Plan]:
    """Return the runs, those of the unchanged presets first; InputError for an unknown oracle."""
    for oracle in oracles:
        if oracle not in ORACLES:
            raise InputError(f"--oracle {oracle}: unknown; there are: {', '.join(ORACLES)}")
    deepest = max(MAX_DOCUMENTS, depth, *cutoffs, *CUTOFFS)
    shipped = shipped_systems()
    presets = [Plan(s, deepest, answers, own=s.name not in shipped) for s in systems]
    plans = list(presets)
    for plan in presets:
        if answers:
            others = sorted(set(cutoffs) - {plan.system.evidence})
            plans += [replace(plan, evidence=k) for k in others]
        plans += [replace(plan, oracle=name) for name in dict.fromkeys(oracles)]
    return plans


def check_gold(
    asked: Sequence[Question], wanted: Mapping[str, Entry], questions: Path, gold: Path
) -> None:
    """Raise InputError if there is no question, or if a question has no gold."""
    if not asked:
        raise InputError(f"{questions}: contains no question to ask")
    lacking = [question.id for question in asked if question.id not in wanted]
    if lacking:
        raise InputError(
            f"{gold}: lacks {len(lacking)} of the {len(asked)} questions of {questions}, such as "
            f"{lacking[0]!r}; name the gold file of these questions"
        )


def _make_folder(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--output {output}: cannot be made: {error.strerror}") from None


def as_plain(found: Ablation) -> dict[str, Any]:
    """Return the tables for JSON; each difference includes its verdict."""
    plain = asdict(found)
    for row, system in zip(plain["systems"], found.systems, strict=True):
        for name, difference in system.differences.items():
            row["differences"][name]["verdict"] = verdict_on(name, difference)
    for row, loss in zip(plain["losses"], found.losses, strict=True):
        row["lost"]["verdict"] = verdict(loss.lost)
    return plain
