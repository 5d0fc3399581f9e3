"""`citeray watch run`, for a nightly job after an update, and the checks of the endpoint."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.answers import Answer
from cluster.index.manifest import read_manifest
from serve.contracts.request import Request
from serve.saved.stores import Saved
from serve.saved.watches import keep_checking
from serve.saved.watches.keep_checking import WatchKeeper
from tests.commands.run_here import run_here
from tests.publish_manifest import publish
from tests.serve.awaited import awaited
from tests.serve.saved.kept import saved_at, url_of
from tests.serve.saved.watches.asking import FakeAsk, made_answer
from tests.serve.service import SmallService

pytestmark = pytest.mark.model

QUESTION = "Does metformin activate AMPK?"


class Graph(SmallService):
    """Small graph in place of the one that loads models."""

    version = "v000001"
    failing = ""

    async def answer(self, request: Request) -> Answer:
        if request.question.body == self.failing:
            raise TimeoutError
        return replace(await super().answer(request), index_version=self.version)


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    graph = Graph(tmp_path / "index")
    monkeypatch.setattr("serve.graph.local_graph.local_answerer", lambda *_: graph)
    return graph


def update(graph: Graph, index: Path, version: str) -> None:
    """Publish another version of the same citations."""
    publish(index, read_manifest(index).model_copy(update={"version": version}))
    graph.version = version


def run(folder: Path, *more: str) -> tuple[int, str, str]:
    place = [f"index.path={folder / 'index'}", f"serve.saved.url={url_of(folder)}", "serve.port=9"]
    # A configured language model would be served on Ray.
    given = [*place, "serve.saved.checks_per_minute=6000", "llm.kind=none"]
    return run_here("watch", "run", *[f"--set={one}" for one in given], *more)


def save(saved: Saved, *questions: str) -> list[str]:
    return [saved.watches.add("", {"question": q, "type": "yesno"}).id for q in questions]


def test_watch_run_checks_once_per_version_and_reports_failures(
    tmp_path: Path, graph: Graph
) -> None:
    saved = saved_at(tmp_path)
    one, _ = save(saved, QUESTION, "What does warfarin inhibit?")
    code, out, said = run(tmp_path, "--most", "1")
    assert (code, "2 saved questions to ask against v000001" in said) == (0, True)
    assert out == "1 asked, 0 with a relevant change, 0 failed\n"
    assert run(tmp_path)[1].startswith("1 asked")
    answer = saved.watches.get(one).answer
    assert answer is not None
    assert answer["ideal"][0]["pmids"] == [1]
    code, out, _ = run(tmp_path, "--json")
    none = {"index_version": "v000001", "asked": 0, "notable": 0, "failed": 0}
    assert (code, json.loads(out)) == (0, none)
    update(graph, tmp_path / "index", "v000002")
    code, out, _ = run(tmp_path, "--json")
    assert json.loads(out) == {**none, "index_version": "v000002", "asked": 2}
    assert [check.version for check in saved.watches.checks(one)] == ["v000002", "v000001"]
    assert len(graph.asked) == 4
    update(graph, tmp_path / "index", "v000003")
    graph.failing = QUESTION
    assert run(tmp_path)[:2] == (1, "2 asked, 0 with a relevant change, 1 failed\n")
    assert saved.watches.get(one).error == "no reply in time"
    # The retry is due in a minute, so this run asks nothing.
    assert run(tmp_path)[:2] == (0, "0 asked, 0 with a relevant change, 0 failed\n")


def test_watch_run_without_database_or_index_is_bad_input(tmp_path: Path) -> None:
    for options, expected in (
        ([], str(tmp_path / "index")),
        (["--set=serve.saved.url="], "serve.saved.url: empty"),
        (["--most", "0"], "--most"),
        (["--set=serve.saved.checks_per_minute=0"], "serve.saved.checks_per_minute"),
    ):
        code, _, said = run(tmp_path, *options)
        assert (code, expected in said) == (2, True), options


@awaited
async def test_endpoint_checks_again_after_a_new_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_checking, "POLL_S", 0.01)
    saved = saved_at(tmp_path, checks_per_minute=6000)
    (one,) = save(saved, "A?")
    # The endpoint is not ready, ready, briefly unreachable, then ready with the next version.
    steps: list[tuple[str | Exception, list[str]]] = [
        ("", []),
        ("v1", ["v1"]),
        (OSError("no reply"), ["v1"]),
        ("v2", ["v2", "v1"]),
    ]
    now: list[str | Exception] = [""]

    async def version() -> str:
        if isinstance(now[-1], Exception):
            raise now[-1]
        return now[-1]

    ask = FakeAsk(lambda q: made_answer((1,) if now[-1] == "v1" else (1, 2), version=str(now[-1])))
    keeper = WatchKeeper(saved, ask, version, 1.0)
    keeper.begin()
    for served, expected in steps:
        now.append(served)
        async with asyncio.timeout(10):
            while [c.version for c in saved.watches.checks(one)] != expected:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        assert [c.version for c in saved.watches.checks(one)] == expected
    await keeper.end()
    assert ask.asked == ["A?", "A?"]
    assert saved.watches.checks(one)[0].notable
