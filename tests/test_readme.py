"""README promises commands; each must exist. Those that do work are run in end_to_end/."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = sorted(
    {
        " ".join(match.group(1).split())
        for match in re.finditer(r"citeray ((?:index |models |job )?[a-z]+)\b(?=[ `\n])", README)
    }
    - {"index", "job", "models"}
)
TARGETS = sorted(set(re.findall(r"(?:^|`)make ([a-z]+)", README, re.M)))


def test_readme_names_the_commands_that_a_newcomer_needs() -> None:
    assert {"index build", "index info", "search", "ask", "answer", "serve"} <= set(COMMANDS)
    assert {"demo", "test", "serve", "bench"} <= set(TARGETS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_readme_exists(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "commands.cli", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_in_readme_exists(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize("path", re.findall(r"^  ([a-z_]+\.py|[a-z]+/) ", README, re.M))
def test_every_file_in_readmes_tree_exists(path: str) -> None:
    assert list(ROOT.glob(f"*/{path}")), path
