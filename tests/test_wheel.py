"""The wheel works outside the clone, beside a user's own names, and its client needs little."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fresh_env import FreshEnv

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("cluster", "commands", "configs", "evaluation", "pipelines", "planning", "serve")
# What a user's own project may have beside it.
THEIRS = (*SOURCES, "docs", "tests")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the tracked files, so that nothing is left of an earlier build."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    step = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    subprocess.run([sys.executable, "-m", *step], cwd=source, check=True)
    (built,) = folder.glob("citeray-*.whl")
    return built


@pytest.fixture(scope="module")
def env(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshEnv:
    """The wheel, beside the packages of the tests."""
    made = FreshEnv(tmp_path_factory.mktemp("env"))
    made.pip("install", "--quiet", "--no-deps", str(wheel), cwd=wheel.parent)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's folder, whose names are those of our packages, each of its own content."""
    for name in THEIRS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the user'\n")
    return tmp_path


def test_the_wheel_holds_one_top_level_name(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path, "zip")
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".dist-info"} == {"citeray"}
    assert (tmp_path / "citeray" / "py.typed").is_file()


def test_the_version_is_that_of_the_git_tag(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for step in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("tag", "v0.2.0")):
        subprocess.run(["git", *author, *step], cwd=tmp_path, check=True)
    told = [sys.executable, "-m", "setuptools_scm"]
    done = subprocess.run(told, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "0.2.0"


def test_names_of_a_users_project_and_of_the_wheel_do_not_meet(
    env: FreshEnv, project: Path
) -> None:
    script = "; ".join(
        [
            "from citeray import Answer, CiteRay",
            "from citeray.serve.http.api import create_api",
            *(f"import {name}; assert {name}.OWNER == 'the user'" for name in THEIRS),
        ]
    )
    done = env.run(["python", "-c", script], project)
    assert done.returncode == 0, done.stderr


def test_the_wheels_commands_index_and_search(env: FreshEnv, project: Path) -> None:
    shown = env.run(["citeray", "--help"], project)
    assert " index " in shown.stdout
    made = env.run(["citeray", "sample", "sample"], project)
    assert made.returncode == 0, made.stderr
    listed = env.run(["python", "-m", "citeray", "models", "list", "--json"], project)
    assert listed.returncode == 0, listed.stderr
    planned = env.run(["citeray", "plan", "--citations", "1M", "--json"], project)
    assert planned.returncode == 0, planned.stderr


@pytest.fixture(scope="module")
def client_env(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> FreshEnv:
    """What `pip install citeray` brings, and nothing else."""
    made = FreshEnv(tmp_path_factory.mktemp("client"), bare=True)
    made.pip("install", "--quiet", str(wheel), cwd=wheel.parent)
    return made


def test_the_client_and_remote_commands_need_neither_torch_nor_ray(
    client_env: FreshEnv, tmp_path: Path
) -> None:
    script = "import importlib.util as u; from citeray import *; print(u.find_spec('torch'))"
    done = client_env.run(["python", "-c", script], tmp_path)
    assert done.stdout.strip() == "None", done.stderr
    for command in ("search", "ask", "answer", "lint", "audit", "job"):
        shown = client_env.run(["citeray", command, "--help"], tmp_path)
        assert shown.returncode == 0, shown.stderr


def test_a_command_that_needs_more_says_what_to_install(
    client_env: FreshEnv, tmp_path: Path
) -> None:
    done = client_env.run(["citeray", "index", "build", "."], tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(" is not installed; install the wheel with its extra [cpu] or [gpu]")
