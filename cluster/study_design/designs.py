"""The study designs that CiteRay distinguishes, and their weight as evidence.

Levels are those of the Oxford Centre for Evidence-Based Medicine for the question "Does this
intervention help?" (OCEBM Levels of Evidence Working Group, The Oxford 2011 Levels of Evidence,
https://www.cebm.ox.ac.uk/resources/levels-of-evidence/ocebm-levels-of-evidence): 1 systematic
reviews of randomised trials, 2 randomised trials, 3 controlled studies without randomisation and
cohorts, 4 case series and case-control studies, 5 reasoning from mechanisms. The table names
neither guidelines nor narrative reviews nor cross-sectional studies. Guidelines rest on level 1
and are ranked first here; the other two are ranked as in evidence pyramids based on the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Design = Literal[
    "guideline",
    "meta_analysis",
    "systematic_review",
    "randomised_trial",
    "clinical_trial",
    "cohort",
    "case_control",
    "cross_sectional",
    "case_report",
    "review",
    "animal",
    "in_vitro",
    "other",
]
# The source of a design, the most reliable first; "" if it is unknown.
DesignSource = Literal["publication_types", "mesh", ""]

# Ordered from the highest weight; "other" is the design of all citations with an unknown design.
DESIGNS: tuple[Design, ...] = get_args(Design)
PLACES: Mapping[Design, int] = {design: position for position, design in enumerate(DESIGNS)}

# Evidence level and display name of each design.
_KNOWN: Mapping[Design, tuple[int, str]] = {
    "guideline": (1, "guideline"),
    "meta_analysis": (1, "meta-analysis"),
    "systematic_review": (1, "systematic review"),
    "randomised_trial": (2, "randomised trial"),
    "clinical_trial": (3, "clinical trial"),
    "cohort": (3, "cohort study"),
    "case_control": (4, "case-control study"),
    "cross_sectional": (4, "cross-sectional study"),
    "case_report": (4, "case report"),
    "review": (5, "review"),
    "animal": (5, "animal study"),
    "in_vitro": (5, "study in vitro"),
    "other": (5, ""),
}
LOWEST_LEVEL = 5
LEVELS: Mapping[Design, int] = {design: level for design, (level, _) in _KNOWN.items()}
DESIGN_WORDS: Mapping[Design, str] = {design: words for design, (_, words) in _KNOWN.items()}


def design_named(text: str) -> str:
    """Return the design for a name such as "Randomised trial"; other text as an identifier."""
    words = " ".join(text.casefold().split())
    named = {said: name for name, said in DESIGN_WORDS.items() if said}
    return named.get(words, words.replace(" ", "_").replace("-", "_"))


def weight_of(design: Design) -> float:
    """Return the weight of a source of this design, from 1 at level 1 to 0.2 at level 5."""
    return (LOWEST_LEVEL + 1 - LEVELS[design]) / LOWEST_LEVEL
