"""Builders of evidence, and fakes of the encoder and the reader, for tests of answers."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from cluster.answers import Answer, Evidence, Question
from cluster.models.readings import Reading, ScoredSpan
from cluster.records import Passage
from cluster.text.sentences import sentence_spans
from serve.answer.calibration import Calibration, TypeCalibration
from serve.answer.read_evidence import ReadCitation
from serve.support.compare_wording import coverage, read_wording


def encode(texts: Sequence[str]) -> np.ndarray:
    """Return hashed bags of words, (n, 512) float32, with rows of length 1."""
    rows = np.zeros((len(texts), 512), dtype=np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.casefold()):
            row[zlib.crc32(word[:5].encode()) % 512] += 1
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def lost_encode(texts: Sequence[str]) -> np.ndarray:
    """Fail like an encoder that does not answer in time."""
    raise TimeoutError


# Held-out answers; those with a probability of 0.5 or more are right.
_POINTS = tuple((n / 200, float(n < 100)) for n in range(200))
# With this calibration, answers of `WordReader` are stated at the default error budget.
CALIBRATION = Calibration(
    types={
        "yesno": TypeCalibration(features=("said",), weights=(0, 1), points=_POINTS),
        "factoid": TypeCalibration(features=("name",), weights=(4, 2), points=_POINTS),
        "list": TypeCalibration(features=("name",), weights=(4, 2), points=_POINTS),
        "summary": TypeCalibration(features=("relevance",), weights=(0, 1), points=_POINTS),
    }
)


class WordReader:
    """Fake reader that uses shared words, negation and capital letters."""

    def read(self, question: str, passages: Sequence[str]) -> list[Reading]:
        return [_read(question, text) for text in passages]


def _read(question: str, text: str) -> Reading:
    asked, said = read_wording(question), read_wording(text)
    shared = coverage(asked, said)
    silent = 0.05 if shared >= 0.2 else 0.9
    sides = (1 - silent, 0.0) if is_denied(question) == is_denied(text) else (0.0, 1 - silent)
    return Reading(
        relevance=0.99 if shared > 0 else 0.1,
        yes=sides[0],
        no=sides[1],
        silent=silent,
        names=tuple(
            ScoredSpan(match.start(), match.end(), 0.5 + shared / 2)
            for match in re.finditer(r"\b\w*[A-Z][\w-]+", text)
        ),
        sentences=tuple(_sentence(question, text, *span) for span in sentence_spans(text)),
    )


def _sentence(question: str, text: str, begin: int, end: int) -> ScoredSpan:
    asked, said = read_wording(question), read_wording(text[begin:end])
    shared = coverage(asked, said)
    is_yes = is_denied(question) == is_denied(text[begin:end])
    return ScoredSpan(begin, end, shared, 6 * shared * (1 if is_yes else -1))


def is_denied(text: str) -> bool:
    return re.search(r"\b(?:not?|never|without|failed)\b", text, re.IGNORECASE) is not None


def passage(text: str, pmid: int = 1, *, begin: int = 0, title: bool = False) -> Passage:
    return Passage(pmid, "title" if title else "abstract", begin, begin + len(text), text)


def evidence(*texts: str) -> list[Evidence]:
    """Return one passage per text, with PMIDs 1, 2, ... in rank order."""
    return [Evidence(passage(text, n)) for n, text in enumerate(texts, 1)]


def citation(
    text: str = "It helps.", pmid: int = 1, *, cosine: float = 0.8, **said: Any
) -> ReadCitation:
    """Return a citation with one passage, ranked by PMID; `said` are fields of its reading.

    By default its sentences score 0.5 and take no side.
    """
    spans = tuple(ScoredSpan(begin, end, 0.5) for begin, end in sentence_spans(text))
    reading = {"relevance": 0.99, "yes": 0.9, "no": 0.05, "silent": 0.05, "sentences": spans} | said
    item = Evidence(passage(text, pmid), {"dense": cosine})
    return ReadCitation(pmid, pmid - 1, (item,), (0,), text, Reading(**reading))


def answer(body: str = "Does it help?", **fields: Any) -> Answer:
    """Return an answer without sentences, changed by `fields`."""
    return Answer(
        **{
            "question": Question("q", body, "yesno"),
            "system": "citeray",
            "ideal": (),
            "exact": None,
            "origin": "extractive",
            "citations": (),
            "evidence": (),
            "snippets": (),
            "entities": (),
            "degraded": (),
            "coverage": "2/2",
            "index_version": "v000001",
            "last_source": "n1.xml",
            "timings_ms": {},
            "verdict": "answered",
            "confidence": 0.9,
        }
        | fields
    )
