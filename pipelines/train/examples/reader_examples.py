"""What the reader learns from: questions beside passages, marked with what the gold answers say.

A gold snippet takes the stance of its question's exact answer, names what the exact answer names,
and counts by how much of the ideal answer it holds. Sentences of citations that come close to a
question and are not its gold say nothing to it, alone or beside a snippet.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cluster.bioasq_file import read_rows
from cluster.errors import InputError
from cluster.models.readings import NO, SILENT, YES, split_passage
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.contrary import contradict
from pipelines.train.examples.mark_names import Marked, find_names
from pipelines.train.examples.read_questions import Corpus
from pipelines.train.recipe import ReaderRecipe

STANCES = {"yes": YES, "no": NO}

# A passage of an index is about this long; longer texts are cut to windows of whole sentences.
PASSAGE_CHARS = 512
# How many other sentences stand beside an answer, at most.
MAX_COMPANY = 3
# Sentences are short of the ideal answer's words even where they hold all of it.
SUMMARY_SCALE = 1.6
_WORD = re.compile(r"[a-z0-9]+")
_VERDICT = re.compile(r"^(?:yes|no)\b[\s,.:;-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a passage that is judged alone, with what is known of it; None is not known.

    `stance` is one of cluster.models.reader's YES, NO and SILENT, `share` how much of the ideal
    answer the part holds, `weight` how far all of this is to be believed.
    """

    begin: int
    end: int
    relevant: bool | None
    stance: int | None = None
    share: float | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ReaderExample:
    """A question and a passage; `names` are the spans that name the answer, None if not known."""

    question: str
    passage: str
    parts: tuple[Part, ...]
    names: tuple[Marked, ...] | None = None


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A BioASQ question with its gold: `names` are synonym lists, `stance` that of yes/no."""

    text: str
    kind: str
    pmids: frozenset[int]
    snippets: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    stance: int | None
    ideal: tuple[str, ...]


def read_answered(paths: Sequence[Path]) -> list[AnsweredQuestion]:
    """The questions of BioASQ files that have snippets and an ideal answer, in order.

    Raises InputError for a row of another form, or if no question is left.
    """
    questions = []
    for path in paths:
        for place, row in enumerate(read_rows(path)):
            try:
                question = _answered(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{path}: question {place}: not a gold question ({error!r}); it needs body, "
                    "type, documents, snippets, ideal_answer and, by type, exact_answer"
                ) from error
            if question.snippets and question.ideal:
                questions.append(question)
    if not questions:
        names = ", ".join(map(str, paths))
        raise InputError(f"{names}: no question has snippets and an ideal answer to learn from")
    return questions


def _answered(row: Mapping[str, Any]) -> AnsweredQuestion:
    kind, exact, ideal = row["type"], row.get("exact_answer"), row["ideal_answer"]
    groups = exact if kind in ("factoid", "list") and exact else []
    return AnsweredQuestion(
        text=str(row["body"]),
        kind=str(kind),
        pmids=frozenset(int(str(d).rsplit("/", 1)[-1]) for d in row["documents"]),
        snippets=tuple(dict.fromkeys(str(s["text"]) for s in row.get("snippets", ()))),
        names=tuple(tuple(g) if isinstance(g, list) else (str(g),) for g in groups),
        stance=STANCES[str(exact).strip().lower()] if kind == "yesno" else None,
        ideal=tuple(ideal if isinstance(ideal, list) else [ideal]),
    )


def examples_of(
    question: AnsweredQuestion,
    corpus: Corpus,
    candidates: Sequence[int],
    recipe: ReaderRecipe,
    draw: random.Random,
) -> Iterator[ReaderExample]:
    """The question beside its snippets, its gold citations, and citations that do not answer it.

    `candidates` are rows of `corpus` that come close to it, gold or not. A share
    `recipe.embedded` of the snippets stands among sentences of other citations, as an answer
    does in an abstract.
    """
    gold = {corpus.rows[pmid] for pmid in question.pmids if pmid in corpus.rows}
    others = [row for row in candidates if row not in gold]
    silent = [s for row in others for s in _sentences(corpus.texts[row])]
    for text in draw.sample(question.snippets, min(recipe.positives, len(question.snippets))):
        stance = question.stance
        if stance is not None and draw.random() < recipe.flipped:
            turned = _contradicting(question, text)
            if turned:
                yield _among(question, turned, YES + NO - stance, 0.5, [], draw)
        company: list[str] = []
        if draw.random() < recipe.embedded:
            number = draw.randint(1, MAX_COMPANY)
            company = [_company(silent, corpus, draw) for _ in range(number)]
        yield _among(question, text, stance, 1.0, company, draw)
    for text in question.ideal[:1]:
        yield from _told(question, text, recipe, draw)
    for row in draw.sample(sorted(gold), min(recipe.positives // 2, len(gold))):
        yield _citation(question, corpus.texts[row])
    for row in draw.sample(others, min(recipe.negatives, len(others))):
        yield _of(question, [_silent(question, s, 0.5) for s in _some(corpus.texts[row], draw)])
    row = draw.randrange(len(corpus.texts))
    yield _of(question, [_silent(question, s, 1.0) for s in _some(corpus.texts[row], draw)])


def _told(
    question: AnsweredQuestion, ideal: str, recipe: ReaderRecipe, draw: random.Random
) -> Iterator[ReaderExample]:
    """What a person answered, as evidence would say it: without the "yes" or "no" before it."""
    text = _VERDICT.sub("", ideal, count=1).strip()
    sentences = _sentences(text) if text else []
    if not sentences:
        return
    text = sentences[0][:1].upper() + sentences[0][1:]
    yield _among(question, text, question.stance, 1.0, [], draw)
    if question.stance is not None and draw.random() < recipe.flipped:
        turned = contradict(text)
        if turned:
            yield _among(question, turned, YES + NO - question.stance, 0.5, [], draw)


# A sentence with what is known of it, before it has a place in a passage.
Known = tuple[str, Part]


def _among(
    question: AnsweredQuestion,
    text: str,
    stance: int | None,
    weight: float,
    company: Sequence[str],
    draw: random.Random,
) -> ReaderExample:
    """The snippet `text`, which is one part, with its company before and after it."""
    known = [_answering(question, text, stance, weight)]
    for sentence in company:
        known.insert(draw.randint(0, len(known)), _silent(question, sentence, 0.5))
    return _of(question, known)


def _of(question: AnsweredQuestion, known: Sequence[Known]) -> ReaderExample:
    text, parts = put_together(known)
    return ReaderExample(question.text, text, parts, _names_in(question, text, parts))


def put_together(known: Sequence[Known]) -> tuple[str, tuple[Part, ...]]:
    """The sentences as one passage, and the parts with their places in it."""
    text, parts = "", []
    for sentence, part in known:
        begin = len(text) + bool(text)
        text = f"{text} {sentence}" if text else sentence
        parts.append(replace(part, begin=begin, end=len(text)))
    return text, tuple(parts)


def _names_in(
    question: AnsweredQuestion, text: str, parts: Sequence[Part]
) -> tuple[Marked, ...] | None:
    """Not known for an answer that has none: it may spell the name in another way."""
    if not question.names:
        return None
    found = tuple(find_names(text, question.names))
    return found if found or not any(part.relevant for part in parts) else None


def _citation(question: AnsweredQuestion, text: str) -> ReaderExample:
    """A gold citation: its snippets answer, its other sentences were not chosen."""
    window = _window(text, question.snippets)
    known = [
        _answering(question, sentence, question.stance, 1.0)
        if any(sentence in snippet or snippet in sentence for snippet in question.snippets)
        else _silent(question, sentence, 0.5)
        for sentence in _sentences(window)
    ]
    return _of(question, known)


def _answering(question: AnsweredQuestion, text: str, stance: int | None, weight: float) -> Known:
    share = min(1.0, SUMMARY_SCALE * overlap(text, question.ideal))
    return text, Part(0, 0, True, stance, share, weight)


def _silent(question: AnsweredQuestion, text: str, weight: float) -> Known:
    """A sentence of no gold citation. One with the answer's name may answer all the same."""
    if question.names and find_names(text, question.names):
        return text, Part(0, 0, None)
    stance = SILENT if question.stance is not None else None
    return text, Part(0, 0, False, stance, 0.0, weight)


