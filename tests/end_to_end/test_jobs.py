"""`citeray job` submits commands as jobs to a Ray cluster, as seen from a shell."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from cluster.index.manifest import read_manifest
from pipelines.sample.write_sample import write_sample
from tests.end_to_end.command import BIN, ROOT, run, small_settings, start, with_settings
from tests.end_to_end.conftest import RayHead
from tests.end_to_end.waiting import await_that
from tests.object_store import BUCKET, s3_server
from tests.serve.http_server import free_port

pytestmark = [pytest.mark.ray, pytest.mark.nightly]

DEADLINE_S = 120
JOB = [str(BIN / "citeray"), "job"]
UNKNOWN_INDEX = ["index", "info", "--set", "index.path=/nowhere/index"]


def shell(head: RayHead) -> dict[str, str]:
    return {**head.submitter, "RAY_API_SERVER_ADDRESS": head.dashboard}


def job(head: RayHead, *words: str) -> subprocess.CompletedProcess:
    return run([*JOB, *words], shell(head))


def submit(head: RayHead, *words: str) -> subprocess.Popen:
    return start(
        [*JOB, "submit", *words],
        shell(head),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Background jobs of a shell inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def ids(head: RayHead, name: str) -> dict[str, str]:
    """Return the status of each attempt by id."""
    rows = json.loads(job(head, "list", "--json").stdout)
    return {row["id"]: row["status"] for row in rows if row["id"].startswith(name)}


def build(tmp_path: Path, encoder: Path) -> list[str]:
    source = write_sample(tmp_path / "sample").sources[2]
    settings = small_settings(tmp_path / "index", encoder, 2)
    return with_settings(["index", "build", str(source)], settings)


def drivers(index: Path) -> list[psutil.Process]:
    """Return the processes of the job that builds `index`: its shell and its driver."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if f"index.path={index}" in line and "job submit" not in line:
            found.append(process)
    return found


def await_driver(index: Path) -> list[psutil.Process]:
    return await_that(lambda: drivers(index), lambda: "no driver", seconds=DEADLINE_S, every_s=0.1)


