"""Fakes of the graph for saved questions: answers, the records that they cite, and a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from cluster.answers import Answer, Evidence, Question, Sentence
from cluster.exposure import ExposedSource, Exposure
from cluster.records import Citation, Section
from serve.saved.stores import Saved
from serve.saved.watches.check_watches import Budget, Checked, check_watches
from tests.serve.answering import answer as bare_answer
from tests.serve.answering import passage


def made_answer(
    supporting: Sequence[int] = (1,),
    contradicting: Sequence[int] = (),
    *,
    body: str = "Does it help?",
    version: str = "v000001",
    text: str = "It helps.",
    **fields: Any,
) -> Answer:
    """Return an answer with the given supporting and contradicting PMIDs."""
    sides = [(pmid, "It helps.", "support") for pmid in supporting]
    sides += [(pmid, "It does not.", "contradict") for pmid in contradicting]
    evidence = [
        Evidence(passage(said, pmid), {}, f"Paper {pmid}", 2000 + pmid, cast(Any, stance))
        for pmid, said, stance in sides
    ]
    values = {
        "question": Question("", body, "yesno"),
        "ideal": (Sentence(text, tuple(supporting[:3]), 0.9),),
        "exact": "yes",
        "evidence": tuple(evidence),
        "index_version": version,
        "last_source": f"{version}.xml.gz",
    }
    return bare_answer(body, **{**values, **fields})


class FakeAsk:
    """Answers with `make`; `records` overrides citations, which otherwise never change."""

    def __init__(self, make: Callable[[str], Answer]) -> None:
        self.make = make
        self.asked: list[str] = []
        self.records: dict[int, Citation | None] = {}
        self.exposed: tuple[ExposedSource, ...] | None = ()

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        self.asked.append(request["question"])
        return self.make(request["question"])

    async def citation(self, pmid: int) -> Citation | None:
        same = Citation(pmid, title=f"Paper {pmid}", sections=(Section("", f"It helps {pmid}."),))
        return self.records.get(pmid, same)

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        return None if self.exposed is None else Exposure(tuple(pmids), (), self.exposed)


class Clock:
    """Clock that advances only by `sleep`."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def check(saved: Saved, ask: Any, version: str, most: int | None = None) -> Checked:
    """Check at most `most` of the saved questions on `version`, without a wait."""
    clock = Clock()
    budget = Budget(6000.0, most, clock=clock, sleep=clock.sleep)
    return asyncio.run(check_watches(saved.watches, ask, version, budget))


def check_supporting(saved: Saved, version: str, *supporting: int) -> None:
    """Check the saved questions on `version`, whose answers rest on the PMIDs `supporting`."""
    check(saved, FakeAsk(lambda _: made_answer(supporting, version=version)), version)
