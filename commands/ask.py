"""`citeray search`, `ask`, `serve` and `demo`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cluster.answers import Check
from cluster.appraisal import Sort
from cluster.errors import InputError
from commands.context import (
    Config,
    Context,
    Json,
    Overrides,
    json_text,
    make_context,
    with_setting,
)
from commands.evaluation.output_file import Output, write_output, write_parts
from commands.language_model import (
    LlmOption,
    hint_at_local_server,
    warn_of_lost_model,
    with_language_model,
)
from commands.options import (
    ANSWERING,
    ARTICLES,
    AsOf,
    Chosen,
    DesignOption,
    FilterOption,
    SystemOption,
    Until,
    check_options,
    check_request,
    open_client,
    read_filters,
    read_turns,
)
from commands.terminal import render
from serve.client.open_client import HttpClient, endpoint_url
from serve.client.print_answer import print_answer, print_boolean, print_search
from serve.references.export_citations import FormatName, format_of

ExportFormat = Literal[FormatName, "pmids"]
QuestionArgument = Annotated[str, typer.Argument(help="The question, in plain English.")]
TypeOption = Annotated[
    str,
    typer.Option(
        "--type", show_default=False, help="yesno, factoid, list or summary (default: detected)."
    ),
]
MaxWrongOption = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        rich_help_panel=ANSWERING,
        help="Maximum share of stated answers that may be wrong, 0 to 1 (default: the preset's, "
        "0.10). 1 states every answer.",
    ),
]
CheckOption = Annotated[
    Check | None,
    typer.Option(
        rich_help_panel=ANSWERING,
        help="Drop or mark the model's unsupported sentences; off marks them and counts them as "
        "answers (default: the preset's).",
    ),
]
SortOption = Annotated[
    Sort,
    typer.Option(
        rich_help_panel=ARTICLES,
        help="Sort the citations by relevance, date or study design.",
    ),
]
AfterOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Ask a follow-up question to the answer in this file, written by `citeray ask "
        "--json`. Repeat for several.",
    ),
]
KOption = Annotated[
    int,
    typer.Option(
        "-k",
        "--limit",
        min=1,
        max=100,
        rich_help_panel=ARTICLES,
        help="Number of citations to find.",
    ),
]
GuessOption = Annotated[
    bool,
    typer.Option(
        "--guess",
        rich_help_panel=ANSWERING,
        help="Print the best guess if the evidence is not enough.",
    ),
]
StoreOption = Annotated[
    bool,
    typer.Option("--store", help="Store the answer on the running endpoint, and print its id."),
]
DetailsOption = Annotated[
    bool,
    typer.Option("--details", help="Print passages, scores, search steps, versions and timings."),
]
BooleanOption = Annotated[
    bool,
    typer.Option(
        "--boolean",
        help="Read QUESTION as a Boolean query in PubMed's syntax, and list the newest matching "
        "citations.",
    ),
]
AllOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="With --boolean: write all citations to this file."
    ),
]
FormatOption = Annotated[
    ExportFormat | None,
    typer.Option(
        "--format", help="Format of --output (default: by its extension, pmids for .txt, or ris)."
    ),
]


def search(
    question: QuestionArgument,
    k: KOption = 10,
    system: SystemOption = None,
    as_of: AsOf = None,
    filters: FilterOption = None,
    until: Until = None,
    designs: DesignOption = None,
    sort: SortOption = "relevance",
    details: DetailsOption = False,
    boolean: BooleanOption = False,
    output: AllOption = None,
    form: FormatOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Search for citations that match a question, or a Boolean query with --boolean."""
    context = make_context(config, overrides, json)
    chosen = check_options(context, system, as_of=as_of)
    if boolean:
        if filters or until or designs or sort != "relevance":
            raise InputError(
                "--boolean: not with --filter, --until, --design or --sort; write limits as terms, "
                "as in AND 2015:2024[dp]"
            )
        _search_boolean(chosen, {"query": question, "limit": k}, output, form)
        return
    if output is not None:
        raise InputError("--output: only with --boolean; save PMIDs and use `citeray export`")
    request = {"question": question, "system": chosen.system, "k": k, "sort": sort}
    request["filters"] = read_filters(filters, until, designs)
    check_request(request)
    with open_client(chosen, answers=False) as client:
        found = client.search(request)
        # Print before the graph stops, because stopping a language model takes seconds.
        if json:
            context.print_json(found)
        else:
            print_search(context.out, found, details=details)


