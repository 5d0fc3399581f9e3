"""Quality of a reader on BioASQ questions with their gold snippets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import f1_score

from cluster.models.reader import Reader
from pipelines.train.examples.mark_names import find_names
from pipelines.train.reader.bioasq import AnsweredQuestion
from pipelines.train.reader.records import YES

BATCH = 8


def measure_reader(
    model: Any, tokenizer: Any, questions: Sequence[AnsweredQuestion], max_tokens: int
) -> dict[str, float]:
    """Return the macro F1 of yes/no questions, the share of factoid questions whose best name is
    right, and the F1 of the spans of names; a measure without questions is left out.

    A yes/no question is answered by the sum over its snippets.
    """
    reader = Reader(model, tokenizer, max_tokens=max_tokens, batch_size=BATCH)
    pairs: list[tuple[bool, bool]] = []
    right = asked = hit = said = wanted = 0
    for question in questions:
        if question.stance is None and not question.names:
            continue
        readings = reader.read(question.text, question.snippets)
        if question.stance is not None:
            balance = sum(r.relevance * (r.yes - r.no) for r in readings)
            pairs.append((question.stance == YES, balance > 0))
            continue
        best, best_score = "", 0.0
        for text, reading in zip(question.snippets, readings, strict=True):
            gold = {(m.begin, m.end) for m in find_names(text, question.names)}
            found = {(n.begin, n.end) for n in reading.names if n.score >= 0.5}
            hit, said, wanted = hit + len(gold & found), said + len(found), wanted + len(gold)
            for name in reading.names:
                score = name.score * reading.relevance
                if score > best_score:
                    best, best_score = text[name.begin : name.end], score
        if question.kind == "factoid":
            asked += 1
            right += any(best.lower() == n.lower() for group in question.names for n in group)
    measures = {}
    if pairs:
        gold_sides, read_sides = zip(*pairs, strict=True)
        options = {"labels": [True, False], "average": "macro", "zero_division": 0}
        measures["yes/no macro F1"] = float(f1_score(gold_sides, read_sides, **options))
    if asked:
        measures["factoid first right"] = right / asked
    if said or wanted:
        measures["names F1"] = 2 * hit / (said + wanted)
    return measures
