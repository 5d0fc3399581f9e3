"""`run-update.sh` and `wait.sh`, run by a shell with a small kubectl that replays states."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.k8s.chart import named

pytestmark = pytest.mark.process

# Prints one line of `states` for each `get`, and records what is created and deleted.
KUBECTL = """#!/bin/sh
cd "$(dirname "$0")"
case "$*" in
  "get "*) line=$(head -n 1 states); sed -i 1d states
    if [ "$line" = outage ]; then exit 1; fi
    printf %s "$line" ;;
  "delete --raw /apis/ray.io/v1/namespaces/citeray/rayjobs/citeray-update "*) cat > deleted ;;
  "create --filename "*) cat "$3" > created ;;
  *) exit 3 ;;
esac
"""
RUNNING, DONE = "found Running  ", "found Complete SUCCEEDED "


def run(folder: Path, words: list[str], states: list[str], limit: str = "60") -> tuple[int, str]:
    """Return the exit status and standard error of a script in a new folder."""
    folder.mkdir()
    (folder / "states").write_text("\n".join(states) + "\n")
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o755)
    for name, text in named("pubmed", "ConfigMap", "citeray-run-update")["data"].items():
        (folder / name).write_text(text)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "CITERAY_POLL_S": "0",
                   "CITERAY_NAMESPACE": "citeray", "CITERAY_WAIT_S": limit}  # fmt: skip
    done = subprocess.run(
        ["sh", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_update_replaces_an_ended_ray_job_and_never_a_running_one(tmp_path: Path) -> None:
    states = ["uid-1 Complete", "uid-1 Complete", "", RUNNING, DONE]
    code, stderr = run(tmp_path / "ended", ["run-update.sh"], states)
    assert code == 0, stderr
    created = yaml.safe_load((tmp_path / "ended/created").read_text())
    assert created == named("pubmed", "RayJob", "citeray-update")
    assert '"preconditions": {"uid": "uid-1"}' in (tmp_path / "ended/deleted").read_text()
    for state in ("", "New", "Running", "Retrying"):
        folder = tmp_path / f"at-{state}"
        code, stderr = run(folder, ["run-update.sh"], [f"uid-1 {state}"])
        assert (code, "another update" in stderr) == (1, True), state
        assert not (folder / "created").exists()
        assert not (folder / "deleted").exists()


def test_wait_ends_with_the_result_of_the_job(tmp_path: Path) -> None:
    cases = [
        ("rayjob/x", ["found   ", RUNNING, "outage", DONE], 0),
        ("rayjob/x", [RUNNING, "found Failed FAILED "], 1),
        ("rayjob/x", ["found Complete STOPPED "], 1),
        ("rayjob/x", ["found ValidationFailed  the name "], 1),
        ("rayjob/x", [RUNNING, ""], 1),
        ("job/x", ["found ", "found SuccessCriteriaMet Complete"], 0),
        ("job/x", ["found ", "found FailureTarget Failed"], 1),
        ("rayservice/x", [], 2),
    ]
    for number, (what, states, wanted) in enumerate(cases):
        code, stderr = run(tmp_path / str(number), ["wait.sh", what], states)
        assert code == wanted, (what, states, stderr)
    code, stderr = run(tmp_path / "late", ["wait.sh", "rayjob/x"], [RUNNING], limit="-1")
    assert (code, "not ended in time" in stderr) == (1, True)
