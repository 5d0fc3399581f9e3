"""ROUGE-2 and ROUGE-SU4 of ideal answers, as ROUGE-1.5.5 computes them for BioASQ.

Sources: C.-Y. Lin's ROUGE-1.5.5.pl, ported line by line, with the options of BioASQ's server, `-c
95 -2 4 -u -x -n 4`: no stemming, stop words kept, formula A (all references), recall and precision
of equal weight. The server's invocation is taken from its code as published in 2014
(github.com/balikasg/BioASQParticipantsArea, task1bb/rouge-bioasq); the organisers still name
ROUGE-1.5.5 in 2026 (github.com/BioASQ/Evaluation-Measures, issue 3).

Each gold ideal answer of a question is a separate reference. A question that a run leaves out is
excluded from the means; one with an empty answer scores 0.

Three behaviours of the program that differ from its description (Lin 2004, ROUGE: A Package for
Automatic Evaluation of Summaries) are kept. Hits and lengths are summed over the references before
dividing, where section 2.1 takes the best reference and jackknifes. The last word of a text is not
a unigram of ROUGE-SU4. F1 is computed from rounded values (`Rouge.rounded`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from evaluation.bioasq.score_question import precision_recall_f

MAX_SKIP = 4
MEASURES = ("ROUGE-2 recall", "ROUGE-2 F1", "ROUGE-SU4 recall", "ROUGE-SU4 F1")

_WORD = re.compile(r"[A-Za-z0-9]+")
_DIGITS = 5

Grams = Counter[tuple[str, ...]]


class Rouge(NamedTuple):
    """ROUGE scores, each from 0 to 1."""

    recall: float
    precision: float
    f1: float

    def rounded(self) -> Rouge:
        """Return the scores as the program prints them for one question and averages them.

        It rounds recall and precision to five decimals, computes F1 from these, and rounds it too.
        """
        recall, precision = round(self.recall, _DIGITS), round(self.precision, _DIGITS)
        both = recall + precision
        f1 = 2 * precision * recall / both if both else 0.0
        return Rouge(recall, precision, round(f1, _DIGITS))


def tokenise(text: str) -> list[str]:
    """Return lower-cased runs of ASCII letters and digits; all other characters separate words.

    The program reads bytes, so that non-ASCII letters separate words as well.
    """
    return [word.lower() for word in _WORD.findall(text)]


def bigrams(tokens: Sequence[str]) -> Grams:
    """Return the number of occurrences of each pair of adjacent words."""
    return Counter(pairwise(tokens))


def skip_bigrams(tokens: Sequence[str]) -> Grams:
    """Return counts of ordered word pairs with at most MAX_SKIP words between, and of words.

    The last word is not counted as a single word, because the program's loop over first words ends
    before it. A text of one word therefore has nothing to match.
    """
    grams: Grams = Counter(zip(tokens[:-1]))
    for distance in range(1, MAX_SKIP + 2):
        grams.update(zip(tokens, tokens[distance:], strict=False))
    return grams


def match(references: Sequence[Grams], said: Grams) -> Rouge:
    """Return ROUGE from the n-gram counts of a text and its references; 0 if they are empty.

    The hits of a gram in a reference are its smaller count in the two texts (clipped). Recall is
    the hits in all references over the size of all references; precision is the same hits over the
    size of the answer times the number of references.
    """
    hits = sum(
        min(reference[gram], said[gram])
        for reference in references
        for gram in reference.keys() & said.keys()
    )
    precision, recall, f1 = precision_recall_f(
        hits, len(references) * said.total(), sum(reference.total() for reference in references)
    )
    return Rouge(recall, precision, f1)


def rouge_2(references: Sequence[Sequence[str]], said: Sequence[str]) -> Rouge:
    """Return ROUGE-2 of a tokenised text against one or more tokenised references."""
    return match([bigrams(tokens) for tokens in references], bigrams(said))


def rouge_su4(references: Sequence[Sequence[str]], said: Sequence[str]) -> Rouge:
    """Return ROUGE-SU4 of a tokenised text against one or more tokenised references."""
    return match([skip_bigrams(tokens) for tokens in references], skip_bigrams(said))


def score_ideal(references: Sequence[str], said: str) -> dict[str, float]:
    """Return BioASQ's four automatic measures of an ideal answer; 0 without references.

    The values equal those of the program for one question. Texts are used whole, as the program
    reads plain text files (its form SPL); in BioASQ's HTML form, the program reads only ASCII up to
    the first line break or "<", and the server averages 1,000 resamples.
    """
    wanted, words = [tokenise(text) for text in references], tokenise(said)
    two, su4 = rouge_2(wanted, words).rounded(), rouge_su4(wanted, words).rounded()
    values = (two.recall, two.f1, su4.recall, su4.f1)
    return dict(zip(MEASURES, values, strict=True))
