"""`citeray answer` and `citeray remember`: answer question files, and store few-shot examples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cluster.errors import InputError
from cluster.settings.settings import Settings
from commands.context import Config, Context, Json, Overrides, make_context
from commands.language_model import LlmOption, warn_of_lost_model
from commands.options import AsOf, SystemOption, Until, check_options, open_client
from commands.terminal import render
from serve.client.print_answer import print_answer

if TYPE_CHECKING:
    from serve.client.answer_batch import Batch

RunFormat = Literal["bioasq", "synergy", "biogen-a", "biogen-b", "text", "csv"]
# Formats by the suffix of the output file; others are BioASQ's.
SUFFIXES: Mapping[str, RunFormat] = {".txt": "text", ".csv": "csv"}
# Formats whose question files contain snippets.
GIVING = ("bioasq", "synergy")

EvidenceOption = Annotated[
    Literal["search", "given"],
    typer.Option(
        "--evidence",
        help="given: answer from the snippets in the questions file (BioASQ's phase B) "
        "and from the golden snippets in the feedback (Synergy). Questions without snippets are "
        "searched and counted.",
    ),
]


QuestionsArgument = Annotated[
    Path, typer.Argument(help="Questions in BioASQ's JSON format, or BioGen topics.")
]
OutputOption = Annotated[Path, typer.Option("--output", "-o", help="The file to write.")]
FormatOption = Annotated[
    RunFormat | None,
    typer.Option(
        "--format",
        help="Format of the file (default: text for .txt, csv for .csv, otherwise bioasq).",
    ),
]
FeedbackOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="Synergy: expert feedback on an earlier round (repeat for each). The documents and "
        "snippets that it judges are left out. If llm.examples names a folder, approved answers "
        "are stored there as examples, as by `citeray remember`."
    ),
]
Documents = Annotated[
    int,
    typer.Option(
        min=1,
        max=100,
        help="Documents per question. BioASQ accepts ten, `citeray table` any number.",
    ),
]
NoAnswers = Annotated[
    bool, typer.Option("--no-answers", help="Return documents and snippets only (faster).")
]
Concurrent = Annotated[
    int, typer.Option(min=1, max=64, help="Number of questions answered at once.")
]


def answer(
    questions: QuestionsArgument,
    output: OutputOption,
    file_format: FormatOption = None,
    feedback: FeedbackOption = None,
    no_answers: NoAnswers = False,
    documents: Documents = 10,
    evidence: EvidenceOption = "search",
    concurrent: Concurrent = 4,
    system: SystemOption = None,
    as_of: AsOf = None,
    until: Until = None,
    llm: LlmOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Answer a batch of questions and write a run file; an interrupted batch resumes.

    bioasq: documents, snippets and answers. synergy: the same for a round's test set, with answers
    only for questions marked answerReady. biogen-a: PMIDs that support or contradict each given
    sentence. biogen-b: at most 250 words, each sentence with PMIDs. text and csv: answers to read.
    """
    from serve.client.answer_batch import answer_batch

    context = make_context(config, overrides, json)
    file_format = file_format or SUFFIXES.get(output.suffix.lower(), "bioasq")
    answers = _check_format(file_format, feedback or [], no_answers=no_answers)
    given = _check_evidence(evidence, file_format, answers=answers)
    _check_documents(documents, file_format)
    chosen = check_options(context, system, as_of=as_of, until=until, llm=llm)
    context = chosen.context
    batch = make_batch(
        context.settings, file_format, questions, chosen.system, feedback or [],
        answers=answers, given=given, documents=documents,
    )  # fmt: skip
    learnt = _learn(context, feedback or [])
    begun = time.monotonic()
    how: dict[str, Any] = {"answers": answers, "concurrent": concurrent, "log": context.log}
    with open_client(chosen, answers=answers) as client:
        counted = answer_batch(client, batch, output, chosen.system, **how)
    warn_of_lost_model(context, counted["degraded"])
    _note(output, questions, file_format)
    seconds, count = round(time.monotonic() - begun, 1), len(batch.questions)
    summary = {"run": str(output), "questions": count, "seconds": seconds}
    summary |= _warn_of_guesses(context, output) if answers and file_format in GIVING else {}
    if json:
        context.print_json({**summary, **learnt, **counted})
    else:
        _print_counts(context, summary, counted)


def _check_documents(documents: int, file_format: str) -> None:
    if documents != 10 and file_format != "bioasq":
        raise InputError("--documents: only with --format bioasq")


def _note(output: Path, questions: Path, file_format: str) -> None:
    """Note the questions file of a run for `citeray lint`; texts and tables are not runs."""
    from evaluation.lint.lint_run import note_questions

    if file_format not in SUFFIXES.values():
        note_questions(output, questions)


