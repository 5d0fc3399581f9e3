"""Reading and writing of run files and question files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from evaluation.lint.lint_run import read_asked, read_run_file, write_run_file
from evaluation.lint.note_problems import Asked


def test_run_format_is_detected(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, wanted in [
        ('{"questions": [{"id": "q"}]}', "bioasq"),
        ('{"questions": []}', "bioasq"),
        ('{"questions": [{"id": "q", "answerReady": true}]}', "synergy"),
        ('[{"metadata": {}, "answer": []}]', "biogen-a"),
        ('{"metadata": {}, "responses": []}', "biogen-b"),
        ('{"metadata": {}, "answer": []}\n\n{"metadata": {}, "answer": []}\n', "biogen-a"),
    ]:
        with subtests.test(text=text, wanted=wanted):
            (tmp_path / "run").write_text(text)
            assert read_run_file(tmp_path / "run").format == wanted


def test_unreadable_run_file_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, run_format, message in [
        ("", None, "is empty"),
        ("[5]", None, "not in the format of a known run format"),
        ("[]", "bioasq", "not in the format of bioasq"),
        ('{"questions": []}', "biogen-a", "not in the format of biogen-a"),
        ('{"questions": 5}', None, "not in the format of a known run format"),
        ('{"questions": [NaN]}', None, "line 1: not JSON: NaN is not a valid JSON number"),
        ('{"answer": []}\n{"ans', None, "line 2: not JSON"),
        ("[]", "trec", "--format trec: unknown"),
    ]:
        with subtests.test(text=text, run_format=run_format):
            (tmp_path / "run").write_text(text)
            with pytest.raises(InputError, match=message):
                read_run_file(tmp_path / "run", run_format)


@pytest.mark.parametrize(
    "text",
    [
        '{"username": "u", "questions": [{"id": "\\ud800", "type": "\u03b2"}]}',
        '[{"answer": []}]',
        '{"answer": []}\n{"answer": [1]}',
    ],
)
def test_run_is_written_in_its_own_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").write_text(text, encoding="utf-8")
    run = read_run_file(tmp_path / "run")
    write_run_file(tmp_path / "out", run)
    assert read_run_file(tmp_path / "out") == run
    written = (tmp_path / "out").read_text(encoding="utf-8")
    if run.form == "lines":
        assert written.splitlines() == text.splitlines()
    else:
        assert json.loads(written) == json.loads(text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "run"]


def test_questions_are_read_from_every_format(tmp_path: Path) -> None:
    path = tmp_path / "asked"
    path.write_text(
        '{"questions": [{"id": "q", "type": "list", "answerReady": true}, {"id": "r"}]}'
    )
    assert read_asked(path) == {"q": Asked("list", True), "r": Asked()}
    path.write_text('{"metadata": {"qa_id": 116}}\n{"topic_id": "181", "type": "unknown"}')
    assert read_asked(path) == {"116": Asked(), "181": Asked()}
    path.write_text('[{"id": "q"}, {"id": " "}]')
    with pytest.raises(InputError, match="record 1: no id"):
        read_asked(path)
