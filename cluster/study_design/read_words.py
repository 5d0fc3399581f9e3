"""The design that an article's own words state, where no indexer has told it."""

from __future__ import annotations

import re

from cluster.records import NO_TITLE, Citation
from cluster.study_design.designs import Design
from cluster.study_design.word_rules import ABSTRACT_RULES, COMMENT, PLAN, TITLE_RULES

# Abstracts have some thousand characters; what follows is no abstract's text.
MAX_CHARACTERS = 6000
# Sections that state nothing but how the study was made, so that its design may be named alone.
_DESIGN_LABEL = re.compile(r"(?:study )?design\b.{0,40}", re.IGNORECASE)


def is_about_another(citation: Citation) -> bool:
    """Whether the title is that of a plan or of a comment on another article."""
    title = _title(citation)
    return bool(PLAN.search(title) or COMMENT.search(title))


def read_design(citation: Citation) -> Design | None:
    """The design that the title states, else the one that the abstract does; None for neither."""
    if is_about_another(citation):
        return None
    labelled = (s.text for s in citation.sections if _DESIGN_LABEL.fullmatch(s.label))
    for rules, text in (
        (TITLE_RULES, _title(citation)),
        (TITLE_RULES, " ".join(labelled)[:MAX_CHARACTERS].lower()),
        (ABSTRACT_RULES, citation.abstract[:MAX_CHARACTERS].lower()),
    ):
        for rule in rules:
            if rule.holds(text):
                return rule.design
    return None


def _title(citation: Citation) -> str:
    return "" if citation.title == NO_TITLE else citation.title[:MAX_CHARACTERS].lower()
