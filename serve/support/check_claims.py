"""What a sentence adds to its sources about a treatment's standing, cause, proof or people.

Likeness of wording hardly sees "approved for" over a record of a trial, nor "in patients" over one
of mice, and these are what a reader acts on. Each kind of claim needs a word of its kind in a
source. Of 3,234 sentences of BioASQ's ideal answers, over their gold snippets, 12 hold such an
addition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from serve.support.attribute_sentences import stated_text

# By kind: what claims it, and what in a source bears it.
_KINDS = {
    "approval": (
        r"approv\w+|licen[sc]\w*|authori[sz]\w+|cleared by|indicated for|marketed",
        r"approv\w+|licen[sc]\w*|authori[sz]\w+|cleared|clearance by|indicated|indications?"
        r"|market\w*",
    ),
    "advice": (
        r"recommend\w*|first[- ]line|standard[- ]of[- ]care|standard (?:treatment|therapy)"
        r"|gold[- ]standard|guidelines?|(?:drug|treatment|therapy|agent) of choice|mainstay"
        r"|should be (?:used|given|taken|treated)",
        r"recommend\w*|first[- ]line|standard\w*|gold[- ]standard|guid(?:eline|ance)\w*|choice"
        r"|mainstay|should|must|advis\w+|prefer\w*|endorse\w*|consensus|conventional|appropriate",
    ),
    "safety": (
        r"safe|safely|safety|well[- ]tolerated|harmless|risk[- ]free",
        r"safe\w*|tolerat\w*|tolerab\w+|harm\w*|risk\w*|side[- ]effects?|adverse|toxic\w*"
        r"|complication\w*",
    ),
    "ban": (r"contra-?indicat\w+|banned|withdrawn|prohibited|recalled",) * 2,
    "cure": (r"cures?|cured|curative|curing|eradicat\w+",) * 2,
    "proof": (
        r"proven|proof|conclusive\w*|definitively|firmly established|well[- ]established",
        r"prov(?:en|es?|ed)|proof|conclu\w*|definit\w*|establish\w*|confirm\w*",
    ),
    "without exception": (
        r"always|never|all patients|every patient|invariably|guarantee\w*",
        r"always|never|all|every|each|invariabl\w+|100 ?%|none|guarantee\w*",
    ),
    "cause": (
        r"caus(?:e|es|ed|ing)|leads? to|led to",
        r"caus\w+|lead\w*|led|result\w*|due|induc\w+|responsible|trigger\w*|produc\w+"
        r"|a?etiolog\w+|pathogenic|mutat\w+|because|promot\w+|driv\w+|contribut\w+|mediat\w+"
        r"|underl\w+|attribut\w+|origin\w*|provok\w+|by",
    ),
    "people": (
        r"patients?|humans?|people|women|men|children|adults|individuals|persons?",
        r"patients?|humans?|people|wom[ae]n|men|child\w*|adults?|individuals?|persons?|subjects?"
        r"|participants?|cases?|clinical\w*|trials?|famil\w+|volunteers?|infants?|pregnan\w+"
        r"|cohorts?|population\w*|males?|females?|girls?|boys?|syndrome|disease|therapy"
        r"|treatment|diagnos\w*|symptom\w*",
    ),
}
_CLAIMS = {
    kind: tuple(re.compile(rf"\b(?:{words})(?!\w)", re.IGNORECASE) for words in pair)
    for kind, pair in _KINDS.items()
}


def added_claims(sentence: str, sources: Sequence[str]) -> list[str]:
    """The kinds of claim that `sentence` makes and no source states; what a source asks is none."""
    said = "\n".join(map(stated_text, sources))
    return [
        kind
        for kind, (claims, bears) in _CLAIMS.items()
        if claims.search(sentence) and not bears.search(said)
    ]