def _search_boolean(
    chosen: Chosen, request: dict[str, Any], output: Path | None, form: ExportFormat | None
) -> None:
    """Print the newest citations that match the query, and write all of them to `output`."""
    context = chosen.context
    with open_client(chosen, answers=False) as client:
        found = client.boolean(request)
        if context.json:
            context.print_json(found)
        else:
            print_boolean(context.out, found)
        if output is not None:
            form = form or ("pmids" if output.suffix.lower() == ".txt" else format_of(output))
            write_parts(output, client.export({"query": request["query"], "format": form}))
            context.log.print(f"{found['total']:,} citations -> {output}")


def ask(
    question: QuestionArgument,
    question_type: TypeOption = "unknown",
    k: KOption = 10,
    system: SystemOption = None,
    as_of: AsOf = None,
    filters: FilterOption = None,
    until: Until = None,
    designs: DesignOption = None,
    check: CheckOption = None,
    max_wrong: MaxWrongOption = None,
    sort: SortOption = "relevance",
    after: AfterOption = None,
    guess: GuessOption = False,
    store: StoreOption = False,
    details: DetailsOption = False,
    output: Output = None,
    llm: LlmOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Answer a question with citations."""
    context = make_context(config, overrides, json)
    chosen = check_options(context, system, question_type, as_of, llm=llm)
    request = {"question": question, "type": question_type, "system": chosen.system, "k": k}
    request["filters"], request["sort"] = read_filters(filters, until, designs), sort
    request["turns"] = read_turns(after)
    options = {"check": check, "max_wrong": max_wrong, "guess": guess, "store": store}
    request |= {key: value for key, value in options.items() if value not in (None, False)}
    check_request(request)
    with open_client(chosen, answers=True) as client:
        if store and not isinstance(client, HttpClient):
            raise InputError(
                "--store: no endpoint is running that could store the answer; start one with "
                "`citeray serve`"
            )
        reply = client.answer(request)
        warn_of_lost_model(context, Counter(reply["degraded"]))
        _write_answer(context, reply, output, details=details)


def _write_answer(
    context: Context, reply: dict[str, Any], output: Path | None, *, details: bool
) -> None:
    """Print the answer, or write it to `output`: as JSON with --json or the suffix .json."""
    if output is None and context.json:
        context.print_json(reply)
    elif output is None:
        print_answer(context.out, reply, details=details)
    elif context.json or output.suffix == ".json":
        write_output(output, json_text(reply))
    else:
        write_output(output, render(lambda to: print_answer(to, reply, details=details)))


def serve(
    as_of: AsOf = None,
    llm: LlmOption = None,
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Run the endpoint in the foreground until interrupted."""
    from cluster.ray.watch_head import await_head_loss
    from serve.client.run_graph import running_graph

    context = make_context(config, overrides, False)
    if as_of:
        context = with_setting(context, "serve.as_of", as_of)
    context = with_language_model(context, llm)
    hint_at_local_server(context)
    settings = context.settings
    with running_graph(settings, context.progress) as address:
        context.log.print(f"serving at {endpoint_url(settings)} (try /docs); Ctrl-C stops it")
        await_head_loss(address)


def demo(
    llm: LlmOption = None,
    config: Config = None,
    overrides: Overrides = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the sample corpus and its index in this folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Index the sample corpus, start the endpoint, ask three questions and stop."""
    from commands.demo import run_demo

    context = with_language_model(make_context(config, overrides, json), llm)
    answers = run_demo(context, keep)
    if json:
        context.print_json(answers)
