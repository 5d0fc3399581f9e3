"""A graph over successive versions of an index, and the changes of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster.answers import Answer
from cluster.exposure import Exposure
from cluster.records import Citation, Section
from serve.saved.watches.source_records import SourceRecord, changed_sources
from serve.saved.watches.watch_diff import WatchDiff, watch_diff
from tests.serve.saved.watches.asking import made_answer

QUESTIONS, PMIDS = 3, range(1, 7)
# States of a record in a version; a record that is "gone" is not in the index.
STANCES = ("for", "against", "silent", "revised", "gone")
Evidence = Mapping[int, str]


def nothing() -> str:
    """Inject no fault."""
    return ""


class Graph:
    """Answer from the published version, and remember the content of each version."""

    def __init__(self) -> None:
        self.versions: list[Evidence] = []
        # Called at each answer or message; returns the injected fault, or "" for none.
        self.moment: Callable[[], str] = nothing

    @property
    def version(self) -> str:
        return f"v{len(self.versions):06d}" if self.versions else ""

    def publish(self, evidence: Sequence[tuple[int, str]]) -> None:
        self.versions.append({**(self.versions[-1] if self.versions else {}), **dict(evidence)})

    def answer_of(self, question: str, version: str) -> Answer:
        evidence = self.versions[int(version[1:]) - 1]
        # Each question has its own records, and shares PMID 1 with the others.
        mine = [p for p in PMIDS if p % QUESTIONS == int(question[1]) or p == 1]
        sides = {stance: [p for p in mine if evidence.get(p) == stance] for stance in STANCES}
        supporting = sorted(sides["for"] + sides["revised"])
        return made_answer(supporting, sides["against"], body=question, version=version)

    def record_of(self, pmid: int, version: str) -> Citation | None:
        said = self.versions[int(version[1:]) - 1].get(pmid)
        text = f"It {'really ' * (said == 'revised')}helps {pmid}."
        record = Citation(pmid, title=f"Paper {pmid}", sections=(Section("", text),))
        return None if said == "gone" else record

    async def answer(self, request: Mapping[str, Any]) -> Answer:
        found = self.answer_of(request["question"], self.version)
        fault = self.moment()
        if fault == "no answer":
            raise TimeoutError
        if fault == "a part of the index":
            return made_answer((), body=request["question"], version=self.version, coverage="1/2")
        return found

    async def citation(self, pmid: int) -> Citation | None:
        return self.record_of(pmid, self.version)

    async def exposure(self, pmids: Sequence[int]) -> Exposure | None:
        return Exposure(tuple(pmids)) if pmids else None

    def diffs_of(self, question: str, versions: Sequence[str]) -> list[WatchDiff | None]:
        """Return the changes to report for a question that was asked of `versions` in turn."""
        diffs: list[WatchDiff | None] = []
        before: Answer | None = None
        known: dict[int, SourceRecord] = {}
        for version in versions:
            now = self.answer_of(question, version)
            cited = [item.passage.pmid for item in now.evidence]
            pmids = dict.fromkeys([*cited, *known])
            found = {p: SourceRecord.of(p, self.record_of(p, version)) for p in pmids}
            diffs.append(watch_diff(before, now, changed_sources(known, found)) if before else None)
            before, known = now, found
        return diffs
