"""ROUGE-2 and ROUGE-SU4 of ideal answers, as ROUGE-1.5.5 computes them for BioASQ.

Sources: C.-Y. Lin's ROUGE-1.5.5.pl, read line by line, with the options of BioASQ's server,
`-c 95 -2 4 -u -x -n 4`: no stemming, stop words kept, formula A (all references), recall and
precision of equal weight. How the server calls it is read from its code as published in 2014
(github.com/balikasg/BioASQParticipantsArea, task1bb/rouge-bioasq); the organisers still name
ROUGE-1.5.5 in 2026 (github.com/BioASQ/Evaluation-Measures, issue 3).

Each gold ideal answer of a question is a reference of its own. A question that a run leaves
out is in no mean; one with an empty answer scores 0.

Three habits of the program that its description (Lin 2004, ROUGE: A Package for Automatic
Evaluation of Summaries) does not have are kept. Hits and lengths are summed over the
references before dividing, where section 2.1 takes the best reference and jackknifes. The last
word of a text is no unigram of ROUGE-SU4. F1 is made of rounded figures (`Rouge.rounded`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from evaluation.bioasq.score_question import precision_recall_f

MAX_SKIP = 4
MEASURES = ("ROUGE-2 recall", "ROUGE-2 F1", "ROUGE-SU4 recall", "ROUGE-SU4 F1")

_WORD = re.compile(r"[A-Za-z0-9]+")
_DIGITS = 5
_RESAMPLES = 1000

Grams = Counter[tuple[str, ...]]


class Rouge(NamedTuple):
    """Each from 0 to 1."""

    recall: float
    precision: float
    f1: float

    def rounded(self) -> Rouge:
        """As the program prints it for one question and averages it over a set.

        It rounds recall and precision to five decimals and makes F1, rounded too, of those.
        """
        recall, precision = round(self.recall, _DIGITS), round(self.precision, _DIGITS)
        both = recall + precision
        f1 = 2 * precision * recall / both if both else 0.0
        return Rouge(recall, precision, round(f1, _DIGITS))


def tokenise(text: str) -> list[str]:
    """Lower-cased runs of ASCII letters and digits; all else parts words, hyphens too.

    The program reads bytes, so that a letter outside ASCII parts words as well.
    """
    return [word.lower() for word in _WORD.findall(text)]


def ngrams(tokens: Sequence[str], size: int) -> Grams:
    """How often each run of `size` words occurs."""
    return Counter(zip(*(tokens[begin:] for begin in range(size)), strict=False))


def skip_bigrams(tokens: Sequence[str], max_skip: int = MAX_SKIP) -> Grams:
    """Pairs of words in order with at most `max_skip` words between, and single words.

    The last word is not counted alone: the program's loop over first words ends before it.
    A text of one word has therefore nothing to match.
    """
    grams: Grams = Counter(zip(tokens[:-1]))
    for distance in range(1, max_skip + 2):
        grams.update(zip(tokens, tokens[distance:], strict=False))
    return grams


def match(references: Sequence[Grams], said: Grams) -> Rouge:
    """ROUGE of what a text and its references consist of; 0 where that is nothing.

    In each reference a gram is hit as often as both texts have it (clipped). Recall is the
    hits in all references over the size of all references, precision the same hits over
    the size of the answer times the number of references.
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


def rouge_n(references: Sequence[Sequence[str]], said: Sequence[str], size: int = 2) -> Rouge:
    """ROUGE-N of the words of a text against those of one or more references."""
    return match([ngrams(tokens, size) for tokens in references], ngrams(said, size))


def rouge_su(
    references: Sequence[Sequence[str]], said: Sequence[str], max_skip: int = MAX_SKIP
) -> Rouge:
    """ROUGE-SU of the words of a text against those of one or more references."""
    return match(
        [skip_bigrams(tokens, max_skip) for tokens in references], skip_bigrams(said, max_skip)
    )


def score_ideal(references: Sequence[str], said: str) -> dict[str, float]:
    """BioASQ's four automatic measures of an ideal answer; 0 without references.

    To the digit that the program gives for one question. Texts are seen whole, as it reads a
    plain text file (its form SPL); what BioASQ's HTML loses of them is `server_text`'s concern.
    """
    wanted, words = [tokenise(text) for text in references], tokenise(said)
    bigrams, skips = rouge_n(wanted, words).rounded(), rouge_su(wanted, words).rounded()
    values = (bigrams.recall, bigrams.f1, skips.recall, skips.f1)
    return dict(zip(MEASURES, values, strict=True))


def server_text(text: str) -> str:
    """What BioASQ's server lets ROUGE see of an ideal answer.

    It drops characters outside ASCII, so that "TGF-β1" becomes "TGF-1", and writes the rest,
    unescaped, into the SEE form (one HTML line a sentence): the program reads it up to the
    first line break or "<".
    """
    return re.split("[\n<]", text.encode("ascii", "ignore").decode(), maxsplit=1)[0]


def server_averages(answers: Sequence[tuple[Sequence[str], str]]) -> dict[str, float]:
    """The measures of a run to the digit that the server prints; 0 for an empty run.

    `answers` are (references, ideal answer) in the order of the run file, which matters:
    see `resampled_mean`. For any use but comparing with printed figures, average
    `score_ideal` instead.
    """
    rows = [
        score_ideal([server_text(text) for text in references], server_text(said))
        for references, said in answers
    ]
    return {name: resampled_mean([row[name] for row in rows]) for name in MEASURES}


def resampled_mean(values: Sequence[float]) -> float:
    """The average that the program prints for the values of questions 1, 2, 3...

    That is not their mean but the mean of the means of 1,000 resamples, which differs from
    it by chance (by their standard deviation over the root of 1,000 times their number).
    The draws come from drand48, seeded with 0 to 999, over the questions sorted by number
    as text ("1", "10", "2"): computeAverages and bootstrapResampling of ROUGE-1.5.5.pl.
    """
    if not values:
        return 0.0
    ordered = np.array([values[n] for n in sorted(range(len(values)), key=lambda n: f"{n + 1}.")])
    state = (np.arange(_RESAMPLES, dtype=np.uint64) << np.uint64(16)) + np.uint64(0x330E)
    sums = np.zeros(_RESAMPLES)
    for _ in values:
        state = (state * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & np.uint64(2**48 - 1)
        sums += ordered[(state * 2.0**-48 * len(values)).astype(np.intp)]
    # Added one by one in the program's order, since the last digit may hang on it.
    total = np.cumsum(np.sort(sums / len(values)))[-1]
    return round(float(total) / _RESAMPLES, _DIGITS)
