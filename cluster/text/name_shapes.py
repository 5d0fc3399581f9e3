"""Recognise names that are in no vocabulary by their spelling: new genes, drugs, programs.

Drugs are recognised by the stems of their international nonproprietary names (WHO, "The use of
stems in the selection of INN", 2018); stems that end many other English words are not used.
"""

from __future__ import annotations

import re

# A word with a digit next to a letter, or with two capitals, except a label such as "RESULTS:".
_NAME = re.compile(
    r"(?<![\w-])(?=[\w-]*[A-Za-z])(?=[\w-]*(?:[A-Z]\w*[A-Z]|[A-Za-z-]\d|\d[A-Za-z]))"
    r"[A-Za-z0-9][\w-]+\w(?!\w|:)"
)
_STEMS = """
afil asvir azepam azole barbital buvir caine cillin ciclib citinib cycline degib dipine dronate
dustat fungin gatran gliflozin gliptin glitazone glutide grastim grel kinra leucel lukast mab mycin
nib olol oxacin parib platin poetin prazole pril rafenib rsen rubicin sartan setron statin taxel
tegravir temcel tinib triptan vir xaban zomib
"""
_DRUG = re.compile(rf"\b\w{{3,}}(?:{'|'.join(_STEMS.split())})\b", re.IGNORECASE)


def names_by_shape(text: str) -> list[str]:
    """Return the strings in `text` that look like names, in order."""
    spans = {match.span() for shape in (_NAME, _DRUG) for match in shape.finditer(text)}
    # Of nested matches keep only the outer one, such as "anti-CD20" instead of "CD20".
    return [
        text[begin:end]
        for begin, end in sorted(spans)
        if not any((b, e) != (begin, end) and b <= begin and end <= e for b, e in spans)
    ]
