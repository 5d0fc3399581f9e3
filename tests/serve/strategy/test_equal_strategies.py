"""Strategies of processes that differ in their environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.answers import Question
from cluster.settings.presets import load_system
from serve.contracts.request import Request
from serve.strategy.make_strategy import make_strategy
from tests.serve.http.page.library import library_service

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
QUESTIONS = (
    "Does metformin activate AMPK in the liver?",
    "Is baloxavir effective against influenza?",
    "Which group has metabolism in the liver?",
)
OTHER = {
    "PYTHONHASHSEED": "7",
    "PYTHONPATH": str(ROOT),
    "LC_ALL": "C",
    "TZ": "Pacific/Auckland",
    "OMP_NUM_THREADS": "1",
    "ATEN_CPU_CAPABILITY": "default",
}


async def made_in(folder: Path) -> list[list[object]]:
    """Return the query, the hits and the hits of each term of the strategies, on a new index."""
    answerer = library_service(folder).answerer
    found = []
    for body in QUESTIONS:
        for most in (500, 3):
            request = Request(Question("", body), load_system("citeray"))
            made = await make_strategy(answerer, request, most)
            terms = [[t.value, t.hits] for b in (*made.blocks, *made.left_out) for t in b.terms]
            found.append([made.pubmed, made.hits, made.found, terms])
    return found


def test_processes_with_another_environment_make_equal_strategies(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    run = subprocess.run(
        [sys.executable, "-m", __spec__.name, str(there)],
        env=os.environ | OTHER, cwd=there, capture_output=True, text=True, check=True,
    )  # fmt: skip
    made = asyncio.run(made_in(here))
    assert json.loads(run.stdout) == made
    assert all(hits for _, hits, *_ in made)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(made_in(Path(sys.argv[1])))))
