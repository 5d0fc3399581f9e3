"""Training examples from contrast sets without slots, configs/training/*.jsonl.

Tables with slots (pipelines.train.reader.tables) teach a few relations with many names. These rows
teach inference: "adds months of life" affirms "prolongs survival" although they share no word.
Every sentence of a row answers every question of the row, so 10 questions and 12 sentences give
120 pairs, and each question is answered yes by some sentences and no by others. A row of
abstracts.jsonl has one abstract with questions of both answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS
from cluster.text.sentences import sentence_spans
from pipelines.train.examples.mark_names import Marked
from pipelines.train.examples.read_lines import read_lines
from pipelines.train.reader.bioasq import embed
from pipelines.train.reader.records import (
    NO,
    SILENT,
    YES,
    ReaderExample,
    ScoredSentence,
    opposite,
    sentences_with,
)

_SIDES = {"affirms": YES, "denies": NO, "open": SILENT}
_MARKED = re.compile(r"\[\[(.+?)\]\]")
# Share of texts that are embedded in sentences of a real citation.
_EMBEDDED = 0.2
_AROUND = 4
# Share of open texts that answer a question of another row.
_FOREIGN = 0.4
# Number of sentences in a text that take a side, and of sentences of the same row that do not.
_SAYING = (1, 1, 1, 2, 3)
_BESIDE = (0, 0, 1, 1, 2)
# Number of words in a question of random words.
_WORDS = (1, 1, 2, 3, 4, 6, 9)
# Share of questions for a name whose text does not give it.
_UNANSWERED = 0.3

# Questions on an abstract: one in five is not answered by it.
_ASKED = {"yes": YES, "no": NO, "silent": SILENT}
_ASKED_IN_TURN = ("yes", "no", "yes", "no", "silent")

Row = Mapping[str, Any]


def read_rows(name: str, keys: Sequence[str]) -> list[Row]:
    """Read a file of configs/training; raises InputError for a row without one of `keys`."""
    path = CONFIGS / "training" / f"{name}.jsonl"
    rows: list[Row] = []
    for number, row in read_lines(path):
        missing = [key for key in keys if not row.get(key)]
        if missing:
            raise InputError(
                f"{path}, line {number}: the row has no {', '.join(missing)}: add them"
            )
        rows.append(row)
    return rows


def claim_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` yes/no questions, each with a short text; rows and sides rotate.

    A text has one to three sentences of its side, and up to two of the row that take no side.
    """
    rows = read_rows("claims", ("ask", "opposite", *_SIDES))
    sides = list(_SIDES)
    for number in range(count):
        row = rows[number % len(rows)]
        side = sides[number // len(rows) % len(sides)]
        reverse = draw.random() < 0.5
        question = draw.choice(row["opposite" if reverse else "ask"])
        says = [] if side == "open" else draw.sample(row[side], draw.choice(_SAYING))
        other = draw.choice(rows)
        if side == "open" and other is not row and draw.random() < _FOREIGN:
            text = draw.choice([*other["affirms"], *other["denies"]])
        else:
            text = _text_around(says, row["open"], draw)
        if draw.random() < _EMBEDDED:
            text = embed(text, draw.choice(texts), draw, most=_AROUND)
        stance = opposite(_SIDES[side]) if reverse else _SIDES[side]
        relevant = float(side != "open")
        yield ReaderExample(question, text, relevant, stance, None, _score_sentences(text, says))


def _text_around(says: Sequence[str], silent: Sequence[str], draw: random.Random) -> str:
    """Return a text of the sentences `says` and some of `silent`, in random order."""
    count = draw.choice(_BESIDE if says else _SAYING)
    sentences = [*says, *draw.sample(silent, min(count, len(silent)))]
    draw.shuffle(sentences)
    return " ".join(sentences)


def _score_sentences(text: str, says: Sequence[str]) -> tuple[ScoredSentence, ...]:
    """Return the sentences of `text`, with score 1 for those of `says`.

    Sentences of `says` may be split or joined in `text`, hence the two tests of inclusion.
    """
    found = []
    for begin, end in sentence_spans(text):
        sentence = text[begin:end]
        answers = any(sentence in said or said in sentence for said in says)
        found.append(ScoredSentence(begin, end, float(answers)))
    return tuple(found)


def nonsense_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` questions of a few random words, each with a text that does not answer it.

    Every second question takes its words from its text. Such a text may be relevant, so its
    relevance is unknown, but it takes no side.
    """
    for number in range(count):
        own = number % 2 == 1
        text = " ".join(_some_sentences(draw.choice(texts), draw))
        words = (text if own else draw.choice(texts)).split()
        chosen = draw.sample(words, min(len(words), draw.choice(_WORDS)))
        question = " ".join(chosen).strip(".,;:()") + draw.choice(("", "?"))
        relevant = None if own else 0.0
        yield ReaderExample(question, text, relevant, SILENT, (), _score_sentences(text, ()))


def _some_sentences(text: str, draw: random.Random) -> list[str]:
    spans = sentence_spans(text)
    first = draw.randrange(max(1, len(spans) - _AROUND))
    return [text[begin:end] for begin, end in spans[first : first + _AROUND]]


def abstract_claim_examples(count: int, draw: random.Random) -> Iterator[ReaderExample]:
    """Yield `count` yes/no questions, each with an abstract; abstracts and answers rotate."""
    rows = read_rows("abstracts", ("text", *_ASKED))
    for number in range(count):
        row = rows[number % len(rows)]
        side = _ASKED_IN_TURN[number // len(rows) % len(_ASKED_IN_TURN)]
        stance = _ASKED[side]
        question = draw.choice(row[side])
        yield ReaderExample(question, row["text"], float(stance != SILENT), stance)


def mention_examples(
    count: int, texts: Sequence[str], draw: random.Random
) -> Iterator[ReaderExample]:
    """Yield `count` questions for names, each with a text; rows mark names as [[name]]."""
    rows = read_rows("mentions", ("ask", "says", "open"))
    for number in range(count):
        row = rows[number % len(rows)]
        answered = draw.random() >= _UNANSWERED
        says = [draw.choice(row["says"])] if answered else []
        text, marks = read_marks(_text_around(says, row["open"], draw))
        if draw.random() < _EMBEDDED:
            whole = embed(text, draw.choice(texts), draw, most=_AROUND)
            at = whole.index(text)
            text, marks = whole, tuple(Marked(m.begin + at, m.end + at) for m in marks)
        sentences = sentences_with(marks, text)
        question = draw.choice(row["ask"])
        yield ReaderExample(question, text, float(answered), None, marks, sentences)


def read_marks(text: str) -> tuple[str, tuple[Marked, ...]]:
    """Return `text` without its double brackets, and the spans that were within them."""
    plain, marks, last = "", [], 0
    for match in _MARKED.finditer(text):
        plain += text[last : match.start()]
        marks.append(Marked(len(plain), len(plain) + len(match[1])))
        plain += match[1]
        last = match.end()
    return plain + text[last:], tuple(marks)
