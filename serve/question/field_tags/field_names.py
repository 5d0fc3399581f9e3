"""Names of PubMed's search field tags, and the values of some of them.

Source: PubMed's help, https://pubmed.ncbi.nlm.nih.gov/help/#search-tags, with the longer names that
PubMed's query builder writes and the field codes of Entrez.
"""

from __future__ import annotations

import re

from cluster.pubmed.languages import CODES

_NAMES = {
    "au": "au; auth; author; authors; author name; author - full; full; full author name; fau",
    "ta": "ta; journal; jour; journal title; journal title abbreviation; so",
    "dp": "dp; pdat; date - publication; publication date; date of publication",
    "mh": "mh; mesh; mesh terms; mesh term; mesh heading; mesh headings",
    "pt": "pt; ptyp; publication type; publication types",
    "la": "la; lang; language",
    "tiab": "tiab; title/abstract",
    "ti": "ti; titl; title",
    "ab": "ab; abstract",
    "tw": "tw; word; text word; text words; all; all fields",
    "ot": "ot; otrm; other term; other terms",
    "pmid": "pmid; uid",
    "doi": "doi; aid; article identifier; lid; location id",
    "pmc": "pmc; pmcid",
    "filter": "filter; filt; sb; subset; text",
    "majr": "majr; mesh major topic; mesh major topics",
    "unsupported": "ad; affl; affiliation"
    "; 1au; faut; author - first; first author; first author name"
    "; lastau; laut; author - last; last author; last author name"
    "; auid; author - identifier; author identifier; aucl; author cluster id"
    "; cn; coln; author - corporate; corporate author"
    "; ir; invr; investigator; fir; finv; investigator - full; full investigator name"
    "; ed; editor; ps; personal name as subject; subject - personal name"
    "; edat; date - entry; entry date; date - entrez; entrez date"
    "; crdt; date - create; create date; mhda; date - mesh; mesh date"
    "; dcom; cdat; date - completion; completion date"
    "; lr; mdat; date - modification; modification date"
    "; epdt; epdat; electronic publication date; ppdt; ppdat; print publication date"
    "; sh; subh; mesh subheading; mesh subheadings; subheading; subheadings"
    "; nm; subs; supplementary concept; supplementary concepts; substance name"
    "; pa; papx; pharmacological action; pharmacological action mesh terms"
    "; rn; ecno; ec/rn number; si; secondary source id; gr; grnt; grants and funding; grant number"
    "; cois; conflict of interest statement; conflict of interest statements"
    "; book; isbn; issn; pubn; publisher; pid; publisher id; pl; cnty; place of publication"
    "; vi; vol; volume; ip; iss; issue; pg; page; pagination; jid; nlm unique id"
    "; tt; transliterated title; mid; eid; extended pmid; dso; own; owner; stat; version"
    "; comment corrections; comment correction type",
}
_FIELDS = {name.strip(): field for field, names in _NAMES.items() for name in names.split(";")}
# Names of the finer fields in questions, which do not distinguish them.
_IN_QUESTIONS = {
    **dict.fromkeys(("tiab", "ti", "ab", "tw", "ot"), "text"),
    "majr": "unsupported",
}
READ = "[au], [ta], [dp], [mh], [pt], [la], [tiab] and [filter]"
# Kinds of tags that cannot be applied.
REFUSED = {
    "unsupported": f"cannot be applied here; the supported tags are {READ}",
    "unknown": f"is not a field tag of PubMed; use one of {READ}, or write it in parentheses if it "
    "is ordinary text",
    "qualified": "cannot be applied with the text after its name; leave that text out",
}
# Chemical elements whose symbols are also tags: "[Au]" is gold, "[au]" and "[AU]" are authors.
ELEMENTS = frozenset({"Au", "Cn", "Ir", "La", "Lr", "Pa", "Pt", "Rn", "Sb", "Si", "Ta", "Ti"})


LANGUAGES = CODES | {"greek, modern": "gre", "multilingual": "mul"}


def field_of(name: str) -> str | None:
    """Return the field that a tag names in a question, ignoring case; None if no tag has that name.

    All fields of words are "text", and fields that the index does not have "unsupported".
    """
    field = boolean_field_of(name)
    return _IN_QUESTIONS.get(field, field) if field else None


def boolean_field_of(name: str) -> str | None:
    """Return the field that a tag names in a Boolean search; None if no tag has that name.

    Unlike `field_of`, it distinguishes title, abstract and major headings.
    """
    spaced = " ".join(name.casefold().replace("-", " - ").replace("/", " / ").split())
    return _FIELDS.get(spaced.replace(" / ", "/"))


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
PUBLICATION_TYPES = [" ".join(name.split()) for name in _TYPES.split(";")]


def publication_type(value: str) -> str | None:
    """Return PubMed's name of a publication type or of its filter; None if it is unknown."""
    return _TYPES_BY_LETTERS.get(_letters(value))


def _letters(text: str) -> str:
    """Return only the letters, because PubMed's filter names have no spaces or punctuation."""
    return re.sub("[^a-z]", "", text.casefold())


_TYPES_BY_LETTERS = {_letters(name): name for name in PUBLICATION_TYPES} | {
    "rct": "Randomized Controlled Trial",
    "booksdocs": "Books and Documents",
}
