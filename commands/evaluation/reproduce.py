"""`citeray reproduce`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Table

from cluster.errors import InputError
from cluster.index.manifest import current_version, read_manifest
from cluster.settings.presets import name_systems
from cluster.settings.settings import Settings
from commands.answer import make_batch
from commands.context import Context, Json, Overrides, make_context
from commands.evaluation.ablate import check_gold
from commands.evaluation.judge_options import JudgeModel, JudgeUrl
from evaluation.reproduce.read_paper import Form, Paper, Scale, paper_settings, read_paper

if TYPE_CHECKING:
    from evaluation.reproduce.run_paper import FilledTable, Measured
    from serve.client.open_client import Client

PaperNumber = Annotated[str, typer.Argument(metavar="PAPER", help="000, 001, 002, 003 or 004.")]
Questions = Annotated[
    Path, typer.Option(help="Questions in BioASQ's format; BioGen's topics for 004.")
]
Gold = Annotated[Path, typer.Option(help="Gold file of the questions; may be the same file.")]
Corpus = Annotated[
    list[str] | None,
    typer.Option(help="PubMed XML to index first, if there is no index yet; repeatable."),
]
ScaleOption = Annotated[
    str, typer.Option("--scale", help="full uses the paper's models, small the laptop's.")
]
AtOnce = Annotated[
    int,
    typer.Option(
        "--concurrent",
        min=1,
        max=64,
        help="Number of questions asked and judged at once; above 1, latencies rise.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Folder of the runs (default: one in .citeray/papers)."),
]


def reproduce(
    number: PaperNumber,
    questions: Questions,
    gold: Gold,
    corpus: Corpus = None,
    scale: ScaleOption = "full",
    output: Output = None,
    judge: JudgeUrl = None,
    judge_model: JudgeModel = "",
    concurrent: AtOnce = 1,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Run a paper's systems and print its tables with the new figures beside its own.

    Differences from the paper's experiment are listed below the tables. The index is built first if
    there is none. An interrupted run resumes where it stopped.
    """
    if scale not in get_args(Scale):
        raise InputError(f"--scale {scale}: unknown; there are: {', '.join(get_args(Scale))}")
    paper = read_paper(number, scale)  # type: ignore[arg-type]
    context = make_context(None, overrides, json)
    form = _form_of(paper, questions)
    settings = paper_settings(number, scale, form, overrides or ())  # type: ignore[arg-type]
    name_systems(settings.serve.systems)
    if judge is not None:
        _check_judge(judge, judge_model, paper, form, settings)
    folder = output or Path(f".citeray/papers/{number}-{scale}/runs")
    work = _Work(paper, settings, questions, gold, folder, context)
    # Report errors in the files before hours of indexing.
    work.check(form)
    _build(settings, corpus or (), context)
    folder.mkdir(parents=True, exist_ok=True)
    if form == "bioasq":
        measured = work.bioasq(judge, judge_model, concurrent)
    else:
        measured = work.biogen(form, concurrent)
    _tell(context, number, paper, settings, form, measured, json=json)


class _Work:
    """A paper's runs over the given question file and gold file."""

    def __init__(
        self,
        paper: Paper,
        settings: Settings,
        questions: Path,
        gold: Path,
        folder: Path,
        context: Context,
    ) -> None:
        self.paper, self.settings, self.context = paper, settings, context
        self.questions, self.gold, self.folder = questions, gold, folder

    def check(self, form: Form) -> None:
        """Read both files. Raises InputError if they cannot be run or scored."""
        if form == "bioasq":
            self._read()
        else:
            from evaluation.biogen.evaluate_biogen import read_gold as read_labels

            read_labels(self.gold)

    def _read(self) -> tuple[Any, Any]:
        from evaluation.bioasq.read_bioasq import read_gold
        from serve.formats.bioasq import read_questions

        asked, wanted = read_questions(self.questions), read_gold(self.gold)
        check_gold(asked, wanted, self.questions, self.gold)
        return asked, wanted

    def bioasq(self, judge: str | None, model: str, concurrent: int) -> dict[str, Measured]:
        """Return the runs over BioASQ's questions, judged if there is a judge."""
        from evaluation.answers.find_judge import open_judge
        from evaluation.reproduce.run_paper import run_paper

        opened = None if judge is None else lambda: open_judge(judge, model, self.settings)
        files = (self.questions, self.gold)
        return run_paper(
            self.paper, self.settings, files, *self._read(), self.folder, self.context.log,
            judge=opened, concurrent=concurrent,
        )  # fmt: skip

    def biogen(self, form: Form, concurrent: int) -> dict[str, Measured]:
        """Return the runs over BioGen's topics, as `citeray answer` and `evaluate` make them."""
        from evaluation.evaluate_run import Request, evaluate_run
        from evaluation.reproduce.run_paper import Measured
        from serve.client.answer_batch import answer_batch

        log, found = self.context.log, {}
        with self._graph() as client:
            for name in _systems(self.paper, form):
                run = self.folder / f"{name}.{form}.json"
                batch = make_batch(self.settings, form, self.questions, name, [], answers=True)
                counted = answer_batch(
                    client, batch, run, name, answers=form == "biogen-b", concurrent=concurrent,
                    log=log,
                )  # fmt: skip
                # A system that answers no question is a valid result.
                request = Request(self.gold, form, allow_empty=True)
                evaluated = evaluate_run(run, request, self.settings, log.print)
                for note in evaluated.notes:
                    log.print(f"{name}: {note}")
                found[name] = Measured(evaluated.scores, degraded=counted["degraded"])
        return found

    @contextmanager
    def _graph(self) -> Iterator[Client]:
        """Run the graph in this process, which starts in half the time; cache models' replies.

        The paper's systems are available by name, within the limits of the scale.
        """
        from evaluation.ablation.ask_once import with_reply_cache
        from serve.client.open_client import LocalClient
        from serve.client.run_graph import served_models

        paper, own = self.paper, self.settings.serve
        systems = {**own.systems, **{name: paper.system(name) for name in paper.systems}}
        serve = own.model_copy(update={"systems": systems})
        settings = self.settings.model_copy(update={"serve": serve})
        try:
            with (
                served_models(settings) as models,
                LocalClient(settings, with_reply_cache(models)) as client,
            ):
                yield client
        finally:
            name_systems(own.systems)


