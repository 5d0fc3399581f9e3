"""Remove section labels from sentences of abstracts, and brackets from translated titles."""

from __future__ import annotations

import re

_LABEL = re.compile(r"^[A-Z][A-Za-z]*(?:[ /&,-]{1,3}[A-Za-z]+){0,4}:\s+")
_LABELS = re.compile(
    r"aims?|background|conclusions?|context|design|discussion|findings?|importance|introduction"
    r"|interpretation|key points?|main (?:results|findings)|methods?|objectives?|observations?"
    r"|outcomes?|purpose|rationale|recent (?:findings|advances)|relevance|results?|significance"
    r"|summary",
    re.IGNORECASE,
)
# A label without a colon, in abstracts that lost their colons.
_BARE = re.compile(rf"(?:{_LABELS.pattern.upper()})(?: (?:AND|&) [A-Z]{{3,}})?\s+(?=[A-Z])")


def strip_label(text: str) -> str:
    """Return `text` without a leading section label ("RESULTS: ", "Conclusion: ", "RESULTS ")."""
    if bare := _BARE.match(text):
        return text[bare.end() :]
    found = _LABEL.match(text)
    if found is None:
        return text
    label = found[0].rstrip(": ")
    return text[found.end() :] if label.isupper() or _LABELS.fullmatch(label) else text


def strip_brackets(title: str) -> str:
    """Return a sentence of a title without PubMed's brackets for translations ("[A. B].")."""
    opened, closed = title.startswith("["), title.endswith("].")
    if opened and closed:
        return title[1:-2]
    if opened and "]" not in title:
        return title[1:]
    return title[:-2] if closed and "[" not in title else title
