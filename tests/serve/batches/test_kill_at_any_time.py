from __future__ import annotations

import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from cluster.answers import Question
from serve.batches.jobs import new_job
from tests.serve.batches.served import entries_of, store_at
from tests.serve.script_process import start_script

pytestmark = pytest.mark.process

TOTAL = 120
CONCURRENT = 3

WORKING = """
import asyncio, os, sys
from pathlib import Path
from cluster.answers import (SearchResult)
from serve.batches.job_store import JobStore
from serve.batches.run_jobs import JobRunner

folder = Path(sys.argv[1])
asked = os.open(folder / "asked", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

async def ask(question, job):
    os.write(asked, f"{question.id}\\n".encode())
    await asyncio.sleep(0.03)
    return SearchResult(question, job.system, (), (), (), (), (), "1/1", "v000001", "n1.xml", {})

store = JobStore(folder / "batches", 10, 30)
print("at work", flush=True)
asyncio.run(JobRunner(store, ask, 3).run_waiting())
"""


def test_kills_lose_no_answer_and_repeat_only_running_questions(tmp_path: Path) -> None:
    chance = random.Random(7)
    questions = [Question(f"q{n}", f"Question {n}?", "yesno") for n in range(TOTAL)]
    with store_at(tmp_path) as store:
        store.add(new_job(questions, "citeray", False, "mine"), questions)
    kills = 0
    # Kill it three times, then let it end.
    for seconds in (*(chance.uniform(0.01, 0.4) for _ in range(3)), 60.0):
        with start_script(WORKING, tmp_path) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "at work\n"
            try:
                process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
    assert process.returncode == 0
    assert kills >= 2
    asked = Counter((tmp_path / "asked").read_text().split())
    assert set(asked) == {question.id for question in questions}
    assert sum(asked.values()) - TOTAL <= kills * CONCURRENT
    with store_at(tmp_path) as store:
        assert [entry["id"] for entry in entries_of(store)] == [q.id for q in questions]
        progress = store.progress("mine")
        assert (progress.state, progress.done, progress.failed) == ("done", TOTAL, {})
