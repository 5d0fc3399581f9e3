"""Evaluate a BioASQ or Synergy run against its gold file.

files -> entries -> (without material judged before) -> scores -> worst questions for review
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaluation.bioasq.read_bioasq import Entry, Snippet, document_id, read_gold, read_run
from evaluation.bioasq.read_judgements import (
    Judged,
    judged_documents,
    read_feedback,
    read_qrels,
    remove_judged,
)
from evaluation.bioasq.risk_coverage import score_risk
from evaluation.bioasq.score_bioasq import score_run
from evaluation.bioasq.score_question import MAX_ITEMS, overlap
from evaluation.bioasq.score_verdicts import score_verdicts
from evaluation.evaluated import Evaluated
from evaluation.report.report import Case, DocumentRow, SnippetRow

# The first of these scores that a run has selects its worst questions.
RANKING_SCORES = ("documents AP", "snippets F1", "ROUGE-2 F1", "factoid MRR", "list F1")
NO_CONFIDENCE = (
    "the run has no confidence values, so there is no risk-coverage curve; `citeray answer` writes "
    "the field `confidence` for each question"
)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A gold file, the judged documents of each question, and judgements of earlier rounds."""

    gold: Mapping[str, Entry]
    judged: Mapping[str, frozenset[str]]
    before: Mapping[str, Judged] = field(default_factory=dict)


def read_benchmark(
    gold: Path, feedback: Sequence[Path] = (), qrels: Path | None = None
) -> Benchmark:
    """Read the gold file without material judged in the `feedback` files; `qrels` adds judgements.

    Raises InputError, naming the file and the place, for invalid content.
    """
    before = read_feedback(feedback)
    entries = _without_judged(read_gold(gold), before)
    judged = judged_documents(entries, read_qrels(qrels) if qrels else None)
    return Benchmark(entries, judged, before)


def _without_judged(entries: Mapping[str, Entry], before: Mapping[str, Judged]) -> dict[str, Entry]:
    return {
        id_: remove_judged(entry, before[id_]) if id_ in before else entry
        for id_, entry in entries.items()
    }


def read_answers(run: Path, benchmark: Benchmark) -> dict[str, Entry]:
    """Read the run without material judged before; raises the errors of `read_run`."""
    return _without_judged(read_run(run, benchmark.gold), benchmark.before)


def evaluate_bioasq(
    run: Mapping[str, Entry], benchmark: Benchmark, depth: int = MAX_ITEMS
) -> Evaluated:
    """Return all measures of a run from `read_answers`; `depth` is as in `score_run`."""
    scores = score_run(benchmark.gold, run, benchmark.judged, depth)
    verdicts, risks = score_verdicts(benchmark.gold, run, scores), score_risk(run, scores)
    scores = scores.beside(verdicts).beside(risks)
    types: dict[str, list[str]] = {}
    for id_ in scores.ids:
        types.setdefault(benchmark.gold[id_].type, []).append(id_)
    lost = sum(not snippet.placed for entry in run.values() for snippet in entry.snippets)
    evaluated = Evaluated(
        scores,
        RANKING_SCORES,
        {type_: tuple(ids) for type_, ids in types.items()},
        lambda found: [
            _case(benchmark.gold[id_], run[id_], benchmark.judged[id_], scores)
            for id_, scores in found.items()
        ],
    )
    has_exact = any(entry.exact is not None for entry in run.values())
    if has_exact and all(entry.confidence is None for entry in run.values()):
        evaluated = evaluated.with_notes(NO_CONFIDENCE)
    if not lost:
        return evaluated
    return evaluated.with_notes(
        f"snippets with null as an offset, which is scored as 0: {lost}; give each its offsets in "
        "its section"
    )


def _case(gold: Entry, said: Entry, judged: frozenset[str], scores: Mapping[str, float]) -> Case:
    return Case(
        gold.id,
        gold.type,
        gold.body,
        next((name for name in RANKING_SCORES if name in scores), ""),
        scores,
        _documents(gold, said, judged),
        _snippets(gold.snippets, said.snippets),
        gold.ideal,
        said.ideal,
        gold.exact,
        said.exact,
    )


def _documents(gold: Entry, said: Entry, judged: frozenset[str]) -> tuple[DocumentRow, ...]:
    """Return the run's documents in order, then the gold documents that it missed."""
    ranks = {document: rank for rank, document in enumerate(said.documents, start=1)}
    wanted = set(gold.documents)
    names = (*said.documents, *(d for d in gold.documents if d not in ranks))
    return tuple(
        DocumentRow(d, ranks.get(d), d in wanted, d in wanted or document_id(d) in judged)
        for d in names
    )


def _snippets(gold: Sequence[Snippet], said: Sequence[Snippet]) -> tuple[SnippetRow, ...]:
    rows = [_snippet(snippet, gold, in_run=True) for snippet in said]
    both = set(gold) & set(said)
    rows += [_snippet(snippet, said, in_run=False) for snippet in gold if snippet not in both]
    return tuple(rows)


def _snippet(snippet: Snippet, others: Sequence[Snippet], *, in_run: bool) -> SnippetRow:
    """Return a row whose matched part is the overlap with the best-matching other snippet."""
    document = document_id(snippet.document)
    same = [other for other in others if document_id(other.document) == document]
    best = max(same, key=lambda other: overlap(snippet, other), default=None)
    hit = best is not None and overlap(snippet, best) > 0
    matched = None
    if best is not None and hit:
        begin = max(snippet.begin, best.begin) - snippet.begin
        matched = (begin, min(snippet.end, best.end) - snippet.begin)
    in_gold = not in_run or snippet in others
    return SnippetRow(snippet.document, snippet.text, hit, in_run, in_gold, matched)
