"""`citeray export`: write citations for reference managers or as a reference list."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from cluster.errors import InputError, cut
from cluster.read_given import read_given
from commands.context import Config, Context, Overrides, make_context
from commands.evaluation.output_file import Output, write_output
from serve.references.export_citations import FormatName, export_citations, format_of
from serve.references.prepare_for_style import StyleName

if TYPE_CHECKING:
    from cluster.records import Citation

STDIN = "-"
# Maximum number of records in one export, about the number of documents of a large batch.
MOST_PMIDS = 100_000
MOST_BYTES = 4 << 20
MOST_NAMED = 5
_PMID = re.compile(r"0*[1-9][0-9]{0,8}", re.ASCII)

Source = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN.json",
        help="Export the citations of stored answers: /v1/answer replies or a run file.",
    ),
]


def export(
    pmids: Annotated[
        list[str] | None,
        typer.Argument(help="PMIDs, files of PMIDs, or - for standard input."),
    ] = None,
    source: Source = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Export the citations of this finished batch of the running endpoint.",
        ),
    ] = None,
    form: Annotated[
        FormatName | None,
        typer.Option("--format", help="Format of the file (default: by its extension, or ris)."),
    ] = None,
    style: Annotated[
        StyleName | None,
        typer.Option(help="Print a numbered reference list in this style instead."),
    ] = None,
    output: Output = None,
    config: Config = None,
    overrides: Overrides = None,
) -> None:
    """Export citations for reference managers, or as a styled reference list.

    The records come from the index at index.path, in the given order and without duplicates. If one
    is missing from the index, or if the running endpoint serves another index, nothing is written
    and the exit code is 2.
    """
    context = make_context(config, overrides, json_output=False)
    cited = _cited(source) if source is not None else []
    cited += _cited_by_batch(context, batch) if batch is not None else []
    wanted = _wanted(pmids or [], cited, source or batch)
    citations = _look_up(context, wanted)
    form = form or format_of(output)
    text = _styled(citations, style) if style else export_citations(citations, form)
    write_output(output, text)
    if output is not None:
        context.log.print(f"{len(citations):,} citations -> {output}")


def _cited(source: Path) -> list[int]:
    from evaluation.audit.read_answers import read_answers

    return [pmid for answer in read_answers(source) for pmid in answer.cited]


def _cited_by_batch(context: Context, batch: str) -> list[int]:
    """Return the PMIDs that a batch's run cites; the run is fetched from the running endpoint."""
    from serve.client.open_client import endpoint_url, running_client

    running = running_client(context.settings)
    if running is None:
        raise InputError(
            f"--batch {cut(batch)}: no endpoint is ready at {endpoint_url(context.settings)}; "
            "start it, or pass the run file of the batch with --from"
        )
    with running:
        run = running.batch_run(batch)
    with TemporaryDirectory() as folder:
        (Path(folder) / "run.json").write_bytes(run)
        return _cited(Path(folder) / "run.json")


def _wanted(given: list[str], cited: list[int], source: Path | str | None) -> list[int]:
    """Return the distinct PMIDs: the given ones in order, then those cited by answers."""
    found = [pmid for text in given for pmid in _read_argument(text)]
    wanted = list(dict.fromkeys([*found, *cited]))
    if not wanted:
        where = f"{source}: cites no PMID" if source else "no PMID"
        raise InputError(f"{where}; give PMIDs, a file of them, or --from RUN.json")
    if len(wanted) > MOST_PMIDS:
        raise InputError(f"{len(wanted):,} PMIDs; export {MOST_PMIDS:,} at most at a time")
    return wanted


def _read_argument(text: str) -> list[int]:
    if _PMID.fullmatch(text):
        return [int(text)]
    if text == STDIN:
        return _read_pmids(sys.stdin.read(MOST_BYTES + 1), "standard input")
    if text.isascii() and text.isdigit():
        raise InputError(f"{cut(text)}: not a PMID, a number from 1 to 999,999,999")
    return _read_pmids(read_given(Path(text), MOST_BYTES), text)


def _read_pmids(text: str, where: str) -> list[int]:
    """Return the PMIDs in `text`, separated by white space or commas."""
    if len(text) > MOST_BYTES:
        raise InputError(f"{where}: more than {MOST_BYTES:,} characters; split it")
    words = text.replace(",", " ").split()
    for number, word in enumerate(words, 1):
        if not _PMID.fullmatch(word):
            raise InputError(f"{where}: word {number}, {cut(word, 40)!r}, is not a PMID; remove it")
    return list(map(int, words))


def _look_up(context: Context, wanted: list[int]) -> list[Citation]:
    from evaluation.find_citations import CitationLookup
    from serve.client.open_client import check_same_store

    check_same_store(context.settings, "index.path")
    lookup = CitationLookup(context.settings)
    found = [(pmid, lookup.find(pmid)) for pmid in wanted]
    if missing := [pmid for pmid, citation in found if citation is None]:
        path = context.settings.index.path
        named = ", ".join(map(str, missing[:MOST_NAMED]))
        more = f" and {len(missing) - MOST_NAMED:,} more" if len(missing) > MOST_NAMED else ""
        raise InputError(
            f"PMID {named}{more}: not in the index at {path}, version {lookup.version}; leave it "
            "out, or build the index with it"
        )
    return [citation for _, citation in found if citation is not None]


def _styled(citations: list[Citation], style: StyleName) -> str:
    from serve.references.style_references import style_references

    references = style_references(citations, style)
    return "".join(f"{n}. {reference.text}\n" for n, reference in enumerate(references, 1))
