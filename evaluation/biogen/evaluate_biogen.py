"""Evaluate a TREC BioGen run against people's labels, CiteRay's NLI model, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.errors import InputError
from evaluation.biogen.judge_citations import EntailmentJudge
from evaluation.biogen.read_biogen import read_task_a, read_task_b, records
from evaluation.biogen.read_labels import Labels, read_labels
from evaluation.biogen.score_biogen import score_task_a, score_task_b
from evaluation.evaluated import Evaluated
from evaluation.lint.lint_run import read_asked
from evaluation.report.report import Case
from evaluation.scores import Scores

RANKING_SCORES_A = ("support F1", "expert support soft recall (strict)")
RANKING_SCORES_B = ("citation support rate", "citation coverage")

# Fields that occur only in files of judgements.
_JUDGEMENTS = ("relation", "machine_generated_answers")


def read_gold(path: Path) -> tuple[Labels, tuple[str, ...]]:
    """Return (people's labels, topics) from a file of judgements, or of topics only.

    Raises InputError like `read_labels` and `read_asked`.
    """
    if path.suffix.lower() == ".csv" or _holds_judgements(path):
        labels = read_labels(path)
        return labels, labels.topics
    return Labels(), tuple(read_asked(path))


def _holds_judgements(path: Path) -> bool:
    for where, row in records(path):
        if "questions" in row:
            raise InputError(f"{where}: in BioASQ's format; name BioGen's judgements or topics")
        if any(field in row for field in _JUDGEMENTS):
            return True
        sentences = row.get("answer")
        if isinstance(sentences, list) and any(
            isinstance(s, dict) and "supported_citations_labels" in s for s in sentences
        ):
            return True
    return False


def evaluate_task_a(
    run: Path, labels: Labels, topics: Sequence[str], judge: EntailmentJudge | None = None
) -> Evaluated:
    """Evaluate task A, grounding; raises the errors of `read_task_a`."""
    read = read_task_a(run, topics)
    sentences = {
        id_: tuple(
            f"{s.text} {_cited('supported by', s.supported)}{_cited('against', s.contradicted)}"
            for s in said
        )
        for id_, said in read.items()
    }
    scores = score_task_a(read, labels, judge)
    return _evaluated(scores, RANKING_SCORES_A, sentences)


def evaluate_task_b(
    run: Path, labels: Labels, topics: Sequence[str], judge: EntailmentJudge | None = None
) -> Evaluated:
    """Evaluate task B, attribution; raises the errors of `read_task_b`."""
    read = read_task_b(run, topics)
    sentences = {
        id_: tuple(f"{s.text} {_cited('cites', s.pmids)}" for s in said)
        for id_, said in read.items()
    }
    scores = score_task_b(read, labels, judge, topics)
    return _evaluated(scores, RANKING_SCORES_B, sentences)


def _cited(how: str, pmids: Sequence[int]) -> str:
    return f"[{how} {', '.join(map(str, pmids))}]" if pmids else ""


def _evaluated(
    scores: Scores, shown: tuple[str, ...], sentences: Mapping[str, tuple[str, ...]]
) -> Evaluated:
    def cases(found: Mapping[str, Mapping[str, float]]) -> list[Case]:
        return [
            Case(
                id_,
                "topic",
                "",
                next((name for name in shown if name in values), ""),
                values,
                said_ideal=sentences[id_],
            )
            for id_, values in found.items()
        ]

    return Evaluated(scores, shown, {}, cases)
