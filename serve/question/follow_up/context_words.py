"""Words that ask about something without naming it: aspects of a topic, and groups of people."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.text.vocabulary import normalise
from serve.question.everyday_words import EVERYDAY_WORDS

# Each with the preposition that joins it to what it is an aspect of.
_ASPECTS = {
    "of": """adverse effects; adverse events; benefits; cause; causes; clinical features;
complications; consequences; contraindications; cost; definition; diagnosis; dosage; dose; doses;
dosing; drug interactions; duration; effectiveness; effect; effects; efficacy; epidemiology;
etiology; frequency; function; functions; half-life; harms; history; incidence; indications;
inheritance; inheritance pattern; interactions; life expectancy; long-term effects; main symptoms;
management; manifestations; mechanism; mechanism of action; mechanisms; metabolism; mode of action;
molecular mechanism; mortality; outcome; outcomes; pathogenesis; pathophysiology; pharmacokinetics;
prevalence; prevention; prognosis; recurrence; risk; risks; role; safety; side effects;
side-effects; side effect; signs; severity; structure; subtypes; survival; symptoms; target;
targets; toxicity; types; use; uses""",
    "for": """alternatives; antidote; biomarker; biomarkers; cure; cures; drugs; gold standard;
guidelines; medication; medications; recommendation; recommendations; risk factors; screening; test;
tests; therapies; therapy; treatment; treatments; treatment options; vaccine; vaccines;
diagnostic test; diagnostic tests; first-line treatment; standard treatment""",
    "in": """gene; genes; mutation; mutations; mutated gene; pathways; pathway; proteins; cells;
organs; tissues; bacteria""",
}
_GROUPS = """
adolescents; adults; animals; babies; children; dogs; elderly; elderly patients; elderly people;
females; healthy people; healthy volunteers; humans; infants; kids; lactation; males; men; mice;
neonates; newborns; older adults; older people; patients; people; pregnancy; pregnant women;
primates; rats; rodents; smokers; teenagers; women; animal models; cell lines; breastfeeding;
old age; the elderly; obese patients; diabetics; athletes
"""
_LIGHT = """
any approved available best better big called commonly compare compared current currently dangerous
diagnosed diagnose different dangerous done early effective expected first fast given good harmful
help helpful high inherited involved known last length likely long look low made main major
managed many measure measured need needed normal occur often okay ok option options please possible
prevent prevented quickly rare recommended related right safe serious short soon still supported
taken tell there usual usually treated typical typically useful work works worse yet line common
like happen happens caused cause causes affect affected affects develop develops targeted target
standard strong evidence studies study trials curable fatal contagious reversible inherited
antibodies antibody inhibitor inhibitors inherit inherits take takes carry carries
activate activates bind binds block blocks degrade degrades encode encodes increase increases
inhibit inhibits metabolise metabolises metabolize metabolizes reduce reduces regulate regulates
expressed discovered detected cured cure describe explain list summarise summarize more
"""


def _entries(text: str) -> list[str]:
    return [" ".join(entry.split()) for entry in text.split(";")]


ASPECTS = {entry: joint for joint, text in _ASPECTS.items() for entry in _entries(text)}
GROUPS = frozenset(_entries(_GROUPS))


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


ASPECT = re.compile(rf"(?<![\w-])(?:{_any_of(ASPECTS)})(?![\w-])", re.IGNORECASE)
GROUP = re.compile(rf"(?<![\w-])(?:{_any_of(GROUPS)})(?![\w-])", re.IGNORECASE)
_WORD = re.compile(r"[\w'\u2019-]+")
_NAMING = frozenset(
    normalise(word) for text in (*ASPECTS, *GROUPS, *_LIGHT.split()) for word in _WORD.findall(text)
)


def names_nothing(text: str) -> bool:
    """Whether every word is an everyday one, an aspect or a group: no topic is named."""
    return all(
        normalise(word.lower()) in _NAMING | EVERYDAY_WORDS or normalise(word) in EVERYDAY_WORDS
        for word in _WORD.findall(text)
    )
