"""Choose snippets: evidence sentences that answer the question, with exact offsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster.answers import Evidence
from cluster.records import Passage
from cluster.text.sentences import sentence_spans
from serve.support.attribute_sentences import Encode


def choose_snippets(
    body: str,
    evidence: Sequence[Evidence],
    encode: Encode,
    *,
    limit: int = 10,
    window: int = 2,
) -> list[Passage]:
    """Return the best 1 to `window` consecutive sentences of each passage, in passage order.

    The best are those with the highest cosine with the question; ties go to the earlier, then the
    shorter. Snippets that overlap one already chosen are left out. Offsets refer to the section.
    """
    passages = [item.passage for item in evidence]
    return _without_overlaps(_best_windows(body, passages, encode, window), limit)


def whole_passages(evidence: Sequence[Evidence], limit: int = 10) -> list[Passage]:
    """Return whole passages as snippets, without overlaps as in `choose_snippets`."""
    return _without_overlaps([item.passage for item in evidence], limit)


def _without_overlaps(passages: Sequence[Passage], limit: int) -> list[Passage]:
    chosen: list[Passage] = []
    for passage in passages:
        if len(chosen) == limit:
            break
        if passage.text and not any(_overlap(passage, other) for other in chosen):
            chosen.append(passage)
    return chosen


def _best_windows(
    body: str, passages: Sequence[Passage], encode: Encode, window: int
) -> list[Passage]:
    windows = [_windows(passage, window) for passage in passages]
    texts = [part.text for parts in windows for part in parts]
    if not texts:
        return []
    vectors = encode([body, *texts])
    scores = vectors[1:] @ vectors[0]
    best: list[Passage] = []
    start = 0
    for parts in windows:
        if parts:
            best.append(parts[int(np.argmax(scores[start : start + len(parts)]))])
        start += len(parts)
    return best


def _windows(passage: Passage, size: int) -> list[Passage]:
    """Return all runs of up to `size` sentences, ordered by begin and then by length."""
    spans = sentence_spans(passage.text)
    return [
        cut_passage(passage, spans[first][0], spans[last][1])
        for first in range(len(spans))
        for last in range(first, min(first + size, len(spans)))
    ]


def cut_passage(passage: Passage, begin: int, end: int) -> Passage:
    """Return the part [begin, end) of the passage's text, stripped of white space."""
    text = passage.text[begin:end]
    begin += len(text) - len(text.lstrip())
    text = text.strip()
    return Passage(
        passage.pmid,
        passage.section,
        passage.begin + begin,
        passage.begin + begin + len(text),
        text,
    )


def _overlap(one: Passage, other: Passage) -> bool:
    return (
        (one.pmid, one.section) == (other.pmid, other.section)
        and one.begin < other.end
        and other.begin < one.end
    )