def test_command_submitted_twice_at_once_is_one_job(ray_head: RayHead) -> None:
    both = [submit(ray_head, "--id", "twice", "--", "version") for _ in range(2)]
    said = [process.communicate(timeout=DEADLINE_S) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    version = run([str(BIN / "citeray"), "version"]).stdout.strip()
    assert all(out.strip().endswith(version) for out, _ in said), said
    assert ids(ray_head, "twice") == {"twice": "SUCCEEDED"}


def test_completed_command_is_shown_and_not_run_again(ray_head: RayHead) -> None:
    first = job(ray_head, "submit", "--", "citeray", "version")
    again = job(ray_head, "submit", "--", "version")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "has succeeded already" in again.stderr
    assert again.stdout == first.stdout
    assert len(ids(ray_head, "citeray-version-")) == 1


def test_failed_command_keeps_its_exit_code_and_is_retried(ray_head: RayHead) -> None:
    for _ in range(2):
        done = job(ray_head, "submit", "--id", "fails", "--", *UNKNOWN_INDEX)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "/nowhere/index" in done.stdout
    assert ids(ray_head, "fails") == {"fails": "FAILED", "fails-2": "FAILED"}
    assert job(ray_head, "follow", "fails").returncode == 2


def test_job_prints_one_json_document(ray_head: RayHead) -> None:
    words = ["submit", "--id", "models", "--json", "--", "models", "list", "--json"]
    done = job(ray_head, *words)
    document = json.loads(done.stdout)
    assert (document["id"], document["status"], document["exit_code"]) == ("models", "SUCCEEDED", 0)
    assert {"use", "name", "stored"} <= set(document["result"][0])


def test_job_whose_driver_was_killed_resumes_as_the_next_attempt(
    tmp_path: Path, ray_head: RayHead, encoder: Path
) -> None:
    words = ["--id", "killed", "--", *build(tmp_path, encoder)]
    first = submit(ray_head, *words)
    for process in await_driver(tmp_path / "index"):
        process.kill()
    first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 1
    second = job(ray_head, "submit", *words)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "the next attempt goes on" in second.stderr
    assert "building shards" in second.stdout
    assert ids(ray_head, "killed") == {"killed": "FAILED", "killed-2": "SUCCEEDED"}
    assert read_manifest(tmp_path / "index").citations == 3


def test_workers_get_variables_by_name_and_no_output_shows_their_values(
    tmp_path: Path, ray_head: RayHead, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers need the three variables to write to the store; the head was started without."""
    file = tmp_path / "runtime-env.yaml"
    file.write_text("env_vars: {AWS_DEFAULT_REGION: us-east-1}\n")
    words = build(tmp_path, encoder)
    words[words.index(f"index.path={tmp_path / 'index'}")] = f"index.path=s3://{BUCKET}/index"
    words += ["--set", f"index.cache={tmp_path / 'cache'}"]
    given = ["AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    options = [part for name in given for part in ("--env", name)]
    options += ["--runtime-env", str(file), "--working-dir", str(ROOT)]
    with s3_server(monkeypatch) as store:
        done = job(ray_head, "submit", "--id", "stored", *options, "--", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert store.get_file_info(f"{BUCKET}/index/CURRENT").is_file
    shown = done.stdout + done.stderr + job(ray_head, "list", "--json").stdout
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in shown


@pytest.mark.parametrize("how", ["ctrl-c", "cancel"])
def test_stopped_job_ends_its_driver_and_publishes_nothing(
    tmp_path: Path, ray_head: RayHead, encoder: Path, how: str
) -> None:
    submitter = submit(ray_head, "--id", f"stop-{how}", "--", *build(tmp_path, encoder))
    await_driver(tmp_path / "index")
    if how == "cancel":
        assert job(ray_head, "cancel", f"stop-{how}").returncode == 0
    else:
        os.kill(submitter.pid, signal.SIGINT)
    _, said = submitter.communicate(timeout=DEADLINE_S)
    assert submitter.returncode == 1, said
    assert ("Ctrl-C again leaves" in said) == (how == "ctrl-c")
    assert ids(ray_head, f"stop-{how}") == {f"stop-{how}": "STOPPED"}
    psutil.wait_procs(drivers(tmp_path / "index"), timeout=DEADLINE_S)
    assert drivers(tmp_path / "index") == []
    assert not (tmp_path / "index/CURRENT").exists()


def test_id_of_another_command_is_refused(ray_head: RayHead) -> None:
    assert job(ray_head, "submit", "--id", "one", "--", "version").returncode == 0
    other = job(ray_head, "submit", "--id", "one", "--", "models", "list")
    assert other.returncode == 2
    assert "give another --id" in other.stderr


def test_user_errors_are_one_line(ray_head: RayHead, subtests: pytest.Subtests) -> None:
    for words, change, code, sentence in [
        (["list"], {"RAY_AUTH_TOKEN": "0" * 64}, 1, "token"),
        (["list"], {"RAY_AUTH_MODE": "disabled"}, 1, "token"),
        (["list", "--address", "127.0.0.1:8265"], {}, 2, "not the address"),
        (["follow", "never-submitted"], {}, 2, "has no job never-submitted"),
        (["cancel", "../../api"], {}, 2, "not a job's id"),
        (["submit", "--working-dir", "/nowhere", "--", "version"], {}, 2, "no such folder"),
        (["submit", "--env", "UNSET_KEY", "--", "version"], {}, 2, "UNSET_KEY first"),
    ]:
        with subtests.test(words=words, change=change):
            done = run([*JOB, *words], {**shell(ray_head), **change})
            assert (done.returncode, done.stdout) == (code, ""), done.stderr
            assert sentence in done.stderr
            assert done.stderr.startswith("citeray: ")
            assert len(done.stderr.splitlines()) == 1


def test_unreachable_dashboard_is_named() -> None:
    address = f"http://127.0.0.1:{free_port()}"
    done = run([*JOB, "list", "--address", address])
    assert done.returncode == 1
    assert f"no Ray dashboard answers at {address}" in done.stderr
    assert len(done.stderr.splitlines()) == 1
