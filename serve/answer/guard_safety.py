"""What words alone tell of questions for safety or leave, as a second look at what the reader says.

A yes is not stated over evidence that speaks of harm: a wrong one can hurt somebody, a withheld one
cannot. And a denial of harm is no "no": the reader often takes one "not" for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
_RELIEF = """
reduce reduced reduces reduction lower lowered lowers decrease decreased decreases prevent prevented
prevents prevention protect protected protects protection improve improved improves improvement
lessen lessened relieve relieved delay delayed shorten shortened treat treated cure cured benefit
effective
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
    harm = _stems(_HARM) - read_wording(question).words.keys()
    return any(_warns(sentence, harm) for sentence in _relevant(passages))


def denies_harm(question: str, passages: Sequence[ReadPassage]) -> bool:
    """Whether the yes/no question asks for safety or leave, and a relevant passage denies harm.

    "It was not linked to malformations" and "it should not be withheld" are no denials of safety,
    where no other passage speaks of harm.
    """
    if not _ASKS.search(question) or speaks_of_harm(question, passages):
        return False
    return any(map(_denies, _relevant(passages)))


def _relevant(passages: Sequence[ReadPassage]) -> Iterator[str]:
    for passage in passages:
        if passage.reading.relevance >= RELEVANT:
            yield from split_sentences(passage.text)


def _stems(words: str) -> set[str]:
    return {stem(word) for word in words.split()}


def _denies(sentence: str) -> bool:
    """Whether all that the sentence denies is bad, or it denies that one should do without.

    What does not reduce a risk is denied a benefit.
    """
    if _LEAVE.search(sentence):
        return True
    negations = read_wording(sentence).negations
    bad, relief = _stems(_BAD), _stems(_RELIEF)
    return bool(negations) and all(scope & bad and not scope & relief for scope in negations)


def _warns(sentence: str, harm: set[str]) -> bool:
    said = read_wording(sentence)
    denied = frozenset().union(*said.negations)
    warned = _WARNINGS.search(_LEAVE.sub("", sentence))
    return bool((said.words.keys() & harm) - denied) or bool(warned)
