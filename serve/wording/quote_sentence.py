"""Choose the sentence of a source that an answer rests on, and quote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import sqrt

from cluster.answers import Answer, Evidence, Sentence
from cluster.records import TITLE
from cluster.text.analysis import analyse
from cluster.text.sentences import sentence_spans

QUOTE_CHARACTERS = 400


def shortened(text: str) -> str:
    """Return `text` on one line, cut at a word boundary if it is long."""
    # Not textwrap.shorten, which is much slower.
    text = " ".join(text.split())
    if len(text) <= QUOTE_CHARACTERS:
        return text
    return f"{text[:QUOTE_CHARACTERS].rsplit(' ', 1)[0]}…"


def excerpt(text: str, sentence: str) -> str:
    """Return `text`, shortened so that it contains the beginning of `sentence`."""
    text, sentence = (" ".join(part.split()) for part in (text, sentence))
    begin = max(text.find(sentence), 0)
    if begin + len(sentence) <= QUOTE_CHARACTERS:
        return shortened(text)
    return f"…{shortened(text[begin:])}"


# Cached because each passage is quoted several times: in the sides, references and documents.
@lru_cache(maxsize=1024)
def _sentences(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the sentences of a text, each with its terms."""
    parts = (text[begin:end] for begin, end in sentence_spans(text))
    return tuple((part, frozenset(analyse(part))) for part in parts)


def closest_sentence(texts: Iterable[str], said: Sequence[str]) -> str:
    """Return the sentence of `texts` that shares most words with the texts `said`, or "".

    Of equal ones, the longest: a passage may begin within a sentence.
    """
    wanted = frozenset(analyse(" ".join(said)))
    sentences = [sentence for text in texts for sentence in _sentences(text)]

    def likeness(sentence: tuple[str, frozenset[str]]) -> tuple[float, int]:
        text, terms = sentence
        return len(terms & wanted) / sqrt(len(terms) or 1), len(text)

    return max(sentences, key=likeness)[0] if sentences else ""


def on_side(evidence: Iterable[Evidence], stance: str) -> list[Evidence]:
    """Return the best-ranked passage of each citation on one side; a citation has one side.

    `evidence` is ordered by relevance.
    """
    first: dict[int, Evidence] = {}
    for item in evidence:
        if item.stance in ("support", "contradict"):
            first.setdefault(item.passage.pmid, item)
    return [item for item in first.values() if item.stance == stance]


def side_sentence(item: Evidence, ideal: Sequence[Sentence]) -> str:
    """Return the sentence of a passage that takes a side of the answer with sentences `ideal`."""
    return closest_sentence([item.passage.text], _said_of(item.passage.pmid, ideal))


def quoted_sentence(answer: Answer, pmid: int) -> str:
    """Return the sentence of the citation `pmid` that the answer rests on, or "".

    Titles are quoted only if no other passage of the citation was found.
    """
    found = [item for item in answer.evidence if item.passage.pmid == pmid]
    found = [item for item in found if item.passage.section != TITLE] or found
    said = _said_of(pmid, answer.ideal or answer.closest) or [answer.question.body]
    return closest_sentence((item.passage.text for item in found), said)


def _said_of(pmid: int, ideal: Sequence[Sentence]) -> list[str]:
    """Return the sentences that cite the source, else those that it contradicts, else all."""
    cited = [s.text for s in ideal if pmid in s.pmids]
    against = [s.text for s in ideal if pmid in s.contradicted]
    return cited or against or [s.text for s in ideal]
