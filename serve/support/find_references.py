"""Links, addresses and identifiers of articles in what a language model wrote.

An answer cites by attribution alone: a model's own link, e-mail address, telephone number, DOI or
PMID is either invented or copied from a text that may have been planted, and a link can carry the
question away. So a sentence or a name that holds one does not enter an answer.
"""

from __future__ import annotations

import re

_DOMAIN = (
    r"com|org|net|edu|gov|int|info|biz|io|ai|app|dev|health|online|site|shop|xyz|"
    r"eu|uk|de|fr|es|nl|ch|pl|ru|cn|jp|br|au|us|vn|example|test|invalid|local"
)
# Each alternative begins where a run of its characters begins, and has bounded repetition, so that
# the time is linear in the text's length.
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
    """Whether `text` holds a link, an address, or the identifier of an article."""
    return _REFERENCE.search(text) is not None