def _systems(paper: Paper, form: Form) -> list[str]:
    shown = [row.system for table in paper.of_form(form) for row in table.rows]
    return [name for name in dict.fromkeys(shown) if name is not None]


def _form_of(paper: Paper, questions: Path) -> Form:
    """Return the format of the questions; raises as `read_topics_b` for an unknown one."""
    if paper.of_form("bioasq"):
        return "bioasq"
    from serve.formats.biogen import read_topics_a, read_topics_b

    try:
        read_topics_a(questions)
    except InputError:
        read_topics_b(questions)
        return "biogen-b"
    return "biogen-a"


def _check_judge(judge: str, model: str, paper: Paper, form: Form, settings: Settings) -> None:
    from evaluation.answers.find_judge import check_judge

    check_judge(judge, model, settings)
    if form != "bioasq" or not paper.answers:
        raise InputError("--judge: no table of this paper has a measure by a judge")


def _build(settings: Settings, corpus: Sequence[str], context: Context) -> None:
    from pipelines.indexing.sources.find_sources import find_sources

    index = settings.index.place
    if current_version(index) is not None:
        from pipelines.indexing.sources.given_sources import sort_sources

        paths = find_sources(list(corpus)) if corpus else []
        if lacking := sort_sources(read_manifest(index), paths).new:
            raise InputError(
                f"{index}: this index lacks {len(lacking)} of the {len(paths)} files of --corpus, "
                f"such as {lacking[0].name}; add them by `citeray index update`, or name another "
                "index.path"
            )
        return
    if not corpus:
        raise InputError(
            f"{settings.index.path}: no index yet; give the PubMed XML to build it from: "
            "--corpus FOLDER"
        )
    from commands.index_jobs.index import build_on_ray

    result = build_on_ray(context, settings, find_sources(list(corpus)))
    if result.failed:
        raise InputError("; ".join(f"{a.name}: {a.error}" for a in result.failed))


def _tell(
    context: Context,
    number: str,
    paper: Paper,
    settings: Settings,
    form: Form,
    measured: Mapping[str, Measured],
    *,
    json: bool,
) -> None:
    from evaluation.reproduce.preset_differences import list_differences
    from evaluation.reproduce.run_paper import fill

    tables = fill(paper.of_form(form), measured)
    differences = list_differences(number, paper, form, settings)
    degraded = {name: dict(run.degraded) for name, run in measured.items() if run.degraded}
    if json:
        context.print_json(
            {
                "paper": number,
                "title": paper.title,
                "tables": [_plain(table) for table in tables],
                "degraded": degraded,
                "differences": differences,
            }
        )
        return
    out = context.out
    out.print(f"Paper {number}: {paper.title}. Its data: {paper.data}.", soft_wrap=True)
    for table in tables:
        out.print(_as_table(table))
    for name, losses in degraded.items():
        for loss, count in losses.items():
            out.print(f"{name}: {count} questions: {loss}", soft_wrap=True)
    out.print("Differences from the paper:")
    for about, lines in differences.items():
        out.print(f"{about}:", soft_wrap=True)
        for line in lines:
            out.print(f"  - {line}", soft_wrap=True)


def _plain(table: FilledTable) -> dict[str, Any]:
    """Return the table for JSON, each row's columns by name; unknown values are null."""
    paper = table.paper
    return {
        "name": paper.name,
        "about": paper.about,
        "rows": [
            {
                "name": row.name,
                "system": row.system,
                "paper": dict(zip(paper.columns, row.values, strict=True)),
                "here": {
                    column: None if found is None else _known(asdict(found))
                    for column, found in zip(paper.columns, here, strict=True)
                },
            }
            for row, here in zip(paper.rows, table.here, strict=True)
        ],
    }


def _known(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _as_table(table: FilledTable) -> Table:
    paper = table.paper
    shown = Table(title=f"{paper.name}: {paper.about}", title_justify="left")
    shown.add_column("", overflow="fold")
    shown.add_column("")
    for column in paper.columns:
        shown.add_column(column, justify="right", overflow="fold")
    for row, here in zip(paper.rows, table.here, strict=True):
        shown.add_row(row.name, "paper", *map(_number, row.values))
        if row.system is not None:
            values = ("-" if i is None else _number(i.value) for i in here)
            shown.add_row(f"  {row.system}", "here", *values)
        bounds = [_bounds(i) for i in here]
        if any(bounds):
            shown.add_row("", "95%", *bounds)
        shown.add_section()
    return shown


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.3f}"


def _bounds(found: Any) -> str:
    if found is None or math.isnan(found.low):
        return ""
    return f"{found.low:.2f}-{found.high:.2f}"
