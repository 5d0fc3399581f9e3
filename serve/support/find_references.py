"""Detect links, addresses and article identifiers in the output of a language model.

PMIDs in answers come only from attribution. A link, e-mail address, telephone number, DOI or PMID
from the model is either invented or copied from a text, which may be a prompt injection, and a link
can leak the question. Sentences and names that contain one are removed from answers.
"""

from __future__ import annotations

import re

_DOMAIN = (
    r"com|org|net|edu|gov|int|info|biz|io|ai|app|dev|health|online|site|shop|xyz|"
    r"eu|uk|de|fr|es|nl|ch|pl|ru|cn|jp|br|au|us|vn|example|test|invalid|local"
)
# Each alternative starts at the beginning of a run of its characters and has bounded repetition, so
# that matching takes linear time.
_REFERENCE = re.compile(
    r"\b(?:https?|hxxps?|ftps?|file|mailto|javascript|tel)\s?:|\bdata:\w+/|\bwww\.|\]\("
    r"|</?[a-z][^<>]{0,200}>"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]|\w\s?[(\[]at[)\]]\s?\w"
    rf"|(?<![\w.-])(?:[\w-]{{1,63}}\.){{1,8}}(?:{_DOMAIN})(?![\w-])"
    r"|\b10\.\d{4,9}/\S"
    r"|\bPMC\s?\d|\b(?:PMIDs?|PubMed|Medline)\b\W{0,3}(?:\b(?:ID|IDs|no|number|identifier|record)\b"
    r"\W{0,3}){0,2}\d"
    r"|\[\s?\d{5,}|(?<![\w.,])\d{7,9}(?![\w,]|\.\d)"
    r"|(?<![\w.])\+\d[\d ().-]{6,20}\d|(?<![\w.-])\(?\d{3,4}\)?[ .-]\d{3}[ .-]\d{4}(?![\w-])",
    re.IGNORECASE,
)


def holds_reference(text: str) -> bool:
    """Return True if `text` contains a link, an address or an article identifier."""
    return _REFERENCE.search(text) is not None
