"""The installed wheel works outside the clone, next to a user's packages, with few dependencies."""

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
# Package names that a user's project may also have.
THEIRS = (*SOURCES, "docs", "tests")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the wheel, built in a clean folder."""
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
    """Environment with the wheel and the packages of the tests."""
    made = FreshEnv(tmp_path_factory.mktemp("env"))
    made.pip("install", "--quiet", "--no-deps", str(wheel), cwd=wheel.parent)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """User's folder with packages that have the same names as ours."""
    for name in THEIRS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the user'\n")
    return tmp_path


def test_wheel_has_one_top_level_package(wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(wheel, tmp_path, "zip")
    assert {p.name for p in tmp_path.iterdir() if p.suffix != ".dist-info"} == {"citeray"}
    assert (tmp_path / "citeray" / "py.typed").is_file()


def test_version_is_the_git_tag(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for step in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("tag", "v0.2.0")):
        subprocess.run(["git", *author, *step], cwd=tmp_path, check=True)
    command = [sys.executable, "-m", "setuptools_scm"]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "0.2.0"


def test_wheel_does_not_shadow_packages_of_the_user(env: FreshEnv, project: Path) -> None:
    script = "; ".join(
        [
            "from citeray import Answer, CiteRay",
            "from citeray.serve.http.api import create_api",
            *(f"import {name}; assert {name}.OWNER == 'the user'" for name in THEIRS),
        ]
    )
    done = env.run(["python", "-c", script], project)
    assert done.returncode == 0, done.stderr


def test_commands_of_the_wheel_run(env: FreshEnv, project: Path) -> None:
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
    """An environment with only `pip install citeray`."""
    made = FreshEnv(tmp_path_factory.mktemp("client"), bare=True)
    made.pip("install", "--quiet", str(wheel), cwd=wheel.parent)
    return made


def test_client_and_remote_commands_need_neither_torch_nor_ray(
    client_env: FreshEnv, tmp_path: Path
) -> None:
    script = "import importlib.util as u; from citeray import *; print(u.find_spec('torch'))"
    done = client_env.run(["python", "-c", script], tmp_path)
    assert done.stdout.strip() == "None", done.stderr
    for command in ("search", "ask", "answer", "lint", "audit", "job"):
        shown = client_env.run(["citeray", command, "--help"], tmp_path)
        assert shown.returncode == 0, shown.stderr


def test_command_without_its_packages_names_the_extra(client_env: FreshEnv, tmp_path: Path) -> None:
    done = client_env.run(["citeray", "index", "build", "."], tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.endswith(" is not installed; install the wheel with its extra [cpu] or [gpu]")
