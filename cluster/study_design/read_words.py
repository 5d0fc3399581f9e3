"""Read a study's design from the title of the article, for records without indexing.

Reporting guidelines (CONSORT, PRISMA, STROBE, CARE) ask authors to name the design in the title.
Precision matters more than recall: an unknown design misleads nobody.
"""

from __future__ import annotations

import re

from cluster.records import Citation
from cluster.study_design.designs import Design

# Only this many characters of a text are read; titles are much shorter.
_MAX_CHARACTERS = 1000
# Labels of sections about the study's design, which name it as titles do.
_DESIGN_LABEL = re.compile(r"(?:study )?design\b.{0,40}", re.IGNORECASE)

_RANDOMISED = r"(?<!non-)(?<!non)(?<!quasi-)randomi[sz]ed(?:, |[ ,-])"
# Meta-analyses of genome-wide data are not reviews of trials.
_META = r"meta-?analy(?:sis|ses)(?! (?:of|for) (?:[a-z]+ ){0,3}(?:genome|gwas))"
_SYSTEMATIC = r"systematic(?:ally)? (?:literature )?(?:review|overview)"
_PHASE = r"phase (?:[1-4]|i{1,3}|iv)(?:[ab]|/[1-4]|/i{1,3})? (?:[a-z,-]+ ){0,5}(?:trial|study)\b"
_FEW = r"(?:one|two|three|four|five|\d{1,2})"
# Excludes titles about the use, development or appraisal of a guideline.
_NO_GUIDELINE_ITSELF = (
    r"^(?![^\n]*\b(?:adheren|complian|implement|develop|revis|apprais|compar|impact|effects? of"
    r"|according|based|concordan|meeting|process|survey|review|support|barriers|audit))[^\n]*\b"
)

# Titles of studies that are only planned, and of comments on other articles.
_PLAN = re.compile(
    r"\b(?:study|trial|review) protocol\b|\bprotocol (?:for|of) (?:an?|the)\b"
    r"|: (?:an? )?(?:[a-z-]+ )?protocol\b|\brationale(?:,| and) (?:study )?(?:design|methods)\b"
    r"|\b(?:design|methods) and rationale\b|^design of (?:an?|the)\b"
)
_COMMENT = re.compile(
    r"^\W{0,3}(?:comments?|commentary|reply|response|letter|editorial|author'?s'? reply|re|erratum"
    r"|corrigendum|correction|retraction|expression of concern|in reply)\b"
    r" *(?:[:.]|to\b|on\b|from\b)|\bjournal club\b|\b(?:a|invited) commentary\b"
)


def _rule(design: Design, *phrases: str) -> tuple[Design, re.Pattern[str]]:
    """Return a design and the pattern of the phrases that name it in a lower-cased text."""
    return design, re.compile("|".join(phrases))


# The first match decides, so that a systematic review with a meta-analysis is a meta-analysis.
_RULES: tuple[tuple[Design, re.Pattern[str]], ...] = (
    _rule("meta_analysis", rf"\b{_META}\b"),
    _rule("systematic_review", rf"\b{_SYSTEMATIC}\b"),
    _rule(
        "guideline",
        rf"{_NO_GUIDELINE_ITSELF}(?:clinical )?practice guidelines?\b",
        rf"{_NO_GUIDELINE_ITSELF}guidelines? (?:for|on) (?:the )?(?:diagnosis|management|treatment"
        r"|therapy|prevention|use|evaluation|care)\b",
        rf"{_NO_GUIDELINE_ITSELF}consensus (?:statement|guidelines?|recommendations)\b",
    ),
    _rule(
        "randomised_trial",
        rf"{_RANDOMISED}(?:[a-z0-9,-]+ ){{0,6}}(?:trial|study|crossover|comparison)\b",
        r"\bdouble-blind,? (?:[a-z0-9,-]+ ){0,4}(?:trial|study)\b",
    ),
    _rule(
        "clinical_trial",
        rf"\b{_PHASE}",
        r"\b(?:open-label|single-arm|first-in-human) (?:[a-z,-]+ ){0,5}(?:trial|study)\b",
    ),
    _rule("case_control", r"\bcase-control(?:led)? (?:study|analysis)\b"),
    _rule(
        "cohort",
        r"\bcohort (?:study|analysis)\b",
        r"\b(?:prospective|longitudinal|follow-up) (?:[a-z-]+ ){0,3}(?:cohort|study)\b",
        r"\bretrospective (?:[a-z-]+ ){0,3}(?:cohort|review)\b",
    ),
    _rule(
        "cross_sectional",
        r"\bcross-sectional (?:[a-z-]+ ){0,2}(?:study|survey|analysis)\b",
    ),
    _rule(
        "case_report",
        r"\bcase (?:report|series)s?\b",
        rf"\b(?:a|{_FEW}) (?:[a-z]+ )?cases? of\b",
        rf"\breport of (?:an?|{_FEW}) (?:[a-z-]+ ){{0,2}}(?:cases?|patients?|famil(?:y|ies))\b",
        rf"\b(?:a|{_FEW}) cases? (?:and|with) (?:a )?review\b",
    ),
    _rule(
        "review",
        r"\b(?:an?|the) (?:[a-z-]+ ){0,3}(?:review|overview)\b",
        r"\b(?:literature|mini-?|narrative|scoping) ?review\b",
        r"\breview of (?:the )?(?:literature|evidence)\b",
        r": (?:review|overview|state of the art)\b",
    ),
)


def is_about_another(citation: Citation) -> bool:
    """Return whether the title is that of a study protocol or a comment on another article."""
    title = _title(citation)
    return bool(_PLAN.search(title) or _COMMENT.search(title))


def read_design(citation: Citation) -> Design | None:
    """Return the design that the title names, or else a section about the design; or None."""
    if is_about_another(citation):
        return None
    sections = (s.text for s in citation.sections if _DESIGN_LABEL.fullmatch(s.label))
    for text in (_title(citation), " ".join(sections)[:_MAX_CHARACTERS].lower()):
        for design, pattern in _RULES:
            if pattern.search(text):
                return design
    return None


def _title(citation: Citation) -> str:
    return citation.title[:_MAX_CHARACTERS].lower() if citation.has_title else ""
