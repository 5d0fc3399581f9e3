"""Measures of a run's decisions: verdicts, and agreement of its answers.

- verdicts by type: the share of each, for runs that state them.
- accuracy among the answered: over the questions whose verdict is `answered`.
- agreement of the two answers: whether the ideal answer's first sentence agrees with the exact
  "yes" or "no" (see `reads_as`); whether the first name of a factoid occurs in the ideal
  answer; the share of a list's names that do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from cluster.answers import NOT_ENOUGH
from cluster.text.sentences import sentence_spans
from evaluation.bioasq.read_bioasq import TYPES, Entry
from evaluation.scores import Scores, mean, tabulate

Found = Mapping[str, float]

VERDICTS = {"answered": "answered", "mixed": "mixed", NOT_ENOUGH: "not enough evidence"}
# The per-question columns of `score_bioasq` that measure whether an exact answer is right.
RIGHT = {
    "yesno": ("yesno accuracy",),
    "factoid": ("factoid strict accuracy", "factoid lenient accuracy"),
    "list": ("list F1",),
}
EVERY = [name for names in RIGHT.values() for name in names]

_SHARES = [f"verdict {kind} {word}" for kind in TYPES for word in VERDICTS.values()]
_ANSWERED = [f"answered {name}" for name in EVERY]
_AGREEMENT = [f"agreement {kind}" for kind in RIGHT]

COLUMNS = (*_SHARES, *_ANSWERED, *_AGREEMENT)
MEASURES = (
    *(mean(name, direction=0) for name in _SHARES),
    *map(mean, (*_ANSWERED, *_AGREEMENT)),
)

_YES_NO = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)
# Expresses neither answer, as in "It is a bacterium, yes or no?"
_EITHER = re.compile(r"\byes\s+or\s+no\b", re.IGNORECASE)
_NEGATES = re.compile(
    r"\b(?:no|not|cannot|never|neither|nor|without|none|unlikely|ineffective|contraindicated|"
    r"lacks?|lacking|fail(?:s|ed)?|avoid(?:ed)?)\b|n't\b",
    re.IGNORECASE,
)


def score_verdicts(gold: Mapping[str, Entry], run: Mapping[str, Entry], scores: Scores) -> Scores:
    """Return the measures of verdicts; `scores` are those of `score_run` for the same files."""
    found = {id_: _right(values) for id_, values in scores.by_question().items()}
    rows = {id_: dict(_one(gold[id_], run[id_], right)) for id_, right in found.items()}
    return tabulate(rows, COLUMNS, MEASURES, scores.missing)


def reads_as(question: str, ideal: str) -> str:
    """Return the "yes" or "no" that an ideal answer's first sentence expresses, by cue words.

    A leading Yes or No decides; otherwise a negation in either the sentence or the question, but
    not in both, means no. Opposites without a negation ("reduces" for "raises") are not detected.
    """
    first = next((ideal[begin:end] for begin, end in sentence_spans(ideal)), "")
    if said := _YES_NO.match(first):
        return said[1].lower()
    asked = _EITHER.sub("", question)
    return "yes" if bool(_NEGATES.search(first)) == bool(_NEGATES.search(asked)) else "no"


def occurs_in(name: str, text: str) -> bool:
    """Return True if the whole name occurs in the text, ignoring case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _right(values: Found) -> dict[str, float]:
    """Return the scores of an exact answer, from 0 (wrong) to 1 (right), under keys of `RIGHT`."""
    right = {name: values[name] for name in EVERY if name in values}
    if "wrong" in values:
        right["yesno accuracy"] = 1 - values["wrong"]
    return right


def _one(gold: Entry, said: Entry, right: Found) -> Iterator[tuple[str, float]]:
    """Yield the columns of a question."""
    if said.verdict:
        for verdict, word in VERDICTS.items():
            yield f"verdict {gold.type} {word}", float(said.verdict == verdict)
    if said.verdict == "answered":
        yield from ((f"answered {name}", value) for name, value in right.items())
    if not said.exact:
        return
    names = [item[0] for item in said.exact if item]
    text = " ".join(said.ideal)
    if text and names:
        yield f"agreement {gold.type}", _agreement(gold, names, text)


def _agreement(gold: Entry, names: Sequence[str], text: str) -> float:
    if gold.type == "yesno":
        return float(reads_as(gold.body, text) == names[0])
    names = names[:1] if gold.type == "factoid" else names
    return sum(occurs_in(name, text) for name in names) / len(names)
