"""Which side of a thing a question asks for: its treatment, its signs, how it is passed on.

A reader finds a definition of a disease much like an answer to how it is treated.
"""

from __future__ import annotations

import re

# What a sentence without a word of the aspect counts. It changes 6 of 51 summaries for train
# questions with an aspect: all read better, ROUGE-2 F1 falls from 0.256 to 0.241 by one of them.
# Names gain by it: MRR 0.314 to 0.315 (150 questions), list F1 0.364 to 0.366 (110).
OFF_ASPECT = 0.5
_HOW = r"^\W*how (?:is|are|was|were|do|does|did|can|could|should|would|may|might)\b.*\b"
# (how a question asks for it, words of which a sentence about it has one)
_ASPECTS = (
    (
        _HOW + r"(?:works?|acts?|exerts?)\b|\b(?:mechanisms?|modes?) of action\b",
        r"mechanis\w+|inhibit\w*|block\w*|bind\w*|target\w*|\w*agoni[sz]\w+|\w*activat\w*"
        r"|modulat\w*|suppress\w*|stimulat\w+|\w*antibod(?:y|ies)|antisense|analogu?es?"
        r"|\w*mimetics?|interfer\w+|induc\w+|deplet\w+|neutrali[sz]\w+|mediat\w+|degrad\w+"
        r"|cleav\w+|potentiators?|correctors?|by \w+ing|act(?:s|ing)|works?|restor\w+|prevent\w*"
        r"|splic\w+|silenc\w+|revers\w+|against|directed",
    ),
    (
        _HOW + r"(?:treat(?:ed)?|manag(?:e|ed)|cured?)\b"
        r"|\b(?:treatments?|therap(?:y|ies)|management) (?:of|for|options)\b",
        r"treat\w*|\w*therap\w+|manag\w+|administ\w+|surg\w+|efficac\w+|effective\w*|medications?"
        r"|\w*transplant\w*|infus\w+|respon[ds]\w* (?:\w+ )?to|inhibitors?|antibiotics?"
        r"|immunoglobulins?|\w*steroids?|exchange|resection|approved",
    ),
    (
        _HOW + r"(?:diagnosed?|detect(?:ed)?)\b|\bdiagnos(?:is|es) (?:of|for)\b",
        r"diagnos\w+|criteria|biops\w+|screen\w*|tests?|testing|detect\w*|imaging|assays?"
        r"|examinations?|tomography|sequencing",
    ),
    (
        _HOW + r"(?:transmit(?:ted)?|spread|caught|acquired?|contract(?:ed)?)\b"
        r"|\btransmission (?:of|routes?)\b",
        r"transmi\w+|spread\w*|bites?|bitten|vectors?|(?:vector|tick|mosquito)-borne|mosquito\w*"
        r"|contact|contaminat\w+|airborne|droplets?|aerosols?|sexual\w*|vertical\w*",
    ),
    (
        _HOW + r"inherited\b|\binheritance\b",
        r"inherit\w+|autosomal|x-linked|recessive\w*|dominant\w*|heredit\w+|familial|maternal\w*"
        r"|mendelian",
    ),
    (
        r"\b(?:side[- ]?effects?|adverse \w+|toxicit(?:y|ies)|complications?|harms?)"
        r" (?:of|from|with)\b",
        r"side[- ]effects?|adverse\w*|\w*toxic\w*|complicat\w+|safety|tolera\w+|risks?|\w*induced"
        r"|teratogen\w*|harm\w*|deaths?",
    ),
    (
        r"\b(?:symptoms?|signs|manifestations?|clinical features?|presentations?) of\b",
        r"symptom\w*|signs?|manifest\w*|present(?:s|ed|ing|ations?)|characteri[sz]\w+|features?"
        r"|\w*pains?|\w*aches?|weakness|fever|vomiting|nausea|dizziness|fatigue|tremor|seizures?"
        r"|rash|cough",
    ),
    (
        r"\b(?:prognosis|survival|outlook|life expectancy)\b",
        r"prognos\w+|surviv\w+|mortality|outcomes?|fatal\w*|deaths?|died|lethal\w*"
        r"|life expectancy|remission|deadly|progress\w+",
    ),
    (
        _HOW
        + r"(?:prevent(?:ed)?|avoid(?:ed)?)\b|\b(?:prevention|prophylaxis) (?:of|for|against)\b",
        r"prevent\w*|prophyla\w+|vaccin\w+|protect\w*|reduc\w+|avoid\w*|lower\w*",
    ),
    (
        r"^\W*(?:what|which)\b(?: \w+)? causes?\b|\bcauses? of\b"
        r"|\b(?:a?etiology|pathogenesis|pathophysiology) of\b"
        rf"|{_HOW}(?:cause|lead|develop|arise|damage|contribute|protect)\b",
        r"caus\w+|due to|owing to|because|since|thus|result\w* (?:in|from)|lead\w* to|led to"
        r"|\w*mutat\w+|deficien\w+|loss of|lack\w*|autoimmun\w+|trigger\w*|\w*induc\w+"
        r"|pathogen\w+|mechanis\w+|contribut\w*|mediat\w+|responsible|promot\w+|driv\w+"
        r"|(?:risk )?factors?|associated with|arise\w*|originat\w+|implicated|role|by \w+ing"
        r"|through|via|reduc\w+|increas\w+|impair\w+|explain\w*|reason\w*|effects?",
    ),
)
_KNOWN = [
    (re.compile(asked, re.IGNORECASE | re.DOTALL), re.compile(rf"\b(?:{said})\b", re.IGNORECASE))
    for asked, said in _ASPECTS
]


def asked_aspect(body: str) -> re.Pattern[str] | None:
    """What finds a word of the aspect that the question asks for, in a sentence.

    None for a definition and for what is not known.
    """
    return next((said for asked, said in _KNOWN if asked.search(body)), None)
