"""Read a study's design from the words of the article, for records without indexing."""

from __future__ import annotations

import re

from cluster.records import NO_TITLE, Citation
from cluster.study_design.designs import Design
from cluster.study_design.word_rules import ABSTRACT_RULES, COMMENT, PLAN, TITLE_RULES

# Only this many characters of an abstract are read; most abstracts are much shorter.
MAX_CHARACTERS = 6000
# Labels of sections about the study's design, in which it is stated without "we conducted a".
_DESIGN_LABEL = re.compile(r"(?:study )?design\b.{0,40}", re.IGNORECASE)


def is_about_another(citation: Citation) -> bool:
    """Return whether the title is that of a study protocol or a comment on another article."""
    title = _title(citation)
    return bool(PLAN.search(title) or COMMENT.search(title))


def read_design(citation: Citation) -> Design | None:
    """Return the design that the title states, or else the abstract; None if neither does."""
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
