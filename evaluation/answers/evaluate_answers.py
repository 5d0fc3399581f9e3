"""What is measured of ideal answers only when it is asked for: it needs a model or time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster.errors import InputError
from evaluation.answers.compare_texts import BertScorer, score_texts
from evaluation.answers.judge_answers import WEAK_BELOW, Encode, Progress, Sample, judge_samples
from evaluation.bioasq.read_bioasq import Entry
from evaluation.evaluated import Evaluated
from serve.llm.language_model import ChatModel

Entries = Mapping[str, Entry]


def answered(gold: Entries, run: Entries) -> list[str]:
    """The questions with an ideal answer on both sides.

    Raises InputError when there is none, since nothing could be measured.
    """
    ids = [id_ for id_, entry in gold.items() if entry.ideal and id_ in run and run[id_].ideal]
    if not ids:
        raise InputError("the run has no ideal answer to a question with a gold one; nothing to do")
    return ids


def add_texts(
    evaluated: Evaluated, gold: Entries, run: Entries, bert_model: Path | None
) -> Evaluated:
    """BLEU, and BERTScore by the model in the folder `bert_model` if given."""
    ids = answered(gold, run)
    scorer = BertScorer(bert_model) if bert_model is not None else None
    scores = score_texts(
        {id_: " ".join(run[id_].ideal) for id_ in ids},
        {id_: gold[id_].ideal for id_ in ids},
        scorer,
    )
    return evaluated.with_scores(scores)


def samples(gold: Entries, run: Entries) -> list[Sample]:
    """What RAGAS judges: the contexts are what the writer was shown.

    Where a run does not tell, as others' runs, they are the texts of its snippets.
    """
    return [
        Sample(
            id_,
            gold[id_].body,
            " ".join(run[id_].ideal),
            _texts(run[id_]) if (shown := run[id_].shown) is None else shown,
            gold[id_].ideal[0],
            _texts(gold[id_]),
        )
        for id_ in answered(gold, run)
    ]


def _texts(entry: Entry) -> tuple[str, ...]:
    return tuple(snippet.text for snippet in entry.snippets if snippet.text)


def add_ragas(
    evaluated: Evaluated,
    asked: Sequence[Sample],
    model: ChatModel,
    encode: Encode,
    *,
    concurrent: int,
    progress: Progress | None = None,
) -> Evaluated:
    """RAGAS's four measures by the judge `model`; a note says how far it can be trusted."""
    judged = asyncio.run(
        judge_samples(asked, model, encode, concurrent=concurrent, progress=progress)
    )
    note = f"RAGAS's judge was right on {judged.probe_accuracy:.0%} of cases with known verdicts"
    if judged.weak:
        note = f"weak judge: {note}, below {WEAK_BELOW:.0%}; its scores say little"
    return evaluated.with_scores(judged.scores, note)
