"""Whether a sentence warns of harm or denies it, told by its words alone.

The reader often takes what is bad for a "no": "X causes lung damage" for a denial of "Does X cause
lung damage?". These checks look at the words instead.
"""

from __future__ import annotations

import re
from functools import cache

from cluster.text.sentences import sentence_spans
from serve.support.compare_wording import read_wording, stem

_HARM = """
contraindicated contraindication teratogenic teratogen malformation malformations defects deformed
deformities phocomelia miscarriage stillbirth toxic toxicity hepatotoxic poisoning fatal lethal
death deaths died mortality harm harmed harmful harms dangerous danger unsafe hazard hazardous
avoid avoided precludes prohibited banned withdrawn overdose haemorrhage hemorrhage bleeding
seizures coma injury worsened worsens carcinogenic cancer
"""
# What is bad, though to read of it is no warning where something relieves it.
_BAD = f"""{_HARM}
adverse impair impaired anomaly anomalies complication complications withhold withheld risk risks
damage damages damaged worse worsen
"""
_RELIEF = """
reduce reduced reduces reduction lower lowered lowers decrease decreased decreases prevent prevented
prevents prevention protect protected protects protection improve improved improves improvement
lessen lessened relieve relieved delay delayed shorten shortened cure cured benefit
"""
# Often only what the question and the text are about.
_TOPICS = "cancer seizures coma haemorrhage hemorrhage bleeding injury mortality death deaths died"
_LEAVE = re.compile(
    r"\b(?:(?:must|should|can|may) )?not (?:be )?"
    r"(?:withheld|withhold|denied|deny|stopped|discontinued|avoided)\b",
    re.IGNORECASE,
)
_WARNINGS = re.compile(
    r"\b(?:must|should|can|may) ?not\b|\bcannot\b"
    r"|\bnot (?:be )?(?:recommended|advised|used|given)\b"
    r"|\brecommends? against\b|\badvises? against\b",
    re.IGNORECASE,
)
_LEAVE_ASKED = re.compile(
    r"^\W*(?:can|may)\b|\b(?:safe|safely|safety|harmless|compatible|take|taken|taking|eat|eaten"
    r"|drink|drunk|combined?)\b",
    re.IGNORECASE,
)
_SAFETY_ASKED = re.compile(r"\b(?:safe|safely|safety|harmless|compatible)\b", re.IGNORECASE)
_CHANGE = "differ differed difference differences affect affected alter altered change changed"
_SYNDROME = re.compile(r"\bsyndrome\b", re.IGNORECASE)
# A disease is often only what a question is about; with these words it asks whether harm is done.
_DONE = re.compile(
    r"\b(?:caus(?:e[sd]?|ing)|induc(?:e[sd]?|ing)|provok\w+|trigger\w*|leads? to|results? in)\b",
    re.IGNORECASE,
)
_IS_HARM = re.compile(
    r"\b(?:harm(?:s|ed|ful)?|damag(?:e[sd]?|ing)|worse(?:n(?:s|ed)?)?|toxic|dangerous|unsafe)\b",
    re.IGNORECASE,
)


def warns(sentence: str, question: str, *, of_risks: bool, of_topics: bool = True) -> bool:
    """Whether the sentence speaks of a harm that it does not deny, or warns in so many words.

    A harm that the question itself names is none. `of_risks`: a risk or an adverse event counts
    too, unless the sentence speaks of relief as well. `of_topics`: a disease or a death counts, of
    which a sentence may only treat: enough to withhold a yes, not to quote as a warning.
    """
    said = read_wording(sentence)
    denied = frozenset().union(*said.negations)
    named = read_wording(question).words.keys()
    relieved = said.words.keys() & _stems(_RELIEF)
    harm = _stems(_BAD if of_risks and not relieved else _HARM) - named
    if not of_topics:
        harm -= _stems(_TOPICS)
    warned = _WARNINGS.search(_LEAVE.sub("", sentence))
    mentioned = of_topics and _SYNDROME.search(sentence)
    return bool((said.words.keys() & harm) - denied) or bool(warned or mentioned)


def denies(sentence: str) -> bool:
    """Whether all that the sentence denies is bad, or it denies that one should do without.

    What does not reduce a risk is denied a benefit.
    """
    if _LEAVE.search(sentence):
        return True
    return _denies_only(sentence, _stems(_BAD))


def allays(sentence: str, question: str) -> bool:
    """Whether the sentence only denies what would speak against what the question asks leave for.

    "It has not been linked to malformations" is no "no" to "Is it safe?", nor "the levels did not
    differ" to "Can it be taken with juice?"; where the question itself asks for a change it may be.
    """
    if not _LEAVE_ASKED.search(question):
        return False
    against = (_stems(_BAD) | _stems(_CHANGE)) - read_wording(question).words.keys()
    return _denies_only(sentence, against)


def without_allaying(text: str, question: str) -> str:
    """`text` with spaces for the sentences that only deny harm, where the question asks for safety.

    The reader takes "No increase of stillbirth was seen" for a denial of safety.
    """
    if not _SAFETY_ASKED.search(question):
        return text
    bad = _stems(_BAD) - read_wording(question).words.keys()
    kept = list(text)
    for begin, end in sentence_spans(text):
        if _denies_only(text[begin:end], bad):
            kept[begin:end] = " " * (end - begin)
    return "".join(kept)


def _denies_only(sentence: str, stems: frozenset[str]) -> bool:
    """Whether it denies something, each time one of `stems` and no relief."""
    negations, relief = read_wording(sentence).negations, _stems(_RELIEF)
    return bool(negations) and all(scope & stems and not scope & relief for scope in negations)


def harm_asked(question: str) -> frozenset[str]:
    """Stems of the words that affirm what a yes/no question asks of harm.

    "Does X cause seizures?" is affirmed by seizures, "Is X harmful?" by any harm. Empty where the
    question asks for no harm, or denies one.
    """
    asked = read_wording(question)
    if asked.negations:
        return frozenset()
    caused = asked.words.keys() & _stems(_BAD) if _DONE.search(question) else frozenset()
    named = caused & _stems(_TOPICS)
    if caused == named and not _IS_HARM.search(question):
        return frozenset(named)
    return _stems(_BAD) - _stems(_TOPICS) | named


def affirms_harm(text: str, harm: frozenset[str]) -> bool:
    """Whether the text has a word of `harm`, denies none of them and speaks of no relief."""
    said = read_wording(text)
    spoken = said.words.keys() & harm
    denied = frozenset().union(*said.negations)
    return bool(spoken) and not spoken & denied and not said.words.keys() & _stems(_RELIEF)


@cache
def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())
