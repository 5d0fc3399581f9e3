"""Patterns of phrases that state a study's design in lower-cased titles and abstracts.

A pattern matches only if the article states its own design ("we conducted a cohort study"), not if
it merely mentions one. Precision matters more than recall: an unknown design misleads nobody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cluster.study_design.designs import Design


@dataclass(frozen=True, slots=True)
class Rule:
    """Pattern that states `design`; it is tried only if the text contains one of `hints`."""

    design: Design
    hints: tuple[str, ...]
    pattern: re.Pattern[str]

    def holds(self, text: str) -> bool:
        """Return whether the lower-cased `text` states the design."""
        return any(hint in text for hint in self.hints) and bool(self.pattern.search(text))


def _rule(design: Design, hints: str, *phrases: str) -> Rule:
    return Rule(design, tuple(hints.split("|")), re.compile("|".join(phrases)))


_RANDOMISED = r"(?<!non-)(?<!non)(?<!quasi-)randomi[sz]ed(?:, |[ ,-])"
# Meta-analyses of genome-wide data are not reviews of trials.
_META = r"meta-?analy(?:sis|ses)(?! (?:of|for) (?:[a-z]+ ){0,3}(?:genome|gwas))"
_SYSTEMATIC = r"systematic(?:ally)? (?:literature )?(?:review|overview)"
_PHASE = r"phase (?:[1-4]|i{1,3}|iv)(?:[ab]|/[1-4]|/i{1,3})? (?:[a-z,-]+ ){0,5}(?:trial|study)\b"
_PEOPLE = r"\b(?:patients|participants|subjects|adults|children|women|men|volunteers|infants)\b"
_FEW = r"(?:one|two|three|four|five|\d{1,2})"
_OLD = r"\d{1,3}[- ](?:year|month)[- ]old\b"
# Excludes titles about the use, development or appraisal of a guideline.
_NO_GUIDELINE_ITSELF = (
    r"^(?![^\n]*\b(?:adheren|complian|implement|develop|revis|apprais|compar|impact|effects? of"
    r"|according|based|concordan|meeting|process|survey|review|support|barriers|audit))[^\n]*\b"
)
# Phrases with which an article refers to itself: "we conducted a", "this was a", "in our".
_WE_DID = (
    r"(?:\bwe (?:have )?(?:conducted|performed|undertook|carried out|did|completed|designed|report"
    r"|present|describe)(?: (?:the )?results (?:of|from))?(?: an?| this| the)?"
    r"|\bth(?:is|e present|e current)(?: (?:study|work|paper|article))? "
    r"(?:is|was|reports|presents) an?"
    r"|\b(?:in )?(?:this|our|the present|the current))(?: [a-z0-9,()'/-]+){0,5}? "
)

# Titles of studies that are only planned, and of comments on other articles.
PLAN = re.compile(
    r"\b(?:study|trial|review) protocol\b|\bprotocol (?:for|of) (?:an?|the)\b"
    r"|: (?:an? )?(?:[a-z-]+ )?protocol\b|\brationale(?:,| and) (?:study )?(?:design|methods)\b"
    r"|\b(?:design|methods) and rationale\b|^design of (?:an?|the)\b"
)
COMMENT = re.compile(
    r"^\W{0,3}(?:comments?|commentary|reply|response|letter|editorial|author'?s'? reply|re|erratum"
    r"|corrigendum|correction|retraction|expression of concern|in reply)\b"
    r" *(?:[:.]|to\b|on\b|from\b)|\bjournal club\b|\b(?:a|invited) commentary\b"
)

# The first match decides, so that a systematic review with a meta-analysis is a meta-analysis.
TITLE_RULES = (
    _rule("meta_analysis", "analys", rf"\b{_META}\b"),
    _rule("systematic_review", "systematic", rf"\b{_SYSTEMATIC}\b"),
    _rule(
        "guideline",
        "guideline|consensus",
        rf"{_NO_GUIDELINE_ITSELF}(?:clinical )?practice guidelines?\b",
        rf"{_NO_GUIDELINE_ITSELF}guidelines? (?:for|on) (?:the )?(?:diagnosis|management|treatment"
        r"|therapy|prevention|use|evaluation|care)\b",
        rf"{_NO_GUIDELINE_ITSELF}consensus (?:statement|guidelines?|recommendations)\b",
    ),
    _rule(
        "randomised_trial",
        "randomi|double-blind",
        rf"{_RANDOMISED}(?:[a-z0-9,-]+ ){{0,6}}(?:trial|study|crossover|comparison)\b",
        r"\bdouble-blind,? (?:[a-z0-9,-]+ ){0,4}(?:trial|study)\b",
    ),
    _rule(
        "clinical_trial",
        "phase |open-label|single-arm|first-in-human",
        rf"\b{_PHASE}",
        r"\b(?:open-label|single-arm|first-in-human) (?:[a-z,-]+ ){0,5}(?:trial|study)\b",
    ),
    _rule("case_control", "case-control", r"\bcase-control(?:led)? (?:study|analysis)\b"),
    _rule(
        "cohort",
        "cohort|prospective|retrospective|longitudinal|follow-up",
        r"\bcohort (?:study|analysis)\b",
        r"\b(?:prospective|longitudinal|follow-up) (?:[a-z-]+ ){0,3}(?:cohort|study)\b",
        r"\bretrospective (?:[a-z-]+ ){0,3}(?:cohort|review)\b",
    ),
    _rule(
        "cross_sectional",
        "cross-sectional",
        r"\bcross-sectional (?:[a-z-]+ ){0,2}(?:study|survey|analysis)\b",
    ),
    _rule(
        "case_report",
        "case|report of",
        r"\bcase (?:report|series)s?\b",
        rf"\b(?:a|{_FEW}) (?:[a-z]+ )?cases? of\b",
        rf"\breport of (?:an?|{_FEW}) (?:[a-z-]+ ){{0,2}}(?:cases?|patients?|famil(?:y|ies))\b",
        rf"\b(?:a|{_FEW}) cases? (?:and|with) (?:a )?review\b",
    ),
    _rule(
        "review",
        "review|overview|state of the art",
        r"\b(?:an?|the) (?:[a-z-]+ ){0,3}(?:review|overview)\b",
        r"\b(?:literature|mini-?|narrative|scoping) ?review\b",
        r"\breview of (?:the )?(?:literature|evidence)\b",
        r": (?:review|overview|state of the art)\b",
    ),
)
ABSTRACT_RULES = (
    _rule(
        "meta_analysis",
        "analys",
        rf"{_WE_DID}{_META}\b",
        rf"\b(?:an?|this) {_META} (?:was|of [a-z ,-]{{1,80}} was) ",
    ),
    _rule(
        "systematic_review",
        "systematic",
        rf"{_WE_DID}{_SYSTEMATIC}\b",
        rf"\ban? {_SYSTEMATIC} (?:was|of the literature was)\b",
        r"\bwe systematically (?:reviewed|searched)\b",
    ),
    _rule(
        "randomised_trial",
        "random|double-blind",
        rf"{_WE_DID}{_RANDOMISED}(?:[a-z0-9,-]+ ){{0,8}}(?:trial|study)\b",
        rf"{_WE_DID}double-blind,? (?:[a-z0-9,-]+ ){{0,5}}(?:trial|study)\b",
        rf"{_PEOPLE}[^.]{{0,80}} were (?:randomi[sz]ed|randomly (?:assigned|allocated))\b",
        rf"\bwe randomly (?:assigned|allocated) [^.]{{0,60}}{_PEOPLE}",
    ),
    _rule(
        "clinical_trial",
        "phase |open-label|single-arm",
        rf"{_WE_DID}{_PHASE}",
        rf"{_WE_DID}(?:open-label|single-arm) (?:[a-z,-]+ ){{0,5}}(?:trial|study)\b",
    ),
    _rule("case_control", "case-control", rf"{_WE_DID}case-control(?:led)? (?:study|analysis)\b"),
    _rule(
        "cohort",
        "cohort",
        rf"{_WE_DID}cohort (?:study|analysis)\b",
        rf"{_WE_DID}(?:prospective|longitudinal) (?:[a-z-]+ ){{0,3}}cohort\b",
    ),
    _rule(
        "cross_sectional",
        "cross-sectional",
        rf"{_WE_DID}cross-sectional (?:[a-z-]+ ){{0,2}}(?:study|survey|analysis)\b",
    ),
    _rule(
        "case_report",
        "we report|we describe|we present",
        rf"\bwe (?:report|describe|present) (?:on )?(?:here )?(?:an?|the|{_FEW}) "
        rf"(?:[a-z-]+ ){{0,3}}(?:cases?|patients?|famil(?:y|ies)|{_OLD})\b",
        rf"\bwe (?:report|describe|present) (?:here )?(?:an?|the) {_OLD}",
    ),
    _rule(
        "review",
        "review|overview|summari",
        r"\b(?:in )?th(?:is|e present) (?:[a-z-]+ ){0,2}(?:review|overview)\b",
        r"\bwe (?:will )?(?:review|summari[sz]e) (?:the|current|recent|our|what)\b",
        r"\bthis (?:article|paper|chapter) (?:reviews|summari[sz]es)\b",
    ),
)
