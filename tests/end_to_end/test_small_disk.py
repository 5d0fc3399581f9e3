"""The commands themselves on a disk that is full or read-only, whose errors come out of workers."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.command import run, small_settings, with_settings
from tests.end_to_end.index_jobs import write_corpus
from tests.pipelines.test_small_disk import OWN_MOUNTS, may_mount

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

# Each step leaves its exit code, what it said, and the index as it was.
STEPS = """
set -u
mount -t tmpfs -o size=600k tmpfs "$DISK"
step() { name=$1; shift; "$@" 2> "$KEPT/$name.said" > /dev/null; echo $? > "$KEPT/$name.code"
         find "$DISK" -name CURRENT > "$KEPT/$name.published"; }
step full sh -c "$BUILD"
mount -o remount,size=64m "$DISK"
step again sh -c "$BUILD"
mount -o remount,ro "$DISK"
step read-only sh -c "$UPDATE"
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory, encoder: Path) -> dict[str, dict[str, Any]]:
    if not may_mount():
        pytest.skip("this machine lets nobody mount a disk of their own")
    folder = tmp_path_factory.mktemp("small-disk")
    corpus = write_corpus(folder / "pubmed", per_file=300)
    disk, kept = folder / "disk", folder / "kept"
    disk.mkdir()
    kept.mkdir()
    citeray = [sys.executable, "-m", "commands.cli", "index"]
    settings = small_settings(disk / "index", encoder, shards=2)
    commands = {
        "BUILD": with_settings([*citeray, "build", str(corpus.baseline)], settings),
        "UPDATE": with_settings([*citeray, "update", str(corpus.folder)], settings),
    }
    given = {name: shlex.join(command) for name, command in commands.items()}
    done = run([*OWN_MOUNTS, "bash", "-c", STEPS], {**given, "DISK": str(disk), "KEPT": str(kept)})
    assert done.returncode == 0, done.stderr
    return {
        path.stem: {
            "code": int(path.read_text()),
            "said": path.with_suffix(".said").read_text(),
            "published": bool(path.with_suffix(".published").read_text()),
        }
        for path in kept.glob("*.code")
    }


@pytest.mark.parametrize(
    ("step", "fault"),
    [("full", "the disk is full; "), ("read-only", "the file system is read-only")],
)
def test_a_disk_that_cannot_be_written_ends_in_one_sentence(
    steps: dict[str, dict[str, Any]], step: str, fault: str
) -> None:
    assert steps[step]["code"] == 1
    (said,) = [x for x in steps[step]["said"].splitlines() if x.startswith("citeray: ")]
    assert fault in said
    assert "/disk/index" in said
    assert "Traceback" not in steps[step]["said"]


def test_nothing_is_published_on_a_full_disk(steps: dict[str, dict[str, Any]]) -> None:
    assert not steps["full"]["published"]


def test_with_room_the_same_command_completes(steps: dict[str, dict[str, Any]]) -> None:
    assert (steps["again"]["code"], steps["again"]["published"]) == (0, True), steps["again"]
