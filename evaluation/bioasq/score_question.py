"""Scores of one BioASQ task b question, as the official program computes them.

Source: BioASQ/Evaluation-Measures, EvaluatorTask1b with `-e 9` (since BioASQ 9), ported line by
line. Differences from the guidelines are kept and documented here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from evaluation.bioasq.read_bioasq import Snippet, document_id

MAX_ITEMS = 10
MAX_FACTOIDS = 5


def precision_recall_f(right: float, said: float, asked: float) -> tuple[float, float, float]:
    """Return (precision, recall, F1) of `right` out of `said` items, with `asked` expected.

    0 / 0 counts as 0.
    """
    precision = right / said if said else 0.0
    recall = right / asked if asked else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def score_documents(
    gold: Sequence[str], found: Sequence[str], depth: int = MAX_ITEMS
) -> tuple[float, float, float, float]:
    """Return (precision, recall, F1, average precision) of the first `depth` documents.

    Documents are distinct and compared as strings, addresses included. The denominator of average
    precision is the number of gold documents, at most `depth`, which is 10 officially.
    """
    found = found[:depth]
    wanted = set(gold)
    hits, total = 0, 0.0
    for rank, document in enumerate(found, start=1):
        if document in wanted:
            hits += 1
            total += hits / rank
    average = total / min(depth, len(gold)) if hits else 0.0
    return *precision_recall_f(hits, len(found), len(gold)), average


def condense(found: Sequence[str], judged: Collection[str]) -> tuple[float, list[str]]:
    """Return the share of unjudged documents among the first ten, and all judged documents.

    The plain measures count a document that no expert judged as irrelevant; measures over the
    condensed list, of judged documents only, ignore it (Sakai, SIGIR 2007). `judged` holds the last
    parts of addresses. The share of an empty list is 0.
    """
    head = found[:MAX_ITEMS]
    known = [document for document in head if document_id(document) in judged]
    return (1 - len(known) / len(head) if head else 0.0), known


def merge_snippets(snippets: Sequence[Snippet]) -> list[Snippet]:
    """Merge overlapping snippets of a section, at the position of the first.

    Touching spans overlap, because an end is inclusive.
    """
    merged = list(snippets)
    first = 0
    while first < len(merged):
        other = first + 1
        while other < len(merged):
            if _overlap_in_section(merged[first], merged[other]):
                one, two = merged[first], merged.pop(other)
                begin, end = min(one.begin, two.begin), max(one.end, two.end)
                merged[first] = Snippet(
                    one.document, one.begin_section, one.end_section, begin, end
                )
                other = first + 1
            else:
                other += 1
        first += 1
    return merged


def _overlap_in_section(one: Snippet, other: Snippet) -> bool:
    return (
        one.document == other.document
        and one.begin_section == other.begin_section
        and one.end_section == other.end_section
        and one.begin <= other.end
        and one.end >= other.begin
    )


def overlap(found: Snippet, gold: Snippet) -> int:
    """Return the number of characters in both spans; 0 if the sections differ.

    "0" is the abstract's old name.
    """
    same = (found.begin_section, found.end_section) == (gold.begin_section, gold.end_section)
    if not same and not (found.begin_section == "0" and gold.begin_section == "abstract"):
        return 0
    if found.begin > gold.end or found.end < gold.begin:
        return 0
    return min(found.end, gold.end) - max(found.begin, gold.begin) + 1


def score_snippets(
    gold: Sequence[Snippet], found: Sequence[Snippet], depth: int = MAX_ITEMS
) -> tuple[float, float, float, float]:
    """Return (precision, recall, F1, average precision) by characters.

    Overlapping snippets are merged. The first `depth` snippets count, 10 officially. Two behaviours
    of the official program are kept. Precision and recall compare documents by their last path
    part, average precision by the whole address. And in average precision a snippet is relevant if
    its document has any gold snippet, overlapping or not (its precision still counts characters).
    """
    wanted, said = merge_snippets(gold), merge_snippets(found[:depth])
    if not wanted or not said:
        return 0.0, 0.0, 0.0, 0.0
    right = sum(
        overlap(s, g)
        for s in said
        for g in wanted
        if document_id(s.document) == document_id(g.document)
    )
    size = sum(s.end - s.begin + 1 for s in said)
    measures = precision_recall_f(right, size, sum(g.end - g.begin + 1 for g in wanted))
    documents = {g.document for g in wanted}
    shared, length, total = 0, 0, 0.0
    for snippet in said:
        shared += sum(overlap(snippet, g) for g in wanted if snippet.document == g.document)
        length += snippet.end - snippet.begin + 1
        if not length:
            # The program divides by 0 here, and replaces NaN with 0.
            return *measures, 0.0
        if snippet.document in documents:
            total += shared / length
    return *measures, total / min(depth, len(wanted))


Items = Sequence[Sequence[str]]


def score_factoid(gold: Items, said: Items | None) -> tuple[float, float, float]:
    """Return (strict accuracy, lenient accuracy, reciprocal rank) of at most five answers."""
    names = {name for item in gold for name in item}
    for rank, item in enumerate((said or ())[:MAX_FACTOIDS], start=1):
        if any(name in names for name in item):
            return float(rank == 1), 1.0, 1 / rank
    return 0.0, 0.0, 0.0


def score_list(gold: Items, said: Items | None) -> tuple[float, float, float]:
    """Return (precision, recall, F1) of a list; each gold item is found at most once.

    As in the official program, a gold item whose only matching answer already matched another item
    counts neither as found nor as missed.
    """
    if not said:
        return 0.0, 0.0, 0.0
    left = [set(item) for item in gold]
    answers = [set(item) for item in said]
    right = 0
    for answer in answers:
        match = next((position for position, item in enumerate(left) if item & answer), None)
        if match is not None:
            left.pop(match)
            right += 1
    missed = 0
    for item in left:
        match = next((position for position, answer in enumerate(answers) if item & answer), None)
        if match is None:
            missed += 1
        else:
            answers.pop(match)
    return precision_recall_f(right, len(said), right + missed)


def log_average_precision(average: float) -> float:
    """Return log(average precision + 1e-5), the term that GMAP averages.

    As in the program, NaN if snippets that end before they begin make the argument negative.
    """
    return math.log(average + 1e-5) if average + 1e-5 > 0 else math.nan
