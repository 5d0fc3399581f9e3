"""What words alone tell of questions for safety or leave, as a second look at what the reader says.

A yes is not stated over evidence that speaks of harm: a wrong one can hurt somebody, a withheld one
cannot. And a denial of harm is no "no": the reader often takes one "not" for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from serve.answer.read_evidence import ReadPassage, Side
from serve.support.attribute_sentences import split_sentences
from serve.support.read_harm import denies, warns

_ASKS = re.compile(
    r"\b(?:safe|safely|safety|harmless|healthy|compatible|suitable|good for|beneficial|recommended"
    r"|take|taken|taking|use|used|using|give|given|giving|receive|received|prescribe|prescribed"
    r"|administer|administered|combine|combined|eat|eaten|drink|drunk|should)\b",
    re.IGNORECASE,
)
# Whether something is done, not whether one may: risks do not speak against it.
_PRACTICE = re.compile(
    r"\s*(?:is|are|was|were|has|have)\b(?!.*\b(?:safe|recommended))", re.IGNORECASE
)
# A yes to these is the careful answer: "Should mothers stop breastfeeding?".
_DO_WITHOUT = re.compile(
    r"\b(?:stop|stopped|avoid|avoided|discontinue|discontinued|withhold|withheld|refrain|quit"
    r"|contra-?indicated|harmful|dangerous|unsafe)\b",
    re.IGNORECASE,
)
# So it is to "Does use of X cause harm?", not to "Is it safe to use X, which causes drowsiness?".
_CAUSES = re.compile(
    r"\W*(?:does|do|did|can|could)\b(?:(?!\b(?:safe|safely|that|which|who|if|when)\b)[^,;:?]){1,200}"
    r"\b(?:cause|induce|trigger|worsen|lead to|(?:increase|raise)(?: the| a)?(?: \w+)? risk)\b",
    re.IGNORECASE,
)
RELEVANT = 0.5


def is_withheld(question: str, side: Side, passages: Sequence[ReadPassage]) -> bool:
    """Whether the words of the evidence forbid to answer a question for safety or leave so."""
    does_harm = _DO_WITHOUT.search(question) or _CAUSES.match(question)
    careful = "yes" if does_harm else "no"
    if side == careful:
        return denies_harm(question, passages)
    return speaks_of_harm(question, passages)


def find_warning(question: str, passages: Sequence[ReadPassage]) -> tuple[str, int] | None:
    """(a sentence that warns, its PMID), the most relevant first, where the question asks for
    safety or leave; None where none does in words that can be quoted as a warning.
    """
    return next(_warnings(question, passages, of_topics=False), None)


def speaks_of_harm(question: str, passages: Sequence[ReadPassage]) -> bool:
    """Whether the yes/no question asks for safety or leave, and a relevant passage warns.

    A harm that the sentence denies ("no malformations") or that the question itself names is none.
    """
    return any(_warnings(question, passages, of_topics=True))


def _warnings(
    question: str, passages: Sequence[ReadPassage], *, of_topics: bool
) -> Iterator[tuple[str, int]]:
    if not _ASKS.search(question):
        return
    of_risks = not _PRACTICE.match(question)
    for text, pmid in _relevant(passages):
        if warns(text, question, of_risks=of_risks, of_topics=of_topics):
            yield text, pmid


def denies_harm(question: str, passages: Sequence[ReadPassage]) -> bool:
    """Whether the yes/no question asks for safety or leave, and a relevant passage denies harm.

    "It was not linked to malformations" and "it should not be withheld" are no denials of safety,
    where no other passage speaks of harm.
    """
    if not _ASKS.search(question) or speaks_of_harm(question, passages):
        return False
    return any(denies(text) for text, _ in _relevant(passages))


def _relevant(passages: Sequence[ReadPassage]) -> Iterator[tuple[str, int]]:
    for passage in sorted(passages, key=lambda passage: -passage.reading.relevance):
        if passage.reading.relevance >= RELEVANT:
            for text in split_sentences(passage.text):
                yield text, passage.item.passage.pmid
