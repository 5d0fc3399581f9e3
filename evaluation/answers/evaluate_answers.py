"""Optional measures of answers, which need a model or are slow to compute."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.errors import InputError
from evaluation.answers.compare_texts import BertScorer, score_texts
from evaluation.answers.find_judge import Judge
from evaluation.answers.judge_answers import WEAK_BELOW, Progress, Sample, judge_samples
from evaluation.bioasq.read_bioasq import Entry
from evaluation.bioasq.score_bioasq import EXACT_TEXT
from evaluation.evaluated import Evaluated

Entries = Mapping[str, Entry]


def _with_ideal(gold: Entries, run: Entries) -> list[str]:
    return [id_ for id_, entry in gold.items() if entry.ideal and id_ in run and run[id_].ideal]


def add_texts(
    evaluated: Evaluated, gold: Entries, run: Entries, bert_model: Path | None
) -> Evaluated:
    """Add BLEU of ideal and exact answers, and BERTScore if the folder `bert_model` is given.

    Ideal answers are compared if gold and run both have one, exact answers as in `exact_texts`.
    Raises InputError for a run that has neither.
    """
    ids = _with_ideal(gold, run)
    exact, exact_gold = exact_texts(gold, run)
    if not ids and not exact:
        raise InputError(
            "the run has no ideal answer to a question with a gold one, and no exact answer; "
            "there is no text to compare"
        )
    scorer = BertScorer(bert_model) if bert_model is not None else None
    ideal = {id_: " ".join(run[id_].ideal) for id_ in ids}
    evaluated = evaluated.with_scores(
        score_texts(ideal, {id_: gold[id_].ideal for id_ in ids}, scorer)
    )
    return evaluated.with_scores(score_texts(exact, exact_gold, scorer, prefix=EXACT_TEXT))


def exact_texts(gold: Entries, run: Entries) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return exact answers as texts by question, and their references, as in paper 000.

    The text of a factoid is its first answer, that of a list all its names, joined by spaces (000,
    listings 5 to 7). Each gold name is a reference. A whole gold list is one too, unlike in the
    paper, so that a perfect list scores 100. If only some questions of a run have no exact answer,
    their texts are empty and score 0. If none has one, both results are {}.
    """
    if not any(entry.exact for entry in run.values()):
        return {}, {}
    said, references = {}, {}
    for id_, entry in gold.items():
        if id_ not in run or entry.exact is None:
            continue
        names = [item[0] for item in run[id_].exact or ()]
        said[id_] = " ".join(names if entry.type == "list" else names[:1])
        references[id_] = [name for item in entry.exact for name in item]
        if entry.type == "list":
            references[id_].append(" ".join(item[0] for item in entry.exact))
    return said, references


def samples(gold: Entries, run: Entries) -> list[Sample]:
    """Return the samples for RAGAS; the contexts are the passages that the writer received.

    Runs of other systems do not store these passages; their contexts are the texts of the snippets.
    Raises InputError if gold and run have no ideal answer to the same question.
    """
    ids = _with_ideal(gold, run)
    if not ids:
        raise InputError("the run has no ideal answer to a question with a gold one; nothing to do")
    return [
        Sample(
            id_,
            gold[id_].body,
            " ".join(run[id_].ideal),
            _texts(run[id_]) if (shown := run[id_].shown) is None else shown,
            gold[id_].ideal[0],
            _texts(gold[id_]),
        )
        for id_ in ids
    ]


def _texts(entry: Entry) -> tuple[str, ...]:
    return tuple(snippet.text for snippet in entry.snippets if snippet.text)


def add_ragas(
    evaluated: Evaluated,
    asked: Sequence[Sample],
    judge: Judge,
    concurrent: int,
    progress: Progress,
) -> Evaluated:
    """Add RAGAS's four measures by `judge`, and a note on the judge's accuracy."""
    judged = asyncio.run(
        judge_samples(asked, judge.model, judge.encode, concurrent=concurrent, progress=progress)
    )
    note = f"RAGAS's judge was right on {judged.probe_accuracy:.0%} of cases with known verdicts"
    if judged.weak:
        note = f"weak judge: {note}, below {WEAK_BELOW:.0%}; its scores are not reliable"
    return evaluated.with_scores(judged.scores, note)
