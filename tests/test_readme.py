"""Commands, options, files and make targets that README and docs/ mention exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster.settings.settings import load_settings
from commands.cli import COMMANDS, app, load_command
from tests.documentation import (
    EVERYTHING,
    ROOT,
    TEXTS,
    Command,
    code_lines,
    documented_commands,
    targets,
)

pytestmark = pytest.mark.model

MAX_README_LINES = 150
# Names of the sample corpus's own files.
SAMPLE = {path.name for path in (ROOT / "pipelines/sample").rglob("*.yaml")}
DOCUMENTED = documented_commands()


def leaves(name: str, command: Any) -> Iterator[str]:
    """Yield the full names of `command` and its subcommands, without groups."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name
        return
    for child, below in children.items():
        yield from leaves(f"{name} {child}", below)


# Every worker collects these tests, and building a command takes up to 0.1 s.
loaded = cache(load_command)
EVERY_COMMAND = [path for name in COMMANDS for path in leaves(name, loaded(name))]


def resolved(words: tuple[str, ...]) -> tuple[str, Any, tuple[str, ...]]:
    """Return the full name of the command in `words`, the command, and its arguments."""
    if words[0] not in COMMANDS:
        raise LookupError(f"citeray has no command {words[0]}")
    name, command, rest = words[0], loaded(words[0]), words[1:]
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


def test_readme_shows_the_first_commands_and_the_medical_disclaimer() -> None:
    text = TEXTS["README.md"]
    assert {"demo", "test", "serve", "bench", "docs"} <= targets(text)
    own = {resolved(c.words)[0] for c in DOCUMENTED if c.page == "README.md"}
    assert {"sample", "index build", "index update", "search", "ask", "serve"} <= own
    assert "medical advice" in text


def test_commands_page_shows_every_command() -> None:
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
    # The words after `--` are another command, which `job submit` runs.
    end = rest.index("--") if "--" in rest else len(rest)
    known = {o for option in command.params for o in (*option.opts, *option.secondary_opts)}
    given = {word.partition("=")[0] for word in rest[:end] if re.match(r"--?[a-z]", word)}
    assert given <= known | {"--help"}
    # A documented command with arguments must be runnable, so it needs all required options.
    needed = [set(o.opts) for o in command.params if o.required and o.opts[0].startswith("-")]
    assert not rest or all(names & given for names in needed)
    if rest[end + 1 :]:
        resolved(rest[end + 1 :])


def test_documented_cluster_jobs_encode_on_gpus() -> None:
    lines = [shlex.split(line) for page in ("docs/cluster.md", "docs/commands.md")
             for line in code_lines(TEXTS[page]) if " job submit " in f" {line}"]  # fmt: skip
    jobs = [tuple(words[words.index("--") + 1 :]) for words in lines]
    assert {words[0] for words in lines} == {"citeray", "ray"}
    for words in jobs:
        _, command, rest = resolved(words[words[0] == "citeray" :])
        given = command.make_context("job", list(rest)).params
        assert load_settings(given["config"], given["overrides"] or ()).encoder.gpus > 0, words


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets(EVERYTHING) <= set(re.findall(r"^([a-z-]+):", makefile, re.M))


def test_every_documented_settings_file_exists() -> None:
    named = set(re.findall(r"(?:--config |`|over: )([a-z-]+\.yaml)\b", EVERYTHING)) - SAMPLE
    places = {name: (name, f"configs/**/{name}", f"k8s/**/{name}") for name in named}
    assert [n for n in named if not any([*ROOT.glob(place)] for place in places[n])] == []


def has_files(path: Path) -> bool:
    """Say whether `path` is a file or holds one; a moved package leaves its bytecode behind."""
    return path.is_file() or any(p.suffix != ".pyc" and p.is_file() for p in path.rglob("*"))


def test_every_documented_path_exists() -> None:
    folders = "tests|benchmarks|serve|evaluation|cluster|pipelines|images|k8s|requirements|docs"
    tree = TEXTS["docs/architecture.md"]
    paths = {*re.findall(rf"`((?:{folders})/[\w./-]+)`", EVERYTHING)}
    paths |= {*re.findall(r"\bconfigs/[\w./-]*\w/?", EVERYTHING)}
    paths |= {*re.findall(r"^  ([a-z_]+\.py|[a-z]+/) ", tree, re.M)}
    paths |= {*re.findall(r"^([a-z0-9]+/)(?:, [a-z0-9]+/)* ", tree, re.M)}
    assert [p for p in sorted(paths) if not any(map(has_files, ROOT.glob(f"**/{p}")))] == []


def test_every_documented_module_exists() -> None:
    modules = set(re.findall(r"python -m\s+((?:tests|benchmarks)[\w.]+)", EVERYTHING))
    paths = {module: ROOT / module.replace(".", "/") for module in modules}
    files = {m: (p.with_suffix(".py"), p / "__main__.py") for m, p in paths.items()}
    assert [m for m in sorted(modules) if not any(f.is_file() for f in files[m])] == []
