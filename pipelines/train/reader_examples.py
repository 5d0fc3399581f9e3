"""What the reader learns from: questions beside passages, marked with what the gold answers say.

A gold snippet takes the stance of its question's exact answer, names what the exact answer names,
and its sentences count by how much of the ideal answer they hold. Citations that come close to a
question and are not its gold say nothing to it.
"""

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
from cluster.reader import NO, SILENT, YES
from cluster.sentences import sentence_spans
from pipelines.train.contrary import contradict
from pipelines.train.read_questions import Corpus
from pipelines.train.recipe import ReaderRecipe

STANCES = {"yes": YES, "no": NO}

# A passage of an index is about this long; longer texts are cut to windows of whole sentences.
PASSAGE_CHARS = 512
# Sentences are short of the ideal answer's words even where they hold all of it.
SUMMARY_SCALE = 1.6
_WORD = re.compile(r"[a-z0-9]+")
_SHORT_FORM = re.compile(r"([^()]+)\(([^()]{2,20})\)\.?")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Marked:
    """A span of a passage, in code points, end exclusive; `share` is how much of it holds."""

    begin: int
    end: int
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class ReaderExample:
    """A question and a passage with what is known of the pair; None is not known.

    `stance` is one of cluster.reader's YES, NO and SILENT, `names` are the spans that name the
    answer, `sentences` all sentences with their share in the ideal answer.
    """

    question: str
    passage: str
    relevant: bool
    stance: int | None = None
    names: tuple[Marked, ...] | None = None
    sentences: tuple[Marked, ...] = ()
    weight: float = 1.0


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

    `candidates` are rows of `corpus` that come close to it, gold or not.
    """
    gold = [corpus.rows[pmid] for pmid in sorted(question.pmids) if pmid in corpus.rows]
    snippets = draw.sample(question.snippets, min(recipe.positives, len(question.snippets)))
    windows = [_window(corpus.texts[row], question.snippets) for row in gold]
    drawn = draw.sample(windows, min(recipe.positives // 2, len(windows)))
    for text in dict.fromkeys([*snippets, *drawn]):
        yield _answering(question, text)
        if question.stance is not None and draw.random() < recipe.flipped:
            yield from _contradicting(question, text)
    others = [row for row in candidates if row not in gold]
    for row in draw.sample(others, min(recipe.negatives, len(others))):
        yield _silent(question, _window(corpus.texts[row], ()), weight=0.5)
    yield _silent(question, _window(draw.choice(corpus.texts), ()), weight=1.0)


def _answering(question: AnsweredQuestion, text: str) -> ReaderExample:
    spans = tuple(find_names(text, question.names)) if question.names else None
    sentences = tuple(
        Marked(begin, end, min(1.0, SUMMARY_SCALE * overlap(text[begin:end], question.ideal)))
        for begin, end in sentence_spans(text)
    )
    return ReaderExample(question.text, text, True, question.stance, spans, sentences)


def _contradicting(question: AnsweredQuestion, text: str) -> Iterator[ReaderExample]:
    """The text's sentence that speaks most of the question, turned round, for the other stance."""
    asked = set(_WORD.findall(question.text.lower()))
    parts = [text[begin:end] for begin, end in sentence_spans(text)]
    best = max(parts, key=lambda part: len(asked.intersection(_WORD.findall(part.lower()))))
    turned = contradict(best)
    if turned:
        other = NO if question.stance == YES else YES
        yield ReaderExample(question.text, turned, True, other, weight=0.5)


def _silent(question: AnsweredQuestion, text: str, weight: float) -> ReaderExample:
    stance = SILENT if question.stance is not None else None
    spans = () if question.names else None
    sentences = tuple(Marked(begin, end, 0.0) for begin, end in sentence_spans(text))
    return ReaderExample(question.text, text, False, stance, spans, sentences, weight)


def _window(text: str, wanted: Sequence[str]) -> str:
    """Whole sentences of `text`, about a passage long, from the first that holds one `wanted`."""
    begin = max(0, min((p for p in map(text.find, wanted) if p >= 0), default=0))
    spans = [span for span in sentence_spans(text) if span[1] > begin]
    if not spans:
        return text[:PASSAGE_CHARS]
    ends = [end for _, end in spans if end - spans[0][0] <= PASSAGE_CHARS]
    return text[spans[0][0] : ends[-1] if ends else spans[0][0] + PASSAGE_CHARS]


def find_names(text: str, groups: Sequence[Sequence[str]]) -> list[Marked]:
    """Where `text` has one of the names as whole words, longer ones first, none inside another."""
    forms = {form for group in groups for name in group for form in _forms(name)}
    found: list[Marked] = []
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        pattern = rf"(?<![^\W_]){re.escape(form)}(?:s|es)?(?![^\W_])"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if not any(match.start() < m.end and m.begin < match.end() for m in found):
                found.append(Marked(match.start(), match.end()))
    return sorted(found, key=lambda mark: mark.begin)


def _forms(name: str) -> Iterator[str]:
    """The name as evidence may write it: without its article, stop or short form in brackets."""
    plain = _ARTICLE.sub("", name.strip().rstrip("."), count=1)
    both = _SHORT_FORM.fullmatch(plain)
    for form in (plain, *(map(str.strip, both.groups()) if both else ())):
        if len(form) >= 2:
            yield form
            yield form.replace("-", " ")


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
