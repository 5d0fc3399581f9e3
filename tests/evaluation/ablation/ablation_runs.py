"""`citeray ablate` over three questions, at a small service that can fail."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from cluster.answers import SearchResult
from commands.evaluation.ablate import ablate
from serve.contracts.request import Request
from serve.contracts.stage_watch import StageLostError
from serve.formats.bioasq import document_url
from tests.serve.service import CORPUS, SmallService

app = typer.Typer()
app.command()(ablate)


def row(id_: str, body: str, kind: str, exact: Any, *pmids: int) -> dict[str, Any]:
    snippet = {
        "document": document_url(pmids[0]),
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": 0,
        "offsetInEndSection": len(CORPUS[pmids[0] - 1].abstract),
        "text": CORPUS[pmids[0] - 1].abstract,
    }
    made = {"id": id_, "type": kind, "body": body, "ideal_answer": [snippet["text"]]}
    made |= {"documents": [document_url(pmid) for pmid in pmids], "snippets": [snippet]}
    return made if exact is None else {**made, "exact_answer": exact}


ROWS = [
    row("q3", "Does metformin activate AMPK?", "yesno", "yes", 1),
    row("q1", "Which enzyme does warfarin inhibit?", "factoid", [["VKORC1"]], 2, 1),
    row("q2", "What does imatinib inhibit?", "summary", None, 3),
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
        self.questions = self.write(folder / "questions.json", ROWS)
        self.gold = self.questions
        self.log = ""

    def write(self, path: Path, rows: list[dict[str, Any]]) -> Path:
        path.write_text(json.dumps({"questions": rows}), encoding="utf-8")
        return path

    def text(self, *arguments: str) -> str:
        common = ["--questions", self.questions, "--gold", self.gold, "--output", self.output]
        common += ["--set", f"serve.port={self.port}", "--set", "llm.kind=none"]
        done = CliRunner().invoke(app, [*map(str, common), *arguments])
        if done.exception:
            raise done.exception
        self.log = done.stderr
        return done.stdout

    def json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text(*arguments, "--json"))
        return found
