"""What words alone tell of questions for safety or leave, as a second look at what the reader says.

A yes is not stated over evidence that speaks of harm: a wrong one can hurt somebody, a withheld one
cannot. And a denial of harm is no "no": the reader often takes one "not" for the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serve.answer.read_evidence import ReadPassage
from serve.support.attribute_sentences import split_sentences
from serve.support.compare_wording import read_wording, stem

_ASKS = re.compile(
    r"\b(?:safe|safely|safety|harmless|healthy|compatible|suitable|good for|beneficial|recommended"
    r"|take|taken|taking|use|used|using|give|given|giving|receive|received|prescribe|prescribed"
    r"|administer|administered|combine|combined|eat|eaten|drink|drunk|should)\b",
    re.IGNORECASE,
)
# Stems, as read_wording has them.
_HARM = """
contraindicated contraindication teratogenic teratogen malformation malformations defects deformed
deformities phocomelia miscarriage stillbirth toxic toxicity hepatotoxic poisoning fatal lethal
death deaths died mortality harm harmed harmful harms dangerous danger unsafe hazard hazardous
avoid avoided precludes prohibited banned withdrawn overdose haemorrhage hemorrhage bleeding
seizures coma injury worsened worsens carcinogenic cancer
"""
# What is bad, though to read of it is no warning.
_BAD = f"""{_HARM}
adverse impair impaired anomaly anomalies complication complications withhold withheld risk risks
"""
_LEAVE = re.compile(
    r"\b(?:(?:must|should|can|may) )?not (?:be )?"
    r"(?:withheld|withhold|denied|deny|stopped|discontinued|avoided)\b",
    re.IGNORECASE,
)
_WARNINGS = re.compile(
    r"\b(?:must|should|can|may) ?not\b|\bcannot\b"
    r"|\bnot (?:be )?(?:recommended|advised|used|given)\b"
    r"|\brecommends? against\b|\badvises? against\b|\bsyndrome\b",
    re.IGNORECASE,
)
RELEVANT = 0.5


def speaks_of_harm(question: str, passages: Sequence[ReadPassage]) -> bool:
    """Whether the yes/no question asks for safety or leave, and a relevant passage warns.

    A harm that the sentence denies ("no malformations") or that the question itself names is none.
    """
    if not _ASKS.search(question):
        return False
    asked = read_wording(question).words.keys()
    harm = {stem(word) for word in _HARM.split()} - asked
    return any(
        _warns(sentence, harm)
        for passage in passages
        if passage.reading.relevance >= RELEVANT
        for sentence in split_sentences(passage.text)
    )


def denies_harm(question: str, passages: Sequence[ReadPassage]) -> bool:
    """Whether the yes/no question asks for safety or leave, and a relevant passage denies harm.

    "It was not linked to malformations" and "it should not be withheld" are no denials of safety,
    where no other passage speaks of harm.
    """
    if not _ASKS.search(question) or speaks_of_harm(question, passages):
        return False
    bad = {stem(word) for word in _BAD.split()}
    return any(
        _denies(sentence, bad)
        for passage in passages
        if passage.reading.relevance >= RELEVANT
        for sentence in split_sentences(passage.text)
    )


def _denies(sentence: str, bad: set[str]) -> bool:
    """Whether all that the sentence denies is bad, or it denies that one should do without."""
    if _LEAVE.search(sentence):
        return True
    negations = read_wording(sentence).negations
    return bool(negations) and all(scope & bad for scope in negations)


def _warns(sentence: str, harm: set[str]) -> bool:
    said = read_wording(sentence)
    denied = frozenset().union(*said.negations)
    warned = _WARNINGS.search(_LEAVE.sub("", sentence))
    return bool((said.words.keys() & harm) - denied) or bool(warned)
