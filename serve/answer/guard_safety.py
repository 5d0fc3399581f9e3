"""A yes to whether something is safe is not stated over evidence that speaks of harm.

A wrong "yes" there can hurt somebody, a withheld one cannot. The reader decides most such questions
rightly, but not all: so a second look by words alone, in one direction only.
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


def _warns(sentence: str, harm: set[str]) -> bool:
    said = read_wording(sentence)
    denied = frozenset().union(*said.negations)
    return bool((said.words.keys() & harm) - denied) or bool(_WARNINGS.search(sentence))
