"""Choose the sentence of a source that an answer rests on, and quote it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import sqrt

from cluster.answers import Answer, Evidence, Sentence
from cluster.records import TITLE, Passage
from cluster.text.analysis import analyse
from cluster.text.sentences import sentence_spans

QUOTE_CHARACTERS = 400
CUT = "…"
# Characters that tell whether a text ends with a sentence; more than any abbreviation has.
_LAST = 64


def shortened(text: str) -> str:
    """Return `text` on one line, cut at a word boundary if it is long."""
    # Not textwrap.shorten, which is much slower.
    text = " ".join(text.split())
    if len(text) <= QUOTE_CHARACTERS:
        return text
    return f"{text[:QUOTE_CHARACTERS].rsplit(' ', 1)[0]}{CUT}"


def marked_text(passage: Passage) -> str:
    """Return the text of a passage, with "…" where it begins or ends within a sentence."""
    text = passage.text.strip()
    if passage.section == TITLE or not text:
        return text
    begin = CUT if passage.begin and text[0].islower() else ""
    return f"{begin}{text}{'' if _ends_sentence(text[-_LAST:]) else CUT}"


@lru_cache(maxsize=1024)
def _ends_sentence(text: str) -> bool:
    """Return whether another sentence could follow."""
    return sentence_spans(f"{text} X")[-1][0] > len(text)


def excerpt(text: str, sentence: str) -> str:
    """Return `text`, shortened so that it contains the beginning of `sentence`."""
    text, sentence = (" ".join(part.split()) for part in (text, sentence))
    begin = max(text.find(sentence), 0)
    if not begin or begin + len(sentence) <= QUOTE_CHARACTERS:
        return shortened(text)
    return f"{CUT}{shortened(text[begin:])}"


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
    return closest_sentence([marked_text(item.passage)], _said_of(item.passage.pmid, ideal))


def completed(sentence: str, pmid: int, stated: Iterable[Sentence]) -> str:
    """Return a sentence of `pmid` whole if its passage cuts it off and `stated` quotes all of it.

    `stated` are sentences quoted from the sources, not written by a model.
    """
    cut = sentence.removesuffix(CUT)
    # The answer omits the label of a section, such as "CONCLUSIONS: ".
    begins = tuple(filter(None, (cut, cut.partition(": ")[2])))
    whole = (s.text for s in stated if pmid in s.pmids and s.text.startswith(begins))
    return sentence if cut == sentence else next(whole, sentence)


def quoted_sentence(answer: Answer, pmid: int) -> str:
    """Return the sentence of the citation `pmid` that the answer rests on, or "".

    Titles are quoted only if no other passage of the citation was found.
    """
    found = [item for item in answer.evidence if item.passage.pmid == pmid]
    found = [item for item in found if item.passage.section != TITLE] or found
    stated = answer.ideal or answer.closest
    said = _said_of(pmid, stated) or [answer.question.body]
    sentence = closest_sentence((marked_text(item.passage) for item in found), said)
    return completed(sentence, pmid, () if answer.origin == "generated" else stated)


def _said_of(pmid: int, ideal: Sequence[Sentence]) -> list[str]:
    """Return the sentences that cite the source, else those that it contradicts, else all."""
    cited = [s.text for s in ideal if pmid in s.pmids]
    against = [s.text for s in ideal if pmid in s.contradicted]
    return cited or against or [s.text for s in ideal]
