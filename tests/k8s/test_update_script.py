"""`run-update.sh` and `wait.sh`, run by a shell with a small kubectl that replays states."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.k8s.chart import named
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

# Prints one line of `states` for each `get`, and keeps what is created and deleted.
KUBECTL = """#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
case "$*" in
  "get "*" --ignore-not-found --output jsonpath="*)
    if [ -e outage ]; then rm outage; echo "the server is busy" >&2; exit 1; fi
    head -n 1 states | tr -d '\\n'; sed -i 1d states ;;
  "delete --raw "*) cat > deleted ;;
  "create --filename "*) if [ -e exists ]; then echo "AlreadyExists" >&2; exit 1; fi
    cat "$3" > created ;;
  *) echo "unexpected: $*" >&2; exit 3 ;;
esac
"""
RUNNING, DONE = "found Running  ", "found Complete SUCCEEDED "


def run(
    folder: Path, words: list[str], states: list[str], *marks: str, limit: str = "60"
) -> subprocess.CompletedProcess[str]:
    """Run a script in a new folder; `marks` are files there, such as `outage`."""
    folder.mkdir()
    for mark in marks:
        (folder / mark).touch()
    (folder / "states").write_text("\n".join(states) + "\n")
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o755)
    for name, text in named("pubmed", "ConfigMap", "citeray-run-update")["data"].items():
        (folder / name).write_text(text)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "CITERAY_POLL_S": "0",
                   "CITERAY_NAMESPACE": "citeray", "CITERAY_WAIT_S": limit}  # fmt: skip
    return subprocess.run(
        ["sh", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


def test_update_replaces_the_previous_ray_job_and_waits(tmp_path: Path) -> None:
    first = run(tmp_path / "first", ["run-update.sh"], ["", RUNNING, "found Retrying  ", DONE])
    assert (first.returncode, "succeeded" in first.stdout) == (0, True), first.stderr
    created = yaml.safe_load((tmp_path / "first/created").read_text())
    assert created == named("pubmed", "RayJob", "citeray-update")
    assert not (tmp_path / "first/deleted").exists()
    states = ["uid-1 Complete", "uid-1 Complete", "", DONE]
    second = run(tmp_path / "second", ["run-update.sh"], states)
    assert second.returncode == 0, second.stderr
    assert '"preconditions": {"uid": "uid-1"}' in (tmp_path / "second/deleted").read_text()
    call = "delete --raw /apis/ray.io/v1/namespaces/citeray/rayjobs/citeray-update "
    assert call in (tmp_path / "second/calls").read_text()


def test_update_does_not_start_beside_another(tmp_path: Path) -> None:
    for state in ("", "New", "Initializing", "Running", "Retrying", "Suspended"):
        folder = tmp_path / f"at-{state}"
        done = run(folder, ["run-update.sh"], [f"uid-1 {state}"])
        assert (done.returncode, "another update" in done.stderr) == (1, True), state
        assert not (folder / "created").exists()
        assert not (folder / "deleted").exists()
    late = run(tmp_path / "late", ["run-update.sh"], [""], "exists")
    assert (late.returncode, "AlreadyExists" in late.stderr) == (1, True)


def test_update_fails_as_its_ray_job_does(tmp_path: Path) -> None:
    ends = [
        "Failed FAILED lease held",
        "Complete STOPPED",
        "ValidationFailed  the name",
        "Failed  ",
    ]
    for number, end in enumerate(ends):
        done = run(tmp_path / str(number), ["run-update.sh"], ["", RUNNING, f"found {end} "])
        assert (done.returncode, end.strip() in done.stderr) == (1, True), end
    gone = run(tmp_path / "gone", ["run-update.sh"], ["", RUNNING, ""])
    assert (gone.returncode, "deleted before it ended" in gone.stderr) == (1, True)


def test_wait_ends_with_the_result_of_the_job(tmp_path: Path) -> None:
    cases = [
        ("rayjob/x", ["found   ", RUNNING, DONE], 0),
        ("rayjob/x", [RUNNING, "found Failed FAILED "], 1),
        ("job/x", ["found ", "found SuccessCriteriaMet Complete"], 0),
        ("job/x", ["found ", "found FailureTarget Failed"], 1),
        ("job/x", ["found Suspended", ""], 1),
        ("rayservice/x", [], 2),
    ]
    script = str(K8S / "files/wait.sh")
    for number, (what, states, code) in enumerate(cases):
        done = run(tmp_path / str(number), [script, what], states)
        assert done.returncode == code, (what, states, done.stderr)
    # An API server that is busy for a moment is asked again; the time is limited.
    assert run(tmp_path / "busy", [script, "rayjob/x"], [DONE], "outage").returncode == 0
    late = run(tmp_path / "late", [script, "rayjob/x"], [RUNNING] * 9999, limit="-1")
    assert (late.returncode, "not ended in time" in late.stderr) == (1, True)
