import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from commands.cli import COMMANDS, load_command, main
from commands.context import make_context
from tests.small_index import citation, make_index
from tests.tiny_adapter import make_tiny_adapter
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.ray

# Beside the interpreter of the tests, wherever its environment lies.
CITERAY = Path(sys.executable).parent / "citeray"
ROOT = Path(__file__).resolve().parents[2]


def citeray(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command, in this process: one of its own takes seconds to start."""
    command, out, err = ["citeray", *map(str, arguments)], io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.dict(os.environ),
        patch.object(sys, "argv", command),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return subprocess.CompletedProcess(
        command, int(ended.value.code or 0), out.getvalue(), err.getvalue()
    )


def citeray_as_installed(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it."""
    command = [str(CITERAY), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index")
    make_index(path, [citation(1, "Metformin activates AMPK."), citation(2, "Warfarin.")])
    return path


def the_one_line(done: subprocess.CompletedProcess[str]) -> str:
    """What standard error says: one line in citeray's own words, and no traceback."""
    (line,) = done.stderr.splitlines()
    assert line.startswith("citeray: ")
    return line


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_the_version_is_printed_and_the_code_is_0(asked: str) -> None:
    done = citeray_as_installed(asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()[0].isdigit()


def test_help_names_every_command() -> None:
    done = citeray_as_installed("--help")
    assert done.returncode == 0
    for command in ("index", "search", "ask", "answer", "serve", "demo", "models", "sample"):
        assert f" {command} " in done.stdout


@pytest.mark.parametrize("arguments", [["no-such-command"], ["index", "build"], ["search"]])
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    done = citeray(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["index", "info", "--set", "index.shard=4"], "unknown key index.shard"),
        (["index", "info", "--set", "index.path=/nowhere"], "/nowhere"),
        (["index", "info", "--nonsense"], "No such option: --nonsense"),
        (["search"], "Missing argument"),
    ],
)
def test_with_json_an_error_is_an_object_of_one_line(arguments: list[str], said: str) -> None:
    done = citeray(*arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert said in json.loads(line)["error"]


def test_memory_that_runs_out_is_1_and_one_line() -> None:
    code = "from commands import cli; cli.app = lambda **_: bytes(1 << 62); cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert the_one_line(done).startswith("citeray: memory ran out; ")


def test_an_unknown_setting_is_2_and_named_with_the_nearest() -> None:
    done = citeray("index", "info", "--set", "index.shard=4")
    assert done.returncode == 2
    assert "unknown key index.shard; did you mean shards?" in the_one_line(done)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("index.shards=none", "index.shards: "),
        ("index.shards", "expected key=value"),
        ("index.shards=[1", "not YAML"),
    ],
)
def test_a_bad_setting_is_2_and_one_line(setting: str, said: str) -> None:
    done = citeray("index", "info", "--set", setting)
    assert done.returncode == 2
    assert said in the_one_line(done)


def test_a_config_that_is_not_there_is_2_and_tells_which_are() -> None:
    done = citeray("models", "list", "--config", "nowhere.yaml")
    assert done.returncode == 2
    assert "gpu-node.yaml" in the_one_line(done)


def test_an_index_that_is_not_there_is_2_and_says_how_to_build_one(tmp_path: Path) -> None:
    done = citeray_as_installed("index", "info", "--set", f"index.path={tmp_path}")
    assert done.returncode == 2
    assert "citeray index build SOURCE" in the_one_line(done)


def test_nothing_to_build_is_2(tmp_path: Path) -> None:
    done = citeray("index", "build", tmp_path)
    assert done.returncode == 2
    assert "in this folder" in the_one_line(done)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "why?", "--system", "best"], "--system best: unknown; there are: aqams"),
        (["ask", "why?", "--type", "maybe"], "--type maybe: unknown; there are: yesno"),
        (["answer", "q.json", "-o", "run.json", "--format", "trec"], "--format trec: unknown"),
        (["answer", "no-such-file.json", "-o", "run.json"], "no-such-file.json: cannot be read"),
    ],
)
def test_a_bad_option_is_2_and_one_line(arguments: list[str], said: str) -> None:
    done = citeray(*arguments)
    assert done.returncode == 2
    assert said in the_one_line(done)


def test_a_k_out_of_range_is_2() -> None:
    done = citeray("search", "why?", "-k", 101)
    assert done.returncode == 2
    assert "100" in done.stderr


def test_index_info_as_json_is_the_manifest(index: Path) -> None:
    done = citeray("index", "info", "--json", "--set", f"index.path={index}")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert (found["version"], found["citations"], len(found["shards"])) == ("v000001", 2, 2)


def test_index_info_for_people_names_the_same(index: Path) -> None:
    done = citeray("index", "info", "--set", f"index.path={index}")
    assert done.returncode == 0
    assert "v000001" in done.stdout


def test_models_list_as_json_names_what_the_settings_use() -> None:
    done = citeray("models", "list", "--json", "--set", "encoder.model=file:/models/mine")
    assert done.returncode == 0
    rows = {row["use"]: row for row in json.loads(done.stdout)}
    assert rows["encoder"]["name"] == "file:/models/mine"
    assert set(rows["llm"]) == {"use", "name", "stored", "licence"}
    assert rows["llm"]["licence"] == "Apache-2.0"


def test_models_list_leaves_out_what_is_switched_off() -> None:
    done = citeray("models", "list", "--json", "--set", "llm.kind=none")
    assert "llm" not in {row["use"] for row in json.loads(done.stdout)}


def test_a_model_that_cannot_be_had_is_2_by_name(tmp_path: Path) -> None:
    done = citeray("models", "pull", "no-such-form")
    assert done.returncode == 2
    assert "model name 'no-such-form' is not valid" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_adapter_is_pulled_with_the_model_that_it_is_for(tmp_path: Path) -> None:
    base = make_tiny_encoder(tmp_path / "base")
    adapter = make_tiny_adapter(base, tmp_path / "adapter")
    done = citeray("models", "pull", f"file:{adapter}", "--json")
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(done.stdout)] == [f"file:{adapter}", f"file:{base}"]


def test_the_sample_as_json_names_the_files_it_wrote(tmp_path: Path) -> None:
    done = citeray("sample", tmp_path / "s", "--json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert len(found["sources"]) == 3
    assert all(Path(p).is_file() for p in (*found["sources"], found["questions"]))


def test_results_go_to_standard_output_while_a_session_redirects_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    context = make_context(None, None, True)
    with redirect_stdout(sys.stderr):
        context.print_json({"exact": "yes"})
        context.out.print("an answer")
        print("Ray's own words")
    told = capsys.readouterr()
    assert told.out.splitlines() == ['{"exact": "yes"}', "an answer"]
    assert told.err == "Ray's own words\n"


def test_help_tells_what_each_command_says_of_itself() -> None:
    told = {name: line for name, (_, line) in COMMANDS.items()}
    assert told == {name: load_command(name).get_short_help_str(200) for name in COMMANDS}


def test_help_loads_neither_torch_nor_ray_nor_numpy() -> None:
    script = (
        "import sys; from commands.cli import app; app(['--help'], standalone_mode=False); "
        "print([m for m in ('torch', 'ray', 'numpy', 'transformers') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_misspelt_command_gets_a_suggestion() -> None:
    done = citeray("serch", "why?")
    assert done.returncode == 2
    assert "Did you mean 'search'" in done.stderr