def _contradicting(question: AnsweredQuestion, text: str) -> str:
    """The text's sentence that speaks most of the question, turned round; "" if none can be."""
    asked = set(_WORD.findall(question.text.lower()))
    best = max(_sentences(text), key=lambda s: len(asked.intersection(_WORD.findall(s.lower()))))
    return contradict(best)


def _company(silent: Sequence[str], corpus: Corpus, draw: random.Random) -> str:
    """A sentence to stand beside an answer: as often of a close citation as of any."""
    if silent and draw.random() < 0.5:
        return draw.choice(silent)
    return draw.choice(_sentences(draw.choice(corpus.texts)))


def _some(text: str, draw: random.Random) -> list[str]:
    """Some neighbouring sentences of `text`."""
    sentences = _sentences(text)
    begin = draw.randrange(len(sentences))
    return sentences[begin : begin + draw.randint(1, MAX_COMPANY)]


def _sentences(text: str) -> list[str]:
    """The parts of `text` that are judged alone; a text without any is one itself."""
    return [text[begin:end] for begin, end in split_passage(text)] or [text]


def _window(text: str, wanted: Sequence[str]) -> str:
    """Whole sentences of `text`, about a passage long, with the first that holds one `wanted`.

    They begin up to a third of a passage before it, as a passage of an index may.
    """
    at = max(0, min((p for p in map(text.find, wanted) if p >= 0), default=0))
    spans = [span for span in sentence_spans(text) if span[1] > at - PASSAGE_CHARS // 3]
    if not spans:
        return text[:PASSAGE_CHARS]
    ends = [end for _, end in spans if end - spans[0][0] <= PASSAGE_CHARS]
    return text[spans[0][0] : ends[-1] if ends else spans[0][0] + PASSAGE_CHARS]


def overlap(sentence: str, references: Sequence[str]) -> float:
    """F1 of words and bigrams with the reference that is nearest, bigrams counting 0.7."""
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
