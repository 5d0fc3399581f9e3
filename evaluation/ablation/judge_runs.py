"""Judge an ablation's runs with RAGAS; the scores are stored next to each run.

The first line of `NAME.judged.jsonl` names the judge and the run; each further line holds one
judged question, so that an interrupted judging resumes without repeating calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.parse_json import parse_json
from cluster.storage.whole_files import write_atomically
from evaluation.ablation.run_plans import Run, digest
from evaluation.answers.evaluate_answers import samples
from evaluation.answers.find_judge import Judge
from evaluation.answers.judge_answers import JudgedRun, Sample, judge_samples
from evaluation.bioasq.read_bioasq import Entry, read_run
from evaluation.scores import Scores

Tell = Callable[[str], None]


def judge_runs(
    runs: Sequence[Run], gold: Mapping[str, Entry], judge: Judge, concurrent: int, tell: Tell
) -> dict[str, Scores]:
    """Return the RAGAS scores of each run with answers, by plan name.

    `concurrent` questions are judged at once. Scores are cached by the judge's name. Raises
    LLMError if the judge gives no usable reply to the probe of its accuracy.
    """
    answered = [run for run in runs if run.plan.answers]
    return {run.plan.name: _judge_run(run, gold, judge, concurrent, tell) for run in answered}


def _judge_run(
    run: Run, gold: Mapping[str, Entry], judge: Judge, concurrent: int, tell: Tell
) -> Scores:
    wanted = {id_: entry for id_, entry in gold.items() if id_ in run.replies}
    asked = samples(wanted, read_run(run.path, wanted))
    record = run.record.with_suffix(".judged.jsonl")
    key = {"judge": judge.name, "run": digest(run.path.read_bytes())}
    known = _read(record, key)
    # Rewrite the file, so that new lines are not appended to a truncated one.
    rows: list[dict[str, Any]] = [{"judged": key}]
    rows += [{"id": id_, "scores": scores} for id_, scores in known.items()]
    write_atomically(record, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def keep(sample: Sample, found: Mapping[str, float]) -> None:
        with record.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"id": sample.id, "scores": dict(found)}) + "\n")

    judged: JudgedRun = asyncio.run(
        judge_samples(
            asked, judge.model, judge.encode, concurrent=concurrent, known=known, keep=keep
        )
    )
    weak = "a weak judge, whose scores are not reliable: " if judged.weak else ""
    tell(
        f"{run.plan.name}: {weak}right on {judged.probe_accuracy:.0%} of cases with known verdicts"
    )
    return judged.scores


def _read(record: Path, key: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return earlier scores of the same run by the same judge; a truncated last line is ignored."""
    if not record.exists():
        return {}
    lines = record.read_text(encoding="utf-8").split("\n")[:-1]
    rows = [parse_json(line, str(record)) for line in lines]
    if not rows or rows[0].get("judged") != key:
        return {}
    return {row["id"]: row["scores"] for row in rows[1:]}
