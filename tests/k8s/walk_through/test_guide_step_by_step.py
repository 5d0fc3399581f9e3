"""The guide, command by command: where all goes well, and what each says where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.k8s.walk_through.walk import LINES, Walk, step, walking

FIRST_INSTALL = "helm install citeray k8s --values k8s/values-small"
BEFORE = LINES[: LINES.index(step(FIRST_INSTALL))]
SECRETS = [line for line in BEFORE if line.startswith("kubectl create secret")]
BUILD = step(FIRST_INSTALL)
OWN_SIZE = step("helm install citeray k8s --values k8s/values-pubmed")
PLAN = step("citeray plan")
AWAIT_BUILD = step("sh k8s/files/wait.sh rayjob/citeray-build")
LOGS = step("kubectl logs")
SERVE = step("helm upgrade citeray k8s")
AWAIT_SERVICE = step("kubectl wait rayservice/citeray")
FORWARD = step("kubectl port-forward")
ASK = [step("KEY="), step("curl")]
CLEAR_UPDATE = step("kubectl delete job update-now")
UPDATE = step("kubectl create job update-now")
AWAIT_UPDATE = step("sh k8s/files/wait.sh job/update-now")
DOWN = LINES[LINES.index(step("kubectl delete rayservice,rayjob")) :]
STEPS = [*BEFORE, BUILD, AWAIT_BUILD, LOGS, SERVE, AWAIT_SERVICE, FORWARD, *ASK, CLEAR_UPDATE,
         UPDATE, AWAIT_UPDATE, *DOWN]  # fmt: skip


Start = Callable[..., Walk]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a walk of a size in the test's folder."""
    with ExitStack() as stack:
        yield lambda size, **options: stack.enter_context(walking(tmp_path, size, **options))


@pytest.fixture
def walk_to(start: Start) -> Start:
    """Starts one, and walks up to a step, which it leaves to the test."""

    def walked(last: str, size: str = "small", **options: Any) -> Walk:
        walk = start(size, **options)
        for command in STEPS[: STEPS.index(last)]:
            if command == BUILD:
                walk.write_commits()
            updates = command in (CLEAR_UPDATE, UPDATE, AWAIT_UPDATE)
            # kind has no updates.
            if command not in (FORWARD, *ASK) and not (updates and size == "kind"):
                walk.done(command)
        return walk

    return walked


def test_every_command_of_the_guide_is_walked() -> None:
    assert sorted([*STEPS, PLAN, OWN_SIZE]) == sorted(LINES)


@pytest.mark.parametrize("size", ["small", "kind"])
def test_from_an_empty_cluster_to_an_answer_and_back(start: Start, size: str) -> None:
    walk = start(size)
    for command in BEFORE:
        walk.done(command)
    wanted = len(walk.without_commit())
    assert walk.name_commits(BUILD) == wanted
    assert "rayjob/citeray-build: succeeded" in walk.done(AWAIT_BUILD)
    walk.done(LOGS)
    walk.done(SERVE)
    walk.done(AWAIT_SERVICE)
    with walk.running(FORWARD):
        answer = json.loads(walk.done(*ASK))
    assert answer["question"] == "Does metformin reduce mortality in diabetes?"
    assert answer["verdict"] == "answered"
    # The second time as the first; kind has no updates.
    for _ in range(2 if size == "small" else 0):
        walk.done(CLEAR_UPDATE)
        walk.done(UPDATE)
        assert "job/update-now: succeeded" in walk.done(AWAIT_UPDATE)
    for command in DOWN:
        walk.done(command)
    assert (walk.state["objects"], walk.state["releases"]) == ({}, {})
    # The operator's own, which Helm leaves too.
    assert set(walk.state["namespaces"]) == {"default", "kuberay-operator"}


def test_a_plan_leads_to_an_installed_chart_in_two_commands(walk_to: Start) -> None:
    walk = walk_to(BUILD, "pubmed")
    walk.done(PLAN)
    walk.name_commits(OWN_SIZE)
    walk.done(AWAIT_BUILD)


def test_a_repository_that_is_not_reached_is_named(start: Start) -> None:
    walk = start("small", repository=False)
    assert "https://ray-project.github.io" in walk.refused(BEFORE[0])
    assert "repo kuberay not found" in walk.refused(BEFORE[1])


def test_without_the_operator_the_chart_is_not_installed(start: Start) -> None:
    walk = start("kind")
    for command in BEFORE[2:]:
        walk.done(command)
    assert 'no matches for kind "RayJob"' in walk.refused(BUILD)
    assert "citeray/citeray" not in walk.state["releases"]


def test_without_prometheus_the_option_that_the_guide_names_is_needed(start: Start) -> None:
    walk = start("small", groups=())
    for command in BEFORE:
        walk.done(command)
    walk.write_commits()
    assert "monitoring.coreos.com" in walk.refused(BUILD)
    walk.done(f"{BUILD} --set monitoring.enabled=false")


def test_a_namespace_or_a_secret_is_made_once(walk_to: Start) -> None:
    walk = walk_to(BUILD)
    for command in ("kubectl create namespace citeray", *SECRETS):
        assert "already exists" in walk.refused(command)


