"""`citeray ablate` over three questions, at a small service that can fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster.answers import SearchResult
from commands.evaluation.ablate import ablate
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from tests.evaluation.evaluate_command.small_runs import question, runner_of, snippet, write
from tests.serve.service import CORPUS, SmallService

run_ablate = runner_of(ablate)


def row(id_: str, body: str, kind: str, *pmids: int, **exact: Any) -> dict[str, Any]:
    text = CORPUS[pmids[0] - 1].abstract
    said = {"ideal_answer": [text], "snippets": [snippet(str(pmids[0]), 0, text)], **exact}
    return {**question(id_, kind, *map(str, pmids)), "body": body, **said}


ROWS = [
    row("q3", "Does metformin activate AMPK?", "yesno", 1, exact_answer="yes"),
    row("q1", "Which enzyme does warfarin inhibit?", "factoid", 2, 1, exact_answer=[["VKORC1"]]),
    row("q2", "What does imatinib inhibit?", "summary", 3),
]


class FlakyService(SmallService):
    """Service that fails for the ids in `lost`, with an index of `version`."""

    lost: tuple[str, ...] = ()
    version = "v000001"

    async def search(self, request: Request) -> SearchResult:
        if request.question.id in self.lost:
            self.asked.append(request.question)
            raise StageLostError(f"{request.question.id} is lost")
        found = await super().search(request)
        return replace(found, index_version=self.version)

    def ids(self) -> list[str]:
        return [question.id for question in self.asked]


class Ablation:
    """`citeray ablate` over ROWS into a folder, at an endpoint."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.output = folder / "runs"
        self.port = port
        self.questions = write(folder / "questions.json", *ROWS)
        self.gold = self.questions
        self.log = ""

    def text(self, *arguments: str) -> str:
        common = ["--questions", self.questions, "--gold", self.gold, "--output", self.output]
        common += ["--set", f"serve.port={self.port}", "--set", "llm.kind=none"]
        done = run_ablate(*common, *arguments)
        self.log = done.stderr
        return done.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text(*arguments, "--json"))
        return found
