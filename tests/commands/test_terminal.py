"""Commands print text unchanged in UTF-8 and report a full disk."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest
from rich.progress import Progress
from rich.table import Table

from commands.cli import main
from commands.context import make_context
from commands.terminal import finish_output, make_console, make_text_column, prepare_output

DATA = (
    "Serum diluted 1:100:1000 and the dog:cat:rat ratio",
    "[Plague in rats [bold]of Tonkin[/bold]] :skull:",
    "a[/b]/o.json",
    "out[final].json",
    r"a \[b] \ c",
)


def printed(make: str, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the output of one way to print `text`, including table borders or progress bars."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", out)
    context = make_context(None, None, json_output=False)
    if make == "out":
        context.out.print(text, soft_wrap=True)
    elif make == "log":
        context.log.print(text, style="red")
    elif make == "table":
        table = Table(text, title=text)
        table.add_row(text)
        wide = make_console(out)
        wide.width = 200
        wide.print(table)
    else:
        progress = Progress(make_text_column("{task.description}"), console=context.log)
        progress.add_task(text)
        context.log.print(progress.get_renderable())
    return out.getvalue()


def test_consoles_print_text_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = {"out": 1, "log": 1, "table": 3, "progress": 1}
    found = {
        (make, text): printed(make, text, monkeypatch).count(text) for make in ways for text in DATA
    }
    assert found == {(make, text): times for make, times in ways.items() for text in DATA}


def run_main(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Return the exit code of `citeray ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["citeray", *arguments])
    with pytest.raises(SystemExit) as exit_info:
        main()
    return exit_info.value.code


def test_command_output_is_printed_unchanged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = tmp_path / "run:100:[final].json"
    assert run_main("lint", str(run), monkeypatch=monkeypatch) == 2
    assert str(run) in capsys.readouterr().err
    assert run_main("lint", "--:100:[b]", monkeypatch=monkeypatch) == 2
    assert "--:100:[b]" in capsys.readouterr().err
    question = {"id": "q:100:x", "type": "factoid", "documents": ["x:dog:y"]}
    question |= {"exact_answer": [["a:b:c"], ["a:b:c"]]}
    run.write_text(json.dumps({"questions": [question]}))
    assert run_main("lint", str(run), monkeypatch=monkeypatch) == 1
    shown = capsys.readouterr().out
    assert [text for text in ("q:100:x", "'x:dog:y'", "'a:b:c'") if text not in shown] == []


def test_standard_output_is_utf_8_in_every_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    written = {}
    for encoding in ("ascii", "latin-1", "utf-8"):
        buffer = io.BytesIO()
        stream = io.TextIOWrapper(buffer, encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        prepare_output()
        print("Sørensen 漢 \ud800")
        finish_output()
        written[encoding] = buffer.getvalue()
    expected = "Sørensen 漢 \\ud800\n".encode()
    assert written == dict.fromkeys(written, expected)
    # A terminal keeps its own encoding.
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_output()
    assert sys.stdout.encoding == "latin-1"


def test_full_disk_ends_with_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = "standard output: cannot be written to: No space left on device"
    found = {}
    for arguments in (["version"], ["--help"], ["--version"], ["lint", "-h"]):
        # Fully buffered, as when redirected to a file, and unbuffered, as with PYTHONUNBUFFERED.
        for through in (False, True):
            with open("/dev/full", "wb", buffering=0) as raw:
                buffer = raw if through else io.BufferedWriter(raw)
                stream = io.TextIOWrapper(buffer, write_through=through)  # type: ignore[arg-type]
                monkeypatch.setattr(sys, "stdout", stream)
                code = run_main(*arguments, monkeypatch=monkeypatch)
                lines = capsys.readouterr().err.splitlines()
                found[*arguments, through] = (code, len(lines), wanted in lines[0])
    assert found == dict.fromkeys(found, (1, 1, True))


def test_closed_pipe_ends_without_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert run_main("version", monkeypatch=monkeypatch) == 1
        assert capsys.readouterr().err == ""
