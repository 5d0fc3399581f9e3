"""The daily update's script, with a stand-in for the API server behind its kubectl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.k8s.overlays import K8S, of_kind

SCRIPT = K8S / "update/run-update.sh"
# Keeps what is created, and tells the states of a run one after another.
KUBECTL = """#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
case "$*" in
  *"get rayjob citeray-update --output json") cat template.json ;;
  create*) cat > created.json ;;
  *jobDeploymentStatus*)
    head -n 1 states | tr -d '\\n'; sed -i 1d states
    if [ -e outage ]; then rm outage; echo "the server is busy" >&2; exit 1; fi ;;
  *jobStatus*) cat status ;;
esac
"""
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="no jq on this machine")


def run_update(
    folder: Path, states: list[str], status: str, *, outage: bool = False
) -> subprocess.CompletedProcess:
    (job,) = of_kind("pubmed", "RayJob")
    stored = {**job, "metadata": {**job["metadata"], "uid": "1", "resourceVersion": "7"}}
    (folder / "template.json").write_text(json.dumps({**stored, "status": {"jobStatus": ""}}))
    (folder / "states").write_text("\n".join(states) + "\n")
    (folder / "status").write_text(status)
    if outage:
        (folder / "outage").touch()
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(SCRIPT)],
        env={"PATH": path, "CITERAY_POLL_S": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@needs_jq
def test_it_starts_a_copy_that_runs_and_ends_well_with_it(tmp_path: Path) -> None:
    done = run_update(tmp_path, ["", "Running", "Retrying", "Running", "Complete"], "SUCCEEDED")
    assert done.returncode == 0, done.stderr
    created = json.loads((tmp_path / "created.json").read_text())
    (job,) = of_kind("pubmed", "RayJob")
    assert job["spec"]["suspend"] is True
    assert created["spec"] == {**job["spec"], "suspend": False}
    assert created["metadata"] == {"name": "citeray-update-now"}
    first = (tmp_path / "calls").read_text().splitlines()[0]
    assert first == "delete rayjob citeray-update-now --ignore-not-found --wait"


@needs_jq
@pytest.mark.parametrize(("state", "status"), [("Failed", "FAILED"), ("Complete", "STOPPED")])
def test_it_fails_where_the_copy_did(tmp_path: Path, state: str, status: str) -> None:
    done = run_update(tmp_path, ["Running", state], status)
    assert done.returncode == 1
    assert status in done.stdout


@needs_jq
def test_an_api_server_that_is_busy_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    done = run_update(tmp_path, ["Running", "Complete"], "SUCCEEDED", outage=True)
    assert done.returncode == 0, done.stderr


def test_two_updates_never_run_at_once() -> None:
    (cron,) = of_kind("pubmed", "CronJob")
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    (job,) = of_kind("pubmed", "RayJob")
    deadline = cron["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    assert deadline > job["spec"]["activeDeadlineSeconds"]


def test_its_account_may_do_what_the_script_does_and_no_more() -> None:
    (role,) = of_kind("pubmed", "Role")
    allowed = {
        (verb, name)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ["*"])
    }
    assert allowed == {
        ("create", "*"),
        ("get", "citeray-update"),
        ("get", "citeray-update-now"),
        ("list", "*"),
        ("watch", "*"),
        ("delete", "citeray-update-now"),
    }
    assert {tuple(rule["resources"]) for rule in role["rules"]} == {("rayjobs",)}
    (binding,) = of_kind("pubmed", "RoleBinding")
    (subject,) = binding["subjects"]
    (cron,) = of_kind("pubmed", "CronJob")
    pod = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], "citeray")