def test_a_namespace_that_is_not_there_is_named(start: Start) -> None:
    walk = start("kind")
    for command in BEFORE[:2]:
        walk.done(command)
    assert '"citeray" not found' in walk.refused(step("kubectl label namespace citeray"))
    walk.done(step("kubectl config set-context --current --namespace citeray"))
    assert 'namespaces "citeray" not found' in walk.refused(BUILD)


def test_without_the_file_of_ones_own_or_a_bucket_nothing_is_installed(
    walk_to: Start, tmp_path: Path
) -> None:
    walk = walk_to(BUILD)
    (tmp_path / "mine.yaml").unlink()
    assert "open mine.yaml" in walk.refused(BUILD)
    (tmp_path / "mine.yaml").write_text("{}\n")
    assert "corpus.store: name where the index and the downloads go" in walk.refused(BUILD)


@pytest.mark.parametrize("secret", ["citeray-ray-token"])
def test_a_build_that_lacks_a_secret_ends_with_its_name(start: Start, secret: str) -> None:
    walk = start("kind")
    for command in BEFORE:
        if secret not in command:
            walk.done(command)
    walk.done(BUILD)
    assert f"secret {secret} not found" in walk.refused(AWAIT_BUILD)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["Initializing", "Complete FAILED no file of PubMed"], "FAILED no file of PubMed"),
        (["Running", "Retrying", "Failed FAILED the fifth try"], "the fifth try"),
        (["ValidationFailed  bad spec"], "bad spec"),
    ],
)
def test_a_build_that_fails_ends_the_wait_with_its_reason(
    walk_to: Start, states: list[str], said: str
) -> None:
    walk = walk_to(AWAIT_BUILD, "kind", build=states)
    assert said in walk.refused(AWAIT_BUILD)
    # As the guide tells to build again.
    walk.done("kubectl delete rayjob citeray-build")
    assert "deleted before it ended" in walk.refused(AWAIT_BUILD)
    walk.state["plan"]["build"] = ["Running", "Complete SUCCEEDED"]
    walk.done(BUILD.replace("helm install", "helm upgrade"))
    walk.done(AWAIT_BUILD)


def test_an_api_server_that_is_away_for_a_moment_is_asked_again(walk_to: Start) -> None:
    walk = walk_to(AWAIT_BUILD, "kind", outages=2)
    assert "succeeded" in walk.done(AWAIT_BUILD)


def test_a_release_is_installed_once_and_upgraded_only_then(walk_to: Start) -> None:
    walk = walk_to(BUILD, "kind")
    assert "has no deployed releases" in walk.refused(SERVE)
    walk.done(BUILD)
    assert "cannot re-use a name" in walk.refused(BUILD)


def test_a_service_before_its_index_does_not_become_ready(walk_to: Start) -> None:
    """And the build that it takes the place of is gone, as the wait for it says."""
    walk = walk_to(AWAIT_BUILD, "kind", build=["Running"])
    walk.done(SERVE)
    assert "deleted before it ended" in walk.refused(AWAIT_BUILD)
    assert "timed out" in walk.refused(AWAIT_SERVICE)
    assert '"citeray-serve-svc" not found' in walk.refused(FORWARD)
    assert "No resources found" in walk.refused(LOGS)


def test_a_key_that_is_not_the_secrets_is_refused(walk_to: Start) -> None:
    walk = walk_to(FORWARD, "kind")
    with walk.running(FORWARD):
        assert "no valid API key" in walk.done("KEY=none", ASK[1])


def test_an_update_that_fails_or_is_not_alone_ends_the_wait_so(
    walk_to: Start, tmp_path: Path
) -> None:
    walk = walk_to(UPDATE, update=["Running", "Failed FAILED a gap in the files"])
    walk.done(UPDATE)
    assert "job/update-now: " in walk.refused(AWAIT_UPDATE)
    assert "already exists" in walk.refused(UPDATE)
    # One at work, which the CronJob started.
    walk.state["plan"]["update"] = ["Running"]
    del walk.state["objects"]["citeray/RayJob/citeray-update"]["looks"]
    again = [command.replace("update-now", "update-again") for command in (UPDATE, AWAIT_UPDATE)]
    walk.done(again[0])
    assert "another update is at work" in walk.state["objects"]["citeray/Job/update-again"]["log"]
    assert "Failed" in walk.refused(again[1])


def test_in_another_order_the_teardown_leaves_what_holds_the_namespace(walk_to: Start) -> None:
    walk = walk_to(DOWN[0])
    walk.done("helm uninstall citeray")
    assert "timed out" in walk.refused("kubectl delete namespace citeray")


def test_what_is_torn_down_twice_is_not_there(walk_to: Start) -> None:
    walk = walk_to(DOWN[-1], "kind")
    walk.done(DOWN[-1])
    assert "release: not found" in walk.refused(DOWN[-1])
    assert 'namespaces "citeray" not found' in walk.refused("kubectl delete namespace citeray")


def test_the_stand_in_refuses_options_that_the_tools_do_not_have(start: Start) -> None:
    walk = start("kind")
    walk.refused("kubectl create namespace citeray --force-it")
    walk.refused("helm repo remove kuberay")
