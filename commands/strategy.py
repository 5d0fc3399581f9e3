"""`citeray strategy`: make a Boolean PubMed search strategy from a question."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import typer

from cluster.errors import InputError, cut
from commands.context import Config, Context, Json, Overrides, json_text, make_context
from commands.evaluation.output_file import Output, write_output
from commands.options import (
    ARTICLES,
    AsOf,
    DesignOption,
    FilterOption,
    SystemOption,
    Until,
    check_options,
    check_request,
    open_client,
    read_filters,
)
from serve.client.open_client import Reply, endpoint_url, running_client
from serve.strategy.export_strategy import StrategyFormat
from serve.strategy.make_strategy import DEFAULT_MAX_HITS

QuestionArgument = Annotated[
    str, typer.Argument(help="The question, in plain English.", show_default=False)
]
AnswerOption = Annotated[
    str,
    typer.Option(
        "--answer", metavar="ID", show_default=False, rich_help_panel=ARTICLES,
        help="Use the question and the filters of this stored answer of the running endpoint.",
    ),
]  # fmt: skip
MaxHitsOption = Annotated[
    int,
    typer.Option(
        "--max-hits", min=1, max=1_000_000,
        help="Tighten or widen the strategy to at most this number of citations.",
    ),
]  # fmt: skip
FormatOption = Annotated[
    Literal[StrategyFormat, "json"], typer.Option("--format", help="Format of the strategy.")
]


def strategy(
    question: QuestionArgument = "",
    answer: AnswerOption = "",
    max_hits: MaxHitsOption = DEFAULT_MAX_HITS,
    form: FormatOption = "text",
    output: Output = None,
    system: SystemOption = None,
    as_of: AsOf = None,
    filters: FilterOption = None,
    until: Until = None,
    designs: DesignOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Make a Boolean PubMed search strategy from a question, and measure it on the index.

    The text lists what each block and term finds, and what the strategy loses without it. Recall
    and precision refer to the best citations of the semantic search for the question.
    """
    context = make_context(config, overrides, json)
    if answer:
        if question or system or as_of or filters or until or designs:
            raise InputError("--answer: not with a question, a preset, --as-of or filters")
        if not re.fullmatch("[0-9a-f]{32}", answer):
            raise InputError(
                f"--answer {cut(answer)}: not the id of an answer (32 hexadecimal characters); "
                "`citeray ask --store` prints it, and GET /v1/answers lists all"
            )
        made = _of_answer(context, answer, max_hits)
    elif not question:
        raise InputError("give a question, or a stored answer with --answer ID")
    else:
        chosen = check_options(context, system, as_of=as_of)
        request: dict[str, Any] = {"question": question, "system": chosen.system}
        request["filters"] = read_filters(filters, until, designs)
        check_request(request)
        with open_client(chosen, answers=False) as client:
            made = client.strategy({**request, "max_hits": max_hits})
    is_json = json or form == "json"
    write_output(output, json_text(made["strategy"]) if is_json else made["texts"][form])


def _of_answer(context: Context, answer: str, max_hits: int) -> Reply:
    running = running_client(context.settings)
    if running is None:
        raise InputError(
            f"--answer {cut(answer)}: no endpoint is ready at {endpoint_url(context.settings)}; "
            "start the one that stored it"
        )
    with running:
        return running.strategy_of(answer, max_hits)
