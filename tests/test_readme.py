"""README and docs/ promise commands, files and links; each must exist.

Those that do work are run in end_to_end/.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner

from commands.cli import COMMANDS, app, load_command
from tests.documentation import (
    DOCS,
    EVERYTHING,
    README,
    ROOT,
    TEXTS,
    Command,
    documented_commands,
    targets,
)

pytestmark = pytest.mark.ray

MAX_README_LINES = 150
# The sample corpus names its own files.
SAMPLE = {path.name for path in (ROOT / "pipelines/sample").rglob("*.yaml")}
DOCUMENTED = documented_commands()
TARGETS = sorted(targets(EVERYTHING))


def leaves(name: str, command: Any) -> Iterator[str]:
    """The full names of the commands at and below `command`."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name
        return
    for child, below in children.items():
        yield from leaves(f"{name} {child}", below)


EVERY_COMMAND = [path for name in COMMANDS for path in leaves(name, load_command(name))]


def resolved(words: tuple[str, ...]) -> tuple[str, Any, tuple[str, ...]]:
    """(the full name of the command that `words` call, the command, the words after it)."""
    if words[0] not in COMMANDS:
        raise LookupError(f"citeray has no command {words[0]}")
    name, command, rest = words[0], load_command(words[0]), words[1:]
    while children := getattr(command, "commands", None):
        if not rest:
            break
        if rest[0] not in children:
            raise LookupError(f"citeray {name} has no command {rest[0]}")
        name, command, rest = f"{name} {rest[0]}", children[rest[0]], rest[1:]
    return name, command, rest


NAMED = sorted({resolved(command.words)[0] for command in DOCUMENTED if command.words[0][0] != "-"})


def test_readme_is_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) <= MAX_README_LINES


def test_readmes_first_screen_shows_what_it_is_and_what_it_prints() -> None:
    lines = TEXTS["README.md"].splitlines()[:45]
    assert "make demo " in "\n".join(lines)
    assert "make test " in "\n".join(lines)
    assert any(line.startswith("$ citeray ask ") for line in lines)
    assert any(line.startswith("demo finished in ") for line in lines)


def test_readme_says_that_it_is_no_medical_advice() -> None:
    assert "medical advice" in TEXTS["README.md"]


def test_readme_names_the_commands_that_a_newcomer_needs() -> None:
    own = {resolved(c.words)[0] for c in DOCUMENTED if c.page == "README.md"}
    assert {"sample", "index build", "index update", "search", "ask", "serve"} <= own
    assert {"index build", "index info", "search", "ask", "answer", "serve"} <= set(NAMED)
    assert {"demo", "test", "serve", "bench", "docs"} <= targets(TEXTS["README.md"])


def test_every_command_has_its_place_on_the_page_of_commands() -> None:
    shown = {resolved(c.words)[0] for c in DOCUMENTED if c.page == "docs/commands.md"}
    assert set(EVERY_COMMAND) - shown == {"version"}


def test_every_documented_command_exists(subtests: pytest.Subtests) -> None:
    for command in NAMED:
        with subtests.test(command=command):
            done = CliRunner().invoke(app, [*command.split(), "--help"])
            assert done.exit_code == 0, done.output
            assert f"citeray {command} " in done.output


@pytest.mark.parametrize("documented", DOCUMENTED, ids=str)
def test_every_documented_option_exists(documented: Command) -> None:
    if documented.words[0].startswith("-"):
        assert documented.words[0] in {"--help", "--install-completion"}
        return
    _, command, rest = resolved(documented.words)
    # What comes after `--` is another command, which `job submit` runs.
    end = rest.index("--") if "--" in rest else len(rest)
    known = {o for option in command.params for o in (*option.opts, *option.secondary_opts)}
    given = {word.partition("=")[0] for word in rest[:end] if re.match(r"--?[a-z]", word)}
    assert given <= known | {"--help"}
    # A line that gives a command arguments is one to be run: nothing that it needs may be missing.
    needed = [set(o.opts) for o in command.params if o.required and o.opts[0].startswith("-")]
    assert not rest or all(names & given for names in needed)
    if rest[end + 1 :]:
        resolved(rest[end + 1 :])


def test_every_make_target_exists(subtests: pytest.Subtests) -> None:
    for target in TARGETS:
        with subtests.test(target=target):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_every_file_of_configs_that_is_named_exists(subtests: pytest.Subtests) -> None:
    for path in sorted(set(re.findall(r"\bconfigs/[\w./-]*\w/?", EVERYTHING))):
        with subtests.test(path=path):
            assert (ROOT / path).exists()


YAML = sorted(set(re.findall(r"(?:--config |`|over: )([a-z-]+\.yaml)\b", EVERYTHING)))


def test_every_settings_file_that_is_named_exists(subtests: pytest.Subtests) -> None:
    for name in YAML:
        with subtests.test(name=name):
            places = (name, f"configs/**/{name}", f"k8s/**/{name}")
            assert any([*ROOT.glob(place)] for place in places) or name in SAMPLE


TREE = TEXTS["docs/architecture.md"]


def test_every_file_of_the_tree_exists(subtests: pytest.Subtests) -> None:
    for path in re.findall(r"^  ([a-z_]+\.py|[a-z]+/) ", TREE, re.M):
        with subtests.test(path=path):
            assert list(ROOT.glob(f"*/{path}")), path


def test_every_folder_of_the_tree_exists(subtests: pytest.Subtests) -> None:
    for path in re.findall(r"^([a-z0-9]+/)(?:, [a-z0-9]+/)* ", TREE, re.M):
        with subtests.test(path=path):
            assert (ROOT / path).is_dir()


BENCHES = sorted(set(re.findall(r"python -m\s+((?:tests|benchmarks)[\w.]+)", EVERYTHING)))


def test_every_bench_that_is_named_exists(subtests: pytest.Subtests) -> None:
    for module in BENCHES:
        with subtests.test(module=module):
            path = ROOT / module.replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


FOLDERS = "tests|benchmarks|serve|evaluation|cluster|pipelines|images|k8s|requirements|docs"
PATHS = sorted(set(re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", EVERYTHING)))


def test_every_path_that_is_named_exists(subtests: pytest.Subtests) -> None:
    for path in PATHS:
        with subtests.test(path=path):
            assert (ROOT / path).exists() or list(ROOT.glob(f"**/{path}"))


def test_docs_and_readme_are_read() -> None:
    assert README.name in TEXTS
    assert len(list(DOCS.rglob("*.md"))) > 20
