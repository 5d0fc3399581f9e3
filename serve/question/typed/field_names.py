"""PubMed's field tags, and what their values may be.

Names as in PubMed's help, https://pubmed.ncbi.nlm.nih.gov/help/#search-tags.
"""

from __future__ import annotations

import re
from typing import Literal

Field = Literal["au", "ta", "dp", "mh", "pt", "la", "text", "pmid", "doi", "filter", "unsupported"]

_NAMES: dict[Field, str] = {
    "au": "au; author; author - full; full author name; fau",
    "ta": "ta; journal; jour; so",
    "dp": "dp; pdat; date - publication; publication date",
    "mh": "mh; mesh; mesh terms; mesh term; mh:noexp; mesh:noexp; mesh terms:noexp",
    "pt": "pt; ptyp; publication type",
    "la": "la; lang; language",
    "text": "tiab; ti; tw; title/abstract; title; text word; text words; all; all fields; ab"
    "; abstract; ot; other term",
    "pmid": "pmid; uid",
    "doi": "doi; aid; article identifier; lid; location id",
    "filter": "filter; sb; subset; text",
    "unsupported": "ad; affl; affiliation; majr; mesh major topic; majr:noexp; mesh subheading"
    "; subheading; 1au; author - first; first author; lastau; author - last; last author; auid"
    "; author - identifier; cois; ed; editor; edat; date - entry; entry date; crdt; date - create"
    "; create date; mhda; date - mesh; lr; date - modification; book; isbn; gr; grants and funding"
    "; grant number; corporate author; cn; investigator; ir; rn; ec/rn number"
    "; supplementary concept; pa; pharmacological action; place of publication; ps"
    "; personal name as subject; publisher; pubn; volume; issue; pagination; tt"
    "; transliterated title",
}
FIELDS: dict[str, Field] = {
    name.strip(): field for field, names in _NAMES.items() for name in names.split(";")
}
READ = "au, ta, dp, mh, pt, la, tiab, pmid and doi"

_BRACKETED = re.compile(r"\[\s{0,9}([A-Za-z1][A-Za-z /:-]{0,40}?)\s{0,9}\]")
_SHORT = 4


def field_of(name: str) -> Field | None:
    """The field of a tag's name without its brackets; None for other text in brackets.

    Short ones are in one case throughout, so that [Au], gold, is none.
    """
    if len(name) <= _SHORT and not (name.islower() or name.isupper()):
        return None
    return FIELDS.get(" ".join(name.casefold().replace("-", " - ").split()))


def tags_in(text: str) -> list[tuple[int, int, Field]]:
    """(begin, end, field) of each tag that has something before it; white space belongs to it."""
    found = (
        (text[: m.start()].rstrip(), m.end(), field_of(m[1])) for m in _BRACKETED.finditer(text)
    )
    return [(len(before), end, field) for before, end, field in found if field and before]


LANGUAGES = {
    "afrikaans": "afr", "albanian": "alb", "arabic": "ara", "armenian": "arm",
    "azerbaijani": "aze", "bosnian": "bos", "bulgarian": "bul", "catalan": "cat",
    "chinese": "chi", "croatian": "hrv", "czech": "cze", "danish": "dan", "dutch": "dut",
    "english": "eng", "esperanto": "epo", "estonian": "est", "finnish": "fin", "french": "fre",
    "georgian": "geo", "german": "ger", "greek": "gre", "greek, modern": "gre", "hebrew": "heb",
    "hindi": "hin", "hungarian": "hun", "icelandic": "ice", "indonesian": "ind",
    "italian": "ita", "japanese": "jpn", "korean": "kor", "latin": "lat", "latvian": "lav",
    "lithuanian": "lit", "macedonian": "mac", "malay": "may", "multilingual": "mul",
    "norwegian": "nor", "persian": "per", "polish": "pol", "portuguese": "por",
    "romanian": "rum", "russian": "rus", "serbian": "srp", "slovak": "slo", "slovenian": "slv",
    "spanish": "spa", "swedish": "swe", "thai": "tha", "turkish": "tur", "ukrainian": "ukr",
    "vietnamese": "vie", "welsh": "wel",
}  # fmt: skip

_TYPES = """
Adaptive Clinical Trial; Address; Autobiography; Bibliography; Biography; Books and Documents;
Case Reports; Classical Article; Clinical Conference; Clinical Study; Clinical Trial;
Clinical Trial Protocol; Clinical Trial, Phase I; Clinical Trial, Phase II;
Clinical Trial, Phase III; Clinical Trial, Phase IV; Clinical Trial, Veterinary; Comment;
Comparative Study; Congress; Consensus Development Conference;
Consensus Development Conference, NIH; Controlled Clinical Trial;
Corrected and Republished Article; Dataset; Dictionary; Directory; Duplicate Publication;
Editorial; Electronic Supplementary Materials; English Abstract; Equivalence Trial;
Evaluation Study; Expression of Concern; Festschrift; Government Publication; Guideline;
Historical Article; Interactive Tutorial; Interview; Introductory Journal Article;
Journal Article; Lecture; Legal Case; Legislation; Letter; Meta-Analysis; Multicenter Study;
Network Meta-Analysis; News; Newspaper Article; Observational Study;
Observational Study, Veterinary; Overall; Patient Education Handout; Periodical Index;
Personal Narrative; Portrait; Practice Guideline; Pragmatic Clinical Trial; Preprint;
Published Erratum; Randomized Controlled Trial; Randomized Controlled Trial, Veterinary;
Research Support, N.I.H., Extramural; Research Support, N.I.H., Intramural;
Research Support, Non-U.S. Gov't; Research Support, U.S. Gov't, Non-P.H.S.;
Research Support, U.S. Gov't, P.H.S.; Research Support, U.S. Gov't;
Retracted Publication; Retraction of Publication; Retraction Notice; Review; Scientific Integrity
Review; Scoping Review; Systematic Review; Technical Report; Twin Study; Validation Study;
Video-Audio Media; Webcast
"""
PUBLICATION_TYPES = {
    " ".join(name.casefold().split()): " ".join(name.split()) for name in _TYPES.split(";")
} | {"rct": "Randomized Controlled Trial"}
