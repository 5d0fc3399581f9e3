"""The daily update's script, with a stand-in for the API server behind its kubectl."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.k8s.chart import K8S, merge, named, of_kind, render, values_of

# Tells the states of the RayJob one after another, and keeps what is created.
KUBECTL = """#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
case "$*" in
  "get rayjob/citeray-update --ignore-not-found --output jsonpath={.metadata.uid}"*|\
  "get rayjob/citeray-update --ignore-not-found --output jsonpath=found"*)
    if [ -e outage ]; then rm outage; echo "the server is busy" >&2; exit 1; fi
    head -n 1 states | tr -d '\\n'; sed -i 1d states ;;
  delete*) cat > deleted ;;
  "create --filename "*) if [ -e exists ]; then echo "AlreadyExists" >&2; exit 1; fi
    cat "$3" > created ;;
  *) echo "unexpected: $*" >&2; exit 3 ;;
esac
"""


def run_update(
    folder: Path, states: list[str], *, exists: bool = False
) -> subprocess.CompletedProcess:
    """Run the script as its pod does. `states` are what each look at the RayJob finds."""
    data = named("pubmed", "ConfigMap", "citeray-run-update")["data"]
    for name, text in data.items():
        (folder / name).write_text(text)
    (folder / "states").write_text("\n".join(states) + "\n")
    if exists:
        (folder / "exists").touch()
    (folder / "kubectl").write_text(KUBECTL)
    (folder / "kubectl").chmod(0o755)
    environment = {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "CITERAY_POLL_S": "0",
        "CITERAY_NAMESPACE": "citeray",
    }
    return subprocess.run(
        ["sh", str(folder / "run-update.sh")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_first_update_is_created_and_ends_well(tmp_path: Path) -> None:
    states = ["", "found Running  ", "found Retrying  ", "found Complete SUCCEEDED done"]
    done = run_update(tmp_path, states)
    assert done.returncode == 0, done.stderr
    created = yaml.safe_load((tmp_path / "created").read_text())
    assert created == named("pubmed", "RayJob", "citeray-update")
    assert "succeeded" in done.stdout
    assert not (tmp_path / "deleted").exists()


def test_the_one_before_is_deleted_by_its_uid_and_waited_for(tmp_path: Path) -> None:
    states = ["uid-1 Complete", "uid-1 Complete", "", "found Complete SUCCEEDED "]
    done = run_update(tmp_path, states)
    assert done.returncode == 0, done.stderr
    assert '"preconditions": {"uid": "uid-1"}' in (tmp_path / "deleted").read_text()
    calls = (tmp_path / "calls").read_text()
    assert "delete --raw /apis/ray.io/v1/namespaces/citeray/rayjobs/citeray-update " in calls


@pytest.mark.parametrize("state", ["", "New", "Initializing", "Running", "Retrying", "Suspended"])
def test_a_run_by_hand_starts_nothing_while_an_update_is_at_work(
    tmp_path: Path, state: str
) -> None:
    done = run_update(tmp_path, [f"uid-1 {state}"])
    assert done.returncode == 1
    assert "another update is at work" in done.stderr
    assert not (tmp_path / "created").exists()
    assert not (tmp_path / "deleted").exists()


def test_of_two_that_start_at_once_one_is_told_that_it_is_too_late(tmp_path: Path) -> None:
    done = run_update(tmp_path, [""], exists=True)
    assert done.returncode == 1
    assert "AlreadyExists" in done.stderr


@pytest.mark.parametrize(
    "state",
    [
        "found Failed FAILED lease held",
        "found Complete STOPPED ",
        "found ValidationFailed  the name is too long",
        "found Failed  deadline",
    ],
)
def test_it_fails_where_the_update_did_and_does_not_go_on_looking(
    tmp_path: Path, state: str
) -> None:
    done = run_update(tmp_path, ["", "found Running  ", state])
    assert done.returncode == 1
    assert state.removeprefix("found ").strip() in done.stderr


def test_an_update_that_somebody_deletes_is_not_waited_for(tmp_path: Path) -> None:
    done = run_update(tmp_path, ["", "found Running  ", ""])
    assert done.returncode == 1
    assert "deleted before it ended" in done.stderr


def wait(
    folder: Path, what: str, states: list[str], *, outage: bool = False, limit: str = "60"
) -> subprocess.CompletedProcess:
    script = KUBECTL.replace("rayjob/citeray-update --ignore", "*/x --ignore")
    script = script.replace('"get */x --ignore-not-found --output jsonpath=found"*', '"get "*')
    (folder / "kubectl").write_text(script)
    (folder / "kubectl").chmod(0o755)
    (folder / "states").write_text("\n".join(states) + "\n")
    if outage:
        (folder / "outage").touch()
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", str(K8S / "files/wait.sh"), what],
        env={"PATH": path, "CITERAY_POLL_S": "0", "CITERAY_WAIT_S": limit},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("what", "states", "code"),
    [
        ("rayjob/x", ["found   ", "found Running  ", "found Complete SUCCEEDED "], 0),
        ("rayjob/x", ["found Running  ", "found Failed FAILED "], 1),
        ("job/x", ["found ", "found SuccessCriteriaMet Complete"], 0),
        ("job/x", ["found ", "found FailureTarget Failed"], 1),
        ("job/x", ["found Suspended", ""], 1),
        ("rayservice/x", [], 2),
    ],
)
def test_a_wait_ends_as_what_it_waits_for_does(
    tmp_path: Path, what: str, states: list[str], code: int
) -> None:
    assert wait(tmp_path, what, states).returncode == code


def test_a_wait_outlasts_an_api_server_that_is_busy_but_not_its_bound(tmp_path: Path) -> None:
    states = ["found Running  ", "found Complete SUCCEEDED "]
    assert wait(tmp_path, "rayjob/x", states, outage=True).returncode == 0
    done = wait(tmp_path, "rayjob/x", ["found Running  "] * 9999, limit="1")
    assert done.returncode == 1
    assert "not ended in time" in done.stderr


def test_the_indexs_lease_ends_the_second_of_two_writers(tmp_path: Path) -> None:
    # The last line of the script is its exit code: 1 where the lease is held.
    script = named("pubmed", "ConfigMap", "citeray-settings")["data"]["update.sh"]
    for code in (0, 1):
        (tmp_path / "citeray").write_text(
            f'#!/bin/sh\ncase "$*" in "index update"*) exit {code} ;; esac\n'
        )
        (tmp_path / "citeray").chmod(0o755)
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", script], env=path, check=False)
        assert done.returncode == code


def test_scheduled_updates_do_not_overlap_and_outlast_their_ray_job() -> None:
    (cron,) = of_kind("pubmed", "CronJob")
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    job = named("pubmed", "RayJob", "citeray-update")
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
        ("delete", "citeray-update"),
    }
    assert {tuple(rule["resources"]) for rule in role["rules"]} == {("rayjobs",)}
    (binding,) = of_kind("pubmed", "RoleBinding")
    (subject,) = binding["subjects"]
    (cron,) = of_kind("pubmed", "CronJob")
    pod = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (subject["name"], subject["namespace"]) == (pod["serviceAccountName"], "citeray")


@pytest.mark.parametrize(("files", "accepted"), [(0, False), (167, True)])
def test_a_part_of_the_baseline_is_updated_over_the_gap_behind_it(
    files: int, accepted: bool
) -> None:
    corpus = {"files": files, "updateFiles": files}
    objects = render(merge(values_of("pubmed"), {"corpus": corpus}))
    (scripts,) = [o["data"] for o in objects if "update.sh" in o.get("data", {})]
    (command,) = [c for c in scripts["update.sh"].splitlines() if "index update" in c]
    assert ("--allow-gap" in command) == accepted
