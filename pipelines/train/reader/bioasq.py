"""Examples from BioASQ questions: snippets, gold citations, and citations that do not answer."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import Marked, find_names
from pipelines.train.examples.read_questions import Corpus
from pipelines.train.reader.records import (
    NO,
    SILENT,
    YES,
    ReaderExample,
    ScoredSentence,
    Stance,
)

STANCES = {"yes": YES, "no": NO}
# Number of citations for each question: gold ones, and mined ones that are not gold.
POSITIVES = 4
NEGATIVES = 2
# Weight of a mined citation; it may answer the question although it is not gold.
MINED_WEIGHT = 0.6
# Weight of a gold citation, which may lack the answer; all snippets together rarely do.
CITATION_WEIGHT = 0.7
# Share of gold citations embedded in sentences of another one, as in a whole abstract.
EMBEDDED = 0.5
# Lowest score of a sentence that answers.
LEAST_SCORE = 0.4
SCALE = 1.6
_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A BioASQ question with its gold answers: `names` are lists of synonyms."""

    id: str
    text: str
    kind: str
    pmids: frozenset[int]
    snippets: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    stance: Stance | None
    ideal: tuple[str, ...]


def read_answered(paths: Sequence[Path]) -> list[AnsweredQuestion]:
    """Read the questions of BioASQ files that have snippets and an ideal answer, in order.

    Raises InputError for an invalid row, or if no question is left.
    """
    questions = []
    for path in paths:
        for position, row in enumerate(read_rows(path)):
            try:
                question = _answered(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}: question {position}: not a gold question ({error!r}); it needs body, "
                    "type, documents, snippets, ideal_answer and, by type, exact_answer"
                ) from error
            if question.snippets and question.ideal:
                questions.append(question)
    if not questions:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names}: no question has snippets and an ideal answer to learn from")
    return questions


def _answered(row: Mapping[str, Any]) -> AnsweredQuestion:
    kind, exact, ideal = row["type"], row.get("exact_answer"), row["ideal_answer"] or ()
    groups = exact if kind in ("factoid", "list") and exact else []
    return AnsweredQuestion(
        id=str(row.get("id", "")),
        text=str(row["body"]),
        kind=str(kind),
        pmids=frozenset(int(str(d).rsplit("/", 1)[-1]) for d in row["documents"]),
        snippets=tuple(dict.fromkeys(str(s["text"]) for s in row.get("snippets", ()))),
        names=tuple(tuple(g) if isinstance(g, list) else (str(g),) for g in groups),
        stance=STANCES[str(exact).strip().lower()] if kind == "yesno" else None,
        ideal=(ideal,) if isinstance(ideal, str) else tuple(map(str, ideal)),
    )


def bioasq_examples(
    questions: Sequence[AnsweredQuestion],
    corpus: Corpus,
    candidates: Sequence[Sequence[int]],
    draw: random.Random,
) -> Iterator[ReaderExample]:
    """Yield the examples of `questions`; `candidates` are the rows of `corpus` nearest to each."""
    for question, rows in zip(questions, candidates, strict=True):
        gold = sorted(corpus.rows[pmid] for pmid in question.pmids if pmid in corpus.rows)
        others = [row for row in rows if row not in set(gold)]
        yield from _positives(question, gold, others, corpus, draw)
        yield from _snippets(question, draw)
        yield from _negatives(question, others, corpus, draw)


def _positives(
    question: AnsweredQuestion,
    gold: Sequence[int],
    others: Sequence[int],
    corpus: Corpus,
    draw: random.Random,
) -> Iterator[ReaderExample]:
    for row in draw.sample(gold, min(POSITIVES, len(gold))):
        text = corpus.texts[row]
        if draw.random() < EMBEDDED:
            distractor = draw.choice(others) if others else draw.randrange(len(corpus.texts))
            text = embed(text, corpus.texts[distractor], draw)
        yield answering(question, text, CITATION_WEIGHT)


def _snippets(question: AnsweredQuestion, draw: random.Random) -> Iterator[ReaderExample]:
    """Yield a yes/no question twice, each time with one to three of its snippets as the text."""
    if question.stance is None:
        return
    for _ in range(2):
        count = min(len(question.snippets), draw.choice([1, 2, 3]))
        yield answering(question, " ".join(draw.sample(question.snippets, count)), 1.0)


def _negatives(
    question: AnsweredQuestion, others: Sequence[int], corpus: Corpus, draw: random.Random
) -> Iterator[ReaderExample]:
    mined = draw.sample(others, min(NEGATIVES, len(others)))
    for row, weight in [*((row, MINED_WEIGHT) for row in mined), (-1, 1.0)]:
        text = corpus.texts[row if row >= 0 else draw.randrange(len(corpus.texts))]
        named = question.names and find_names(text, question.names)
        if named:
            continue
        yield silent(question.text, text, weight, question.stance is not None)


def answering(question: AnsweredQuestion, text: str, weight: float) -> ReaderExample:
    """Return the example of a text that answers `question`, with labels found by its words."""
    names = tuple(find_names(text, question.names)) if question.names else None
    spans = sentence_spans(text)
    sentences = tuple(
        ScoredSentence(begin, end, _score(question, text[begin:end])) for begin, end in spans
    )
    return ReaderExample(question.text, text, 1.0, question.stance, names, sentences, weight)


def _score(question: AnsweredQuestion, sentence: str) -> float:
    inside = any(sentence in snippet or snippet in sentence for snippet in question.snippets)
    if not inside:
        return 0.0
    return max(LEAST_SCORE, min(1.0, SCALE * overlap(sentence, question.ideal)))


def silent(question: str, text: str, weight: float, sided: bool) -> ReaderExample:
    """Return the example of a text that does not answer; `sided` is true for yes/no questions."""
    sentences = tuple(ScoredSentence(b, e, 0.0) for b, e in sentence_spans(text))
    names: tuple[Marked, ...] = ()
    return ReaderExample(question, text, 0.0, SILENT if sided else None, names, sentences, weight)


def embed(text: str, other: str, draw: random.Random, most: int = 8) -> str:
    """Insert `text` among up to `most` sentences of `other`, most often at the end."""
    spans = sentence_spans(other)[:most]
    sentences = [other[begin:end] for begin, end in spans]
    position = len(sentences) if draw.random() < 0.5 else draw.randint(0, len(sentences))
    return " ".join([*sentences[:position], text, *sentences[position:]])


def overlap(sentence: str, references: Sequence[str]) -> float:
    """Return the weighted F1 of words (0.3) and bigrams (0.7) with the nearest reference."""
    return max(
        0.3 * _f1(_words(sentence), _words(reference))
        + 0.7 * _f1(list(pairwise(_words(sentence))), list(pairwise(_words(reference))))
        for reference in references
    )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _f1(said: Sequence[Any], wanted: Sequence[Any]) -> float:
    shared = (Counter(said) & Counter(wanted)).total()
    return 2 * shared / max(1, len(said) + len(wanted))
