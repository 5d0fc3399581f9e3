"""Negated and opposite forms of a claim, used as queries for contradicting evidence.

Dense search finds text that resembles a claim, but rarely text that denies it; BM25 with the words
of the opposite claim does (paper 004 found almost no contradictions with the claim alone).
"""

from __future__ import annotations

import re
from functools import cache

# Regular verbs in their base form, and their opposites.
_VERBS = {
    "increase": "decrease", "decrease": "increase", "reduce": "increase", "raise": "lower",
    "improve": "worsen", "worsen": "improve", "promote": "inhibit", "inhibit": "promote",
    "activate": "inhibit", "suppress": "activate", "induce": "suppress", "stimulate": "inhibit",
    "enhance": "attenuate", "attenuate": "enhance", "upregulate": "downregulate",
    "downregulate": "upregulate", "prevent": "cause", "cause": "prevent", "accelerate": "delay",
    "delay": "accelerate", "prolong": "shorten", "shorten": "prolong", "protect": "harm",
    "benefit": "harm", "harm": "benefit", "succeed": "fail",
}  # fmt: skip
# Words without inflection, and their opposites.
_WORDS = {
    "safe": "harmful", "harmful": "safe", "toxic": "safe", "unsafe": "safe",
    "effective": "ineffective", "ineffective": "effective", "efficacious": "ineffective",
    "beneficial": "harmful", "detrimental": "beneficial", "positive": "negative",
    "negative": "positive", "higher": "lower", "lower": "higher", "high": "low", "low": "high",
    "more": "less", "fewer": "more", "less": "more", "better": "worse", "worse": "better",
    "sensitive": "resistant", "resistant": "sensitive", "present": "absent", "absent": "present",
    "common": "rare", "rare": "common", "benign": "malignant", "malignant": "benign",
    "necessary": "unnecessary", "essential": "dispensable", "superior": "inferior",
    "inferior": "superior", "associated": "unrelated", "related": "unrelated",
    "significant": "insignificant", "increased": "decreased", "agonist": "antagonist",
    "antagonist": "agonist", "activator": "inhibitor", "inhibitor": "activator",
    "kinase": "phosphatase", "phosphatase": "kinase", "short": "long", "long": "short",
    "reversible": "irreversible", "irreversible": "reversible", "curable": "incurable",
    "incurable": "curable", "hypermethylated": "hypomethylated", "hypertrophic": "atrophic",
    "dominant": "recessive", "recessive": "dominant", "euchromatic": "heterochromatic",
    "heterochromatic": "euchromatic",
}  # fmt: skip
_COPULAS = r"is|are|was|were|can|could|may|might|should|will|would|has|have|had"
_COPULA = re.compile(rf"\b({_COPULAS})\b(?!\s+(?:not|no)\b)", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:(?:does|do|did) not|not|no longer|never)\s+", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")


def contrary_forms(claim: str) -> list[str]:
    """Return queries for evidence against `claim`: its opposite and its negation.

    For a negated claim only the affirmed form is returned, because the negation of its opposite
    may not contradict it.
    """
    claim = " ".join(claim.split())
    forms = [_negated(claim)] if _NEGATION.search(claim) else [_reversed(claim), _negated(claim)]
    return [form for form in dict.fromkeys(forms) if form != claim]


def _reversed(claim: str) -> str:
    """Return the claim with each word replaced by its opposite in the same inflection."""
    return _WORD.sub(lambda m: _opposites().get(m[0].casefold(), m[0]), claim)


def _negated(claim: str) -> str:
    """Return the claim with its negation removed, or with one added."""
    if _NEGATION.search(claim):
        return _NEGATION.sub("", claim, count=1)
    if _COPULA.search(claim):
        return _COPULA.sub(r"\1 not", claim, count=1)
    # A BM25 query need not be a sentence, so append words that are typical of negative findings.
    return f"{claim.rstrip('.')} no effect, no significant difference, not associated"


@cache
def _opposites() -> dict[str, str]:
    """Return the opposite of each word and of each inflected form of a verb."""
    verbs = {
        form: opposite
        for verb, other in _VERBS.items()
        for form, opposite in zip(_inflect(verb), _inflect(other), strict=True)
    }
    return verbs | _WORDS


def _inflect(verb: str) -> tuple[str, str, str, str]:
    """Return the base form, third person, past and -ing form of a regular verb."""
    stem = verb.removesuffix("e")
    return verb, f"{verb}s", f"{stem}ed", f"{stem}ing"
