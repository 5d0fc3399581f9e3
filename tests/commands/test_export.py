"""`citeray export` as a user runs it, over a small index."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
import rispy

from cluster.records import Author
from tests.commands.run_here import run_here
from tests.small_index import citation, make_index

AUTHORS = (Author("Doe", "Jo", "J"),)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export")
    held = [citation(n, "Iron is stored.", f"Title {n}.", authors=AUTHORS) for n in range(1, 9)]
    make_index(path, held)
    return path


def export(index: Path, *arguments: object, stdin: str = "") -> tuple[int, str, str]:
    """Return (exit code, standard output, standard error)."""
    with patch.object(sys, "stdin", io.StringIO(stdin)):
        return run_here("export", *arguments, f"--set=index.path={index}", "--set=serve.port=9")


def run(index: Path, *arguments: object, stdin: str = "") -> str:
    """Return standard output."""
    code, said, message = export(index, *arguments, stdin=stdin)
    assert code == 0, message
    return said


def titles(ris: str) -> list[str]:
    return [entry["title"] for entry in rispy.loads(ris.replace("\r\n", "\n"))]


def test_pmids_are_exported_in_order_without_duplicates(index: Path, tmp_path: Path) -> None:
    listed = tmp_path / "pmids.txt"
    listed.write_text("4, 2\n3\n")
    found = titles(run(index, 2, listed, "-", stdin="5\n2"))
    assert found == ["Title 2", "Title 4", "Title 3", "Title 5"]


def test_cited_pmids_are_exported_in_citation_order(index: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    rows = [
        {"id": "q1", "documents": [PUBMED + "7", PUBMED + "1"], "snippets": []},
        {"id": "q2", "documents": [PUBMED + "1", PUBMED + "3"], "snippets": []},
    ]
    file.write_text(json.dumps({"questions": [dict(QUESTION, **row) for row in rows]}))
    table = run(index, "--from", file, "--format", "csv").removeprefix("\ufeff")
    run(index, "--from", file, "-o", tmp_path / "cited.csv")
    assert (tmp_path / "cited.csv").read_text(encoding="utf-8-sig").splitlines() == (
        table.splitlines()
    )
    assert [row["pmid"] for row in csv.DictReader(io.StringIO(table))] == ["7", "1", "3"]


PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"
QUESTION = {"type": "summary", "body": "Where is iron stored?", "ideal_answer": "In ferritin."}


def test_export_file_is_written_atomically(index: Path, tmp_path: Path) -> None:
    file = tmp_path / "refs.bib"
    assert run(index, 1, "--format", "bibtex", "-o", file) == ""
    assert "@article{pmid1," in file.read_text()
    code, _, message = export(index, 1, 97, 98, "-o", tmp_path / "none.ris")
    assert code == 2
    assert re.search(r"PMID 97, 98: not in the index at .*; leave it out", message)
    assert list(tmp_path.iterdir()) == [file]


BAD: list[tuple[list[str], str]] = [
    ([], "no PMID; give PMIDs, a file of them, or --from RUN.json"),
    (["0"], "0: not a PMID"),
    (["nofile"], "nofile: cannot be read"),
    (["-"], "standard input: word 2, 'two', is not a PMID; remove it"),
    (["1", "-o", "/proc/x/y"], "/proc/x/y: cannot be written"),
]


@pytest.mark.slow
def test_bad_export_input_is_refused(index: Path, subtests: pytest.Subtests) -> None:
    for arguments, said in BAD:
        with subtests.test(arguments=arguments, said=said):
            code, _, message = export(index, *arguments, stdin="1 two")
            assert (code, said in message) == (2, True)
