"""Hard negatives: questions, each with a text on a similar subject that does not answer it.

A negative that shares the question's words teaches the reader that words in common are not an
answer (Karpukhin et al. 2020, section 3.2). The texts are those of other questions, so one that
answers by chance is rare.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from cluster.records import Citation
from pipelines.train.examples.mine_candidates import best_by_bm25
from pipelines.train.reader.abstracts import AbstractQuestion
from pipelines.train.reader.bioasq import silent
from pipelines.train.reader.claims import read_rows
from pipelines.train.reader.records import ReaderExample

# Number of texts that are ranked for a question, and of those that an example is drawn from.
_RANKED = 12
_NEAREST = 8
# Share of questions whose text is drawn from all texts.
_RANDOM = 0.25
# Largest number of a row's sentences in a text.
_SENTENCES = 3

# A question or text, and the row or abstract that it belongs to.
Owned = tuple[object, str]


def hard_negative_examples(
    count: int,
    asked: Sequence[AbstractQuestion],
    abstracts: Mapping[int, Citation],
    draw: random.Random,
) -> Iterator[ReaderExample]:
    """Yield at most `count` yes/no questions, each with a text of another question.

    Questions are those of the written contrast sets and of `asked`; texts are those of the sets
    and of `abstracts`.
    """
    questions, texts = _read_sets(draw)
    questions += [(q.pmid, q.question) for q in asked]
    texts += [(pmid, citation.search_text) for pmid, citation in abstracts.items()]
    # Two rows may ask the same question.
    owners = defaultdict(set)
    for owner, question in questions:
        owners[question].add(owner)
    chosen = draw.sample(sorted(owners), min(count, len(owners)))
    plain = [text for _, text in texts]
    ranked = best_by_bm25(plain, chosen, _RANKED)
    for question, rows in zip(chosen, ranked, strict=True):
        near = [row for row in rows if texts[row][0] not in owners[question]][:_NEAREST]
        at_random = not near or draw.random() < _RANDOM
        row = draw.randrange(len(texts)) if at_random else draw.choice(near)
        if texts[row][0] not in owners[question]:
            yield silent(question, plain[row], 1.0, sided=True)


def _read_sets(draw: random.Random) -> tuple[list[Owned], list[Owned]]:
    """Return questions and texts of the claims and abstracts in configs/training."""
    questions: list[Owned] = []
    texts: list[Owned] = []
    sides = ("affirms", "denies", "open")
    for number, row in enumerate(read_rows("claims", ("ask", "opposite", *sides))):
        owner = ("claim", number)
        questions += [(owner, q) for q in (*row["ask"], *row["opposite"])]
        for side in sides:
            few = draw.sample(row[side], min(_SENTENCES, len(row[side])))
            texts.append((owner, " ".join(few)))
    for number, row in enumerate(read_rows("abstracts", ("text", "yes", "no", "silent"))):
        owner = ("abstract", number)
        questions += [(owner, q) for q in (*row["yes"], *row["no"])]
        texts.append((owner, row["text"]))
    return questions, texts
