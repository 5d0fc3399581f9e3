"""Verification reports a damage to any file, and nothing for an intact index."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.errors import IndexFormatError
from cluster.index.layout import CURRENT, LEASE
from cluster.index.lease import hold_lease
from cluster.index.manifest import current_version, read_manifest
from pipelines.verify.verify_index import verify_index
from tests.pipelines.small_disk import OWN_MOUNTS, ROOT, require_mounts
from tests.pipelines.verify.built_index import SEGMENT, flip_byte, only
from tests.pipelines.verify.damages import Damage, damaged, make_history, unnamed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_history(tmp_path_factory.mktemp("history"))


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 8), pytest.param(0, 500, marks=pytest.mark.nightly)]
)
def test_random_damage_is_reported_with_its_file(history: Path, seed: int, count: int) -> None:
    sound = verify_index(history)
    assert (sound.version, sound.findings, sound.leftovers) == ("v000003", (), ())
    missed, drawn = unnamed(history, seed, count)
    assert missed == []
    assert drawn.total() == count


@pytest.mark.parametrize("file", [str(SEGMENT / "segment.json"), CURRENT, LEASE])
def test_damaged_record_is_reported(index: Path, file: str) -> None:
    for kind, at, bit in (("flip", 0.5, 0), ("cut", 0.999, 0), ("extend", 0, 10), ("delete", 0, 0)):
        with damaged(index, Damage(kind, (file,), at, bit)):
            for quick in (True, False):
                assert only(verify_index(index, quick=quick)).place == file, kind


def test_changed_token_in_current_is_detected(index: Path) -> None:
    text = (index / CURRENT).read_text()
    (index / CURRENT).write_text(text.replace('"token": 1', '"token": 3'))
    with pytest.raises(IndexFormatError, match="CURRENT: damaged"):
        read_manifest(index)
    with pytest.raises(IndexFormatError, match="CURRENT: damaged"), hold_lease(index, "update"):
        pass


def test_pointer_without_checksum_is_accepted(index: Path) -> None:
    pointer = json.loads((index / CURRENT).read_text())
    (index / CURRENT).write_text(json.dumps({k: pointer[k] for k in ("version", "sha256")}))
    assert current_version(index) == "v000001"
    assert verify_index(index).findings == ()


def test_damaged_earlier_manifest_is_reported(history: Path, tmp_path: Path) -> None:
    index = Path(shutil.copytree(history, tmp_path / "index"))
    flip_byte(index / "versions/v000001.json")
    finding = only(verify_index(index))
    assert finding.place == "versions/v000001.json"
    assert "--as-of cannot show v000001" in finding.mend


READ_ONLY = """
import sys
from pathlib import Path
from pipelines.verify.verify_index import verify_index
found = verify_index(Path(sys.argv[1]))
print(found.version, found.citations, *found.findings, *found.leftovers, sep="\\n")
"""


@pytest.mark.process
def test_intact_index_on_a_read_only_disk_has_no_findings(index: Path) -> None:
    require_mounts()
    mounts = f"mount --bind {index} {index} && mount -o remount,ro,bind {index}"
    command = f'{mounts} && exec {sys.executable} -c "$0" {index}'
    done = subprocess.run(
        [*OWN_MOUNTS, "sh", "-c", command, READ_ONLY],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout.split("\n"), done.returncode) == (["v000001", "40", ""], 0), done.stderr