def _warn_of_guesses(context: Context, output: Path) -> dict[str, int]:
    """Report how many answers of a run are guesses, and return the count for the summary."""
    from serve.formats.bioasq import count_guesses

    guesses = count_guesses(output)
    if guesses:
        context.log.print(
            f"{guesses} of the answers in {output} are only best guesses, because the format "
            "requires an answer: their `verdict` is not_enough_evidence. Write --format csv or "
            "text to leave them out.",
            style="yellow",
        )
    return {"guesses": guesses}


def _print_counts(
    context: Context, summary: Mapping[str, Any], counted: Mapping[str, Mapping[str, int]]
) -> None:
    done = "{questions} questions in {seconds} s -> {run}".format_map(summary)
    context.out.print(done, soft_wrap=True)
    for kind, times in counted.get("verdicts", {}).items():
        context.out.print(f"  {kind.replace('_', ' ')}: {times}", soft_wrap=True)
    for loss, times in counted["degraded"].items():
        context.out.print(f"  {loss}: {times}", soft_wrap=True)


def remember(
    sources: Annotated[
        list[Path], typer.Argument(help="Synergy feedback files or BioASQ gold files.")
    ],
    number: Annotated[
        int | None, typer.Option("--round", min=1, help="Round number (default: the next one).")
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Store approved answers as few-shot examples, one version per round, in llm.examples.

    Questions with answerReady set to false are skipped. Presets that use examples select those with
    the most similar questions. A running endpoint uses a new round immediately.
    """
    from serve.answer.examples.example_store import store_examples as store

    context = make_context(config, overrides, json)
    folder = context.settings.llm.examples
    if folder is None:
        raise InputError("llm.examples: not set; name a folder with --set llm.examples=FOLDER")
    stored = store(folder, sources, number)
    summary = {"folder": str(folder), "round": stored.number, "examples": len(stored.examples)}
    if json:
        context.print_json(summary)
    else:
        context.out.print(
            f"round {stored.number}: {len(stored.examples)} examples -> {folder}", soft_wrap=True
        )


def make_batch(
    settings: Settings,
    file_format: str,
    questions: Path,
    system: str,
    feedback: Sequence[Path],
    *,
    answers: bool,
    given: bool = False,
    documents: int = 10,
) -> Batch:
    """Return the questions and the output format of a batch.

    With `given`, the snippets in the files are the evidence, in the formats of `GIVING`. Raises
    InputError for files that do not match the format.
    """
    from serve.client import biogen_batch
    from serve.client.answer_batch import bioasq_batch
    from serve.client.synergy_batch import synergy_batch
    from serve.client.table_batch import table_batch
    from serve.formats.bioasq import read_questions
    from serve.formats.biogen import read_topics_a
    from serve.formats.given_snippets import give_snippets

    if file_format == "synergy":
        return synergy_batch(questions, feedback, system, answers=answers, given=given)
    if file_format == "biogen-a":
        from serve.graph.load_stages import load_scorer
        from serve.support.weigh_evidence import Thresholds

        topics, support = read_topics_a(questions), settings.support
        thresholds = Thresholds(support.threshold, support.contradiction)
        return biogen_batch.biogen_a_batch(topics, system, load_scorer(settings), thresholds)
    if file_format == "biogen-b":
        return biogen_batch.biogen_b_batch(questions, system)
    asked = read_questions(questions)
    if given:
        asked = give_snippets(asked, [questions])
    if file_format in SUFFIXES.values():
        return table_batch(asked, system, file_format, _answer_text)
    return bioasq_batch(asked, system, answers=answers, given=given, documents=documents)


def _answer_text(reply: dict[str, Any]) -> str:
    return render(lambda console: print_answer(console, reply))


def _check_format(file_format: str, feedback: Sequence[Path], *, no_answers: bool) -> bool:
    """Return True if the format asks for answers; raise InputError for conflicting options."""
    if feedback and file_format != "synergy":
        raise InputError("--feedback: only with --format synergy")
    if no_answers and file_format not in GIVING:
        raise InputError(f"--no-answers: cannot be combined with --format {file_format}")
    return not no_answers and file_format != "biogen-a"


def _check_evidence(evidence: str, file_format: str, *, answers: bool) -> bool:
    """Return True if the files provide the evidence; raise InputError for conflicting options."""
    if evidence == "given" and file_format not in GIVING:
        raise InputError(f"--evidence given: only with --format {' or '.join(GIVING)}")
    if evidence == "given" and not answers:
        raise InputError("--evidence given: cannot be combined with --no-answers")
    return evidence == "given"


def _learn(context: Context, feedback: Sequence[Path]) -> dict[str, Any]:
    """Store examples from the feedback if llm.examples is set; return the summary's fields."""
    folder = context.settings.llm.examples
    if folder is None or not feedback:
        return {}
    from serve.answer.examples.example_store import store_examples as store

    stored = store(folder, feedback)
    context.log.print(f"examples of round {stored.number}: {len(stored.examples)} in {folder}")
    return {"round": stored.number, "examples": len(stored.examples)}
