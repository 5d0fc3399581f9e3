"""`citeray watch run`, for a nightly job after an update, and what the endpoint does by itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import Answer
from cluster.index.manifest import Manifest, read_manifest
from serve.saved.keep import Saved
from serve.saved.watches import keep_checking
from serve.saved.watches.keep_checking import WatchKeeper
from tests.commands.run_here import run_here
from tests.publish_manifest import publish
from tests.serve.saved.kept import saved_at, url_of
from tests.serve.saved.watches.asking import FakeAsk, made_answer
from tests.serve.service import CORPUS
from tests.serve.small_graph import make_answerer

pytestmark = pytest.mark.ray

QUESTION = "Does metformin activate AMPK?"


class Graph:
    """The small graph in the place of the one that loads models; `asked` are its questions."""

    def __init__(self, folder: Path) -> None:
        self.index = folder / "index"
        self.version = "v000001"
        self.asked: list[str] = []
        self.trouble: Callable[[str], None] = lambda question: None
        self._answerer = make_answerer(self.index, CORPUS)

    async def answer(self, request: Any) -> Answer:
        self.asked.append(request.question.body)
        self.trouble(request.question.body)
        return replace(await self._answerer.answer(request), index_version=self.version)

    async def citation(self, pmid: int) -> Any:
        return await self._answerer.citation(pmid)

    def update(self, version: str) -> Manifest:
        """Publish another version of the same citations."""
        manifest = read_manifest(self.index).model_copy(update={"version": version})
        publish(self.index, manifest)
        self.version = version
        return manifest


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    graph = Graph(tmp_path)
    monkeypatch.setattr("serve.graph.local_graph.local_answerer", lambda *_: graph)
    return graph


def run(folder: Path, *more: str) -> tuple[int, str, str]:
    place = [f"index.path={folder / 'index'}", f"serve.saved.url={url_of(folder)}"]
    # A language model of the settings would be served on a Ray of its own.
    given = [*place, "serve.saved.checks_per_minute=6000", "llm.kind=none"]
    return run_here("watch", "run", *[f"--set={one}" for one in given], *more)


def save(saved: Saved, *questions: str) -> list[str]:
    return [saved.watches.add("", {"question": q, "type": "yesno"}).id for q in questions]


def test_a_run_asks_each_question_once_of_each_published_version(
    tmp_path: Path, graph: Graph
) -> None:
    saved = saved_at(tmp_path)
    one, _ = save(saved, QUESTION, "What does warfarin inhibit?")
    code, out, said = run(tmp_path, "--most", "1")
    assert (code, "2 saved questions to ask of v000001" in said) == (0, True)
    assert out == "1 asked, 0 with something to tell, 0 failed\n"
    assert run(tmp_path)[1].startswith("1 asked")
    answer = saved.watches.get(one).answer
    assert answer is not None
    assert answer["ideal"][0]["pmids"] == [1]
    code, out, _ = run(tmp_path, "--json")
    none = {"index_version": "v000001", "asked": 0, "notable": 0, "failed": 0}
    assert (code, json.loads(out)) == (0, none)
    graph.update("v000002")
    code, out, _ = run(tmp_path, "--json")
    assert json.loads(out) == {**none, "index_version": "v000002", "asked": 2}
    assert [check.version for check in saved.watches.checks(one)] == ["v000002", "v000001"]
    assert len(graph.asked) == 4


def test_a_question_that_fails_is_told_by_the_exit_code_and_holds_up_no_other(
    tmp_path: Path, graph: Graph
) -> None:
    saved = saved_at(tmp_path)
    bad, good = save(saved, "Bad?", QUESTION)

    def trouble(question: str) -> None:
        if question == "Bad?":
            raise TimeoutError

    graph.trouble = trouble
    code, out, _ = run(tmp_path)
    assert (code, out) == (1, "2 asked, 0 with something to tell, 1 failed\n")
    assert saved.watches.get(bad).error == "no reply in time"
    assert saved.watches.get(good).version == "v000001"
    # It waits its minute: nothing is left to ask now, and nothing failed in this run.
    code, out, _ = run(tmp_path)
    assert (code, out) == (0, "0 asked, 0 with something to tell, 0 failed\n")


def test_where_nothing_is_kept_or_built_the_run_is_bad_input(tmp_path: Path) -> None:
    code, _, said = run(tmp_path)
    assert (code, str(tmp_path / "index") in said) == (2, True)
    code, _, said = run(tmp_path, "--set=serve.saved.url=")
    assert (code, "serve.saved.url: empty" in said) == (2, True)
    code, _, said = run(tmp_path, "--most", "0")
    assert (code, "--most" in said) == (2, True)
    code, _, said = run(tmp_path, "--set=serve.saved.checks_per_minute=0")
    assert (code, "serve.saved.checks_per_minute" in said) == (2, True)


def test_the_endpoint_asks_again_what_a_new_version_makes_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keep_checking, "POLL_S", 0.01)
    saved = saved_at(tmp_path, checks_per_minute=6000)
    (one,) = save(saved, "A?")
    # Not ready, ready, out of reach for a moment, and then ready with the next version.
    served: list[str | Exception] = ["", "v1", OSError("no reply"), "v2"]
    now = [served.pop(0)]

    async def version() -> str:
        if isinstance(now[0], Exception):
            raise now[0]
        return now[0]

    ask = FakeAsk(lambda q: made_answer((1,) if now[0] == "v1" else (1, 2), version=str(now[0])))
    keeper = WatchKeeper(saved, ask, version, 1.0)

    async def work() -> None:
        keeper.begin()
        try:
            for expected in ([], ["v1"], ["v1"], ["v2", "v1"]):
                ends = asyncio.get_running_loop().time() + 10
                while [c.version for c in saved.watches.checks(one)] != expected:
                    assert asyncio.get_running_loop().time() < ends
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.05)
                assert [c.version for c in saved.watches.checks(one)] == expected
                now[0] = served.pop(0) if served else "v2"
        finally:
            await keeper.end()

    asyncio.run(work())
    assert ask.asked == ["A?", "A?"]
    assert saved.watches.checks(one)[0].notable
