"""Collect outcomes of held-out questions: answers with their signals, scored against gold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from evaluation.calibrate.fit_calibration import Outcome

# Returns the reply of POST /v1/answer to a request with `guess`.
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]
TYPES = ("yesno", "factoid", "list", "summary")


def collect_outcomes(
    paths: Sequence[Path], ask: Ask, system: str | None, *, unanswerable: bool = False
) -> Iterator[Outcome]:
    """Ask the questions of BioASQ files and score each answer; skip questions without gold.

    A factoid answer is right if its first name is, a summary if it cites a gold document. With
    `unanswerable`, the index has no answer to the questions, so that every answer is wrong and no
    gold is needed. Raises InputError for a row without `body` or `type`.
    """
    for path in paths:
        for place, row in enumerate(read_rows(path)):
            if row.get("type") not in TYPES or "body" not in row:
                raise InputError(f"{path}: question {place}: needs `body` and a `type`")
            request = {"question": row["body"], "type": row["type"], "guess": True, "k": 10}
            reply = ask({**request, "system": system} if system else request)
            wrong = 1.0 if unanswerable else score_answer(row, reply)
            if wrong is not None and reply["signals"]:
                yield Outcome(row["type"], reply["signals"], wrong, path.name)


def score_answer(gold: Mapping[str, Any], reply: Mapping[str, Any]) -> float | None:
    """Return the loss of an answer, 0 to 1; None without a gold answer.

    If the gold answer is "maybe", neither yes nor no is right.
    """
    said = reply["guess"] or reply
    if gold["type"] == "summary":
        documents = {str(url).rsplit("/", 1)[-1] for url in gold.get("documents", ())}
        cited = {str(pmid) for sentence in said["ideal"] for pmid in sentence["pmids"]}
        return float(not documents & cited) if documents else None
    exact = gold.get("exact_answer")
    if not exact:
        return None
    if gold["type"] == "yesno":
        return float(said["exact"] != str(exact).strip().lower())
    wanted = {_plain(n) for group in exact for n in ([group] if isinstance(group, str) else group)}
    names = said["exact"] or []
    right = [any(_plain(name) in wanted for name in group) for group in names]
    if not right:
        return 1.0
    return float(not right[0]) if gold["type"] == "factoid" else 1 - sum(right) / len(right)


def _plain(name: str) -> str:
    return " ".join(str(name).casefold().split())
