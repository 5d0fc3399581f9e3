"""The answer when no model wrote a usable one: the best evidence sentences, word for word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster.records import NO_TITLE, Evidence, Question, Sentence
from serve.attribute_sentences import Encoder, split_sentences
from serve.compare_wording import coverage, holds, numbers_agree, polarity_agrees, read_wording

SENTENCES_BY_TYPE: Mapping[str, int] = {
    "yesno": 2,
    "factoid": 2,
    "list": 3,
    "summary": 4,
    "unknown": 3,
}
MAX_WORDS = 200
MIN_WORDS = 5
# Longer "sentences" are lists of results or lost their full stops.
LONG_WORDS = 80
MAX_PMIDS = 3

# How much a passage's rank counts beside the cosine with the question (0 to 1).
RANK_WEIGHT = 0.15
# And how much the question's words do that stand in the sentence, the rare ones above all:
# the cosine alone prefers another drug for the same disease.
WORDS_WEIGHT = 0.1
# Two sentences this alike, with the same numbers and polarity, say one thing.
SAME_COSINE = 0.9

_LABEL = re.compile(r"^[A-Z][A-Z /&,]{3,40}:\s*")
_BEGINS = re.compile(r"^[\"'(\[]?[A-Z0-9\u0391-\u03a9]|^[a-z]{0,3}[A-Z0-9]")
_ENDS = re.compile(r"[.!][\"')\]]*$")


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    pmid: int
    rank: int
    whole: bool


def extract_ideal(
    question: Question,
    evidence: Sequence[Evidence],
    encode: Encoder,
    *,
    max_sentences: int | None = None,
    max_words: int = MAX_WORDS,
) -> tuple[Sentence, ...]:
    """The sentences of `evidence` nearest the question, best first, each with its PMIDs.

    Sentences are verbatim but for a leading section label. Near-equal ones are said once
    and cite together, at most three PMIDs. A fragment (cut by a passage's bounds, or over
    80 words) is used only if there is no whole sentence at all. () for no evidence.
    `max_sentences` defaults by question type.
    """
    candidates = _candidates(evidence)
    if not candidates:
        return ()
    limit = max_sentences or SENTENCES_BY_TYPE[question.type]
    vectors = encode([question.body, *(c.text for c in candidates)])
    scores = vectors[1:] @ vectors[0] + RANK_WEIGHT / (1 + np.array([c.rank for c in candidates]))
    scores += WORDS_WEIGHT * _rare_coverage(question.body, [c.text for c in candidates])
    chosen: list[tuple[int, list[int]]] = []
    words = 0
    for place in np.argsort(-scores, kind="stable").tolist():
        twin = next((c for c in chosen if _same(candidates, vectors[1:], c[0], place)), None)
        if twin is not None:
            _add_pmid(twin[1], candidates[place].pmid)
            continue
        length = len(candidates[place].text.split())
        if len(chosen) < limit and words + length <= max_words:
            chosen.append((place, [candidates[place].pmid]))
            words += length
    return tuple(Sentence(candidates[place].text, tuple(pmids), 1.0) for place, pmids in chosen)


def strip_label(text: str) -> str:
    """`text` without a leading section label ("RESULTS: ")."""
    return _LABEL.sub("", text)


def _rare_coverage(body: str, texts: Sequence[str]) -> np.ndarray:
    """(n,): the share, 0 to 1, of the question's words in each text, the rarer the heavier."""
    sources = [read_wording(text) for text in texts]
    words = list(read_wording(body).words)
    held = np.array([[holds(source, word) for word in words] for source in sources], dtype=float)
    weights = np.log((len(texts) + 1) / (held.sum(axis=0) + 1)) * (held.sum(axis=0) > 0)
    total = float(weights.sum())
    return held @ weights / total if total else np.zeros(len(texts))


def _candidates(evidence: Sequence[Evidence]) -> list[_Candidate]:
    found: list[_Candidate] = []
    for rank, item in enumerate(evidence):
        title = item.passage.section == "title"
        for part in split_sentences(item.passage.text):
            text = strip_label(part)
            if text == NO_TITLE or len(text.split()) < MIN_WORDS or text.endswith("?"):
                continue
            found.append(_Candidate(text, item.passage.pmid, rank, _is_whole(text, title)))
    whole_ones = [c for c in found if c.whole]
    return whole_ones or found


def _is_whole(text: str, title: bool) -> bool:
    """Whether `text` begins and ends like a sentence; a title needs no full stop."""
    ends = title or bool(_ENDS.search(text))
    return ends and bool(_BEGINS.match(text)) and len(text.split()) <= LONG_WORDS


def _same(candidates: Sequence[_Candidate], vectors: np.ndarray, one: int, other: int) -> bool:
    if candidates[one].text == candidates[other].text:
        return True
    if float(vectors[one] @ vectors[other]) < SAME_COSINE:
        return False
    here, there = read_wording(candidates[one].text), read_wording(candidates[other].text)
    return (
        numbers_agree(there, here)
        and polarity_agrees(here, there)
        and coverage(here, there) >= 0.7
        and coverage(there, here) >= 0.7
    )


def _add_pmid(pmids: list[int], pmid: int) -> None:
    if pmid not in pmids and len(pmids) < MAX_PMIDS:
        pmids.append(pmid)
