"""Hostile question and run files are read, or refused in one line that names the place."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster import read_given
from cluster.errors import InputError
from evaluation.audit.read_answers import read_answers
from evaluation.bioasq.read_bioasq import read_gold, read_run
from evaluation.bioasq.read_judgements import read_feedback
from evaluation.biogen.read_biogen import read_task_a, read_task_b
from evaluation.biogen.read_labels import read_labels
from evaluation.lint.lint_run import check_run, read_asked, read_run_file, write_run_file
from serve.answer.examples.example_store import store_examples
from serve.answer.examples.read_examples import curate_examples
from serve.client.biogen_batch import biogen_b_batch
from serve.formats.bioasq import RunWriter, read_questions
from serve.formats.biogen import read_topics_a, read_topics_b
from serve.formats.given_snippets import give_snippets
from serve.formats.synergy import read_judged, read_round_questions
from tests.commands.run_here import run_here
from tests.evaluation.lint.lint_runs import cited, grounded, sentence, snippet
from tests.hostile.cpu_time import cpu_within
from tests.hostile.hostile_sets import check_sentence


def lint(path: Path) -> None:
    """Lint, fix, write and lint again, as `citeray lint --fix` does."""
    run, asked = read_run_file(path), read_asked(path)
    checked = check_run(run, asked)
    mended = path.with_name("mended")
    write_run_file(mended, type(run)(run.format, checked.rows, run.form, run.frame))
    read_run_file(mended, run.format)
    for problem in checked.problems:
        check_sentence(f"{problem.place}: {problem.message}", "")


READERS: dict[str, Callable[[Path], object]] = {
    "questions": read_questions,
    "snippets": lambda path: give_snippets(read_questions(path), [path]),
    "synergy": read_round_questions,
    "judged": lambda path: read_judged([path]),
    "examples": curate_examples,
    "remembered": lambda path: store_examples(path.with_name("examples"), [path]),
    "gold": read_gold,
    "run": lambda path: read_run(path, read_gold(path)),
    "feedback": lambda path: read_feedback([path]),
    "topics A": read_topics_a,
    "topics B": read_topics_b,
    "batch B": lambda path: biogen_b_batch(path, "bm25"),
    "task A": read_task_a,
    "task B": read_task_b,
    "labels": read_labels,
    "answers": lambda path: list(read_answers(path)),
    "lint": lint,
}

URL = "http://www.ncbi.nlm.nih.gov/pubmed/7"
QUESTION = {
    "id": "q1",
    "type": "list",
    "body": "Which drugs activate AMPK?",
    "documents": [URL, {"id": URL, "golden": False}],
    "snippets": [snippet(), snippet(golden=True)],
    "ideal_answer": ["Metformin does."],
    "exact_answer": [["metformin"], ["AICAR", "acadesine"]],
    "answerReady": True,
}
FILES: list[Any] = [
    {"questions": [QUESTION, {**QUESTION, "id": "q2", "type": "yesno", "exact_answer": "yes"}]},
    [grounded()],
    [cited(sentence())],
    [{"id": 7, "question": "What is stored?", "answer": grounded()["answer"]}],
]
BAD: list[Any] = [
    None, True, 0, -1, 10**4000, -(10**30), 1.5, 1e308, "", " ", "x" * 5000, "9" * 5000, "\ud800",
    "\0", "\x1b[2J", "\u0663", "\u202e", [], [[]], [[[1]]], {}, {"id": {}}, [None], {"": 1},
    "http://www.ncbi.nlm.nih.gov/pubmed/" + "9" * 5000, "[1" * 3000 + "]" * 3000, " " * 50_000,
]  # fmt: skip


def outcome(reader: str, path: Path) -> str:
    """Return the message of a reader's InputError, or "" if it read the file."""
    try:
        with cpu_within(10):
            READERS[reader](path)
    except InputError as error:
        sentence = str(error)
        check_sentence(sentence.replace("\n", "\\n"), "")
        assert path.name in sentence or "mended" in sentence
        return sentence
    return ""


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return (container, key) of every value inside `value`."""
    if isinstance(value, dict | list):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        return [p for key in keys for p in ((value, key), *places(value[key]))]
    return []


@pytest.mark.slow
def test_wrong_values_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for reader in READERS:
        with subtests.test(reader=reader):
            tmp_path = tmp_path_factory.mktemp("case")
            dice = random.Random(reader)
            for number in range(150):
                value = copy.deepcopy(FILES[number % len(FILES)])
                for _ in range(dice.choice([1, 1, 2, 5])):
                    container, key = dice.choice(places(value))
                    if isinstance(container, dict) and dice.random() < 0.2:
                        del container[key]
                    else:
                        container[key] = copy.deepcopy(dice.choice(BAD))
                    if not places(value):
                        break
                path = tmp_path / f"file{number}.json"
                path.write_text(json.dumps(value))
                outcome(reader, path)


def nested(depth: int, inside: str = "1") -> str:
    return f'{{"questions": [{{"id": {"[" * depth}{inside}{"]" * depth}, "type": "list"}}]}}'


TEXTS = {
    "empty": b"",
    "NUL": b"\0" * 1000,
    "no UTF-8": b'{"questions": ["\xff\xfe"]}',
    "a surrogate in UTF-8": b'{"questions": ["\xed\xa0\x80"]}',
    "deep": nested(100_000).encode(),
    "unclosed": b'{"questions": ' + b"[" * 100_000,
    "long number": nested(0, "9" * 5000).encode(),
    "long exponent": nested(0, "1e999999999").encode(),
    "questions by name": b'{"questions": {"0": {}}}',
    "no questions": b'{"questions": null}',
    "carriage returns": b'{"id": "a"}\r{"id": "b"}\r\n\r\n\x0c',
}


def test_malformed_file_is_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for content in TEXTS.values():
        with subtests.test(content=content):
            tmp_path = tmp_path_factory.mktemp("case")
            path = tmp_path / "file.json"
            path.write_bytes(content)
            for reader in READERS:
                assert outcome(reader, path) or reader == "lint"


@pytest.mark.slow
def test_deeply_nested_file_is_written_back_or_refused(tmp_path: Path) -> None:
    # Showing a value, and writing it again, both recurse deeper than reading it.
    path = tmp_path / "file.json"
    for depth in (*range(90, 110, 4), 300, *range(850, 1000, 10), 5000):
        path.write_text(nested(depth))
        for reader in ("questions", "gold", "lint", "judged", "examples", "snippets"):
            outcome(reader, path)


def test_path_that_is_not_a_file_is_refused(tmp_path: Path) -> None:
    for name in ("nowhere.json", "x" * 5000, ".", "/dev/null", "\udc80"):
        for reader in READERS.values():
            with pytest.raises(InputError):
                reader(tmp_path / name)


def test_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_given.read_given, "__defaults__", (1024**2,))
    for reader in READERS.values():
        with pytest.raises(InputError, match=r"zero"):
            reader(Path("/dev/zero"))


@pytest.mark.slow
def test_citation_marks_are_found_in_linear_time(tmp_path: Path) -> None:
    for text in (" " * 1_000_000, "[1" * 200_000 + "]" * 200_000, "[12345, " * 100_000):
        path = tmp_path / "run.json"
        entry = {**QUESTION, "type": "summary", "ideal_answer": text + "x", "documents": []}
        path.write_text(json.dumps({"questions": [entry]}))
        outcome("lint", path)


def test_damaged_lines_of_a_partial_run_are_skipped(tmp_path: Path) -> None:
    output = tmp_path / "run.json"
    key = {"system": "s", "index_version": "v", "answers": True, "inputs": ""}
    whole = json.dumps({**key, "entry": {"id": "q"}})
    broken = [json.dumps({**key, "entry": entry}) for entry in (7, [], {}, {"id": []})]
    for line in ("7", "[]", '"x"', "{}", '{"entry": 7}', "[" * 100_000, "\x00"):
        output.with_name("run.json.partial").write_text("\n".join([line, *broken, whole]))
        with RunWriter(output, "s", "v") as run:
            assert run.done == {"q"}, line


@pytest.mark.parametrize(
    "command",
    [
        ["lint", "{}", "--no-index"],
        ["answer", "{}", "-o", "run.json"],
        ["answer", "{}", "-o", "run.json", "--format", "synergy", "--feedback", "{}"],
        ["answer", "{}", "-o", "run.json", "--format", "biogen-b"],
        ["remember", "{}.nowhere", "--set", "llm.examples=examples"],
    ],
)
def test_commands_exit_with_2_and_one_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    monkeypatch.chdir(tmp_path)
    for content in ("deep", "no UTF-8", "long number"):
        path.write_bytes(TEXTS[content])
        code, out, err = run_here(*(part.format(path) for part in command))
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert line.startswith(f"citeray: {path}")


def test_terminal_escape_sequences_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"questions": [{**QUESTION, "id": "\x1b]0;gone\x07", "type": "x"}]}))
    for command in (("answer", path, "-o", "run.json"), ("lint", path, "--no-index")):
        code, out, err = run_here(*command)
        assert code != 0
        assert "\x1b]" not in out + err
        assert "\\x1b]0;gone\\x07" in out + err
