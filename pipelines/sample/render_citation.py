"""Render a citation, book chapter or list of deletions as XML: the inverse of parse_citation.

The order of elements follows NLM's pubmed_250101.dtd. A record with a language and a publication
type is valid by this DTD. Elements for missing values are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lxml import etree

from cluster.errors import InputError
from cluster.records import Author, Citation, Deletion, Link, OtherAbstract, Section

# Fixed, because Citation has no revision date and equal input must give equal bytes.
_REVISED = ("2026", "01", "01")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_INLINE_TAG = re.compile(r"<(/?)(b|i|sub|sup|u)>")
_NLM_CATEGORIES = {
    "BACKGROUND": "BACKGROUND",
    "INTRODUCTION": "BACKGROUND",
    "OBJECTIVE": "OBJECTIVE",
    "AIM": "OBJECTIVE",
    "METHODS": "METHODS",
    "RESULTS": "RESULTS",
    "FINDINGS": "RESULTS",
    "CONCLUSION": "CONCLUSIONS",
    "CONCLUSIONS": "CONCLUSIONS",
    "INTERPRETATION": "CONCLUSIONS",
}
_PUBLICATION_TYPE_UIS = {
    "Case Reports": "D002363",
    "Clinical Trial": "D016430",
    "Comment": "D016420",
    "Editorial": "D016421",
    "English Abstract": "D004740",
    "Journal Article": "D016428",
    "Letter": "D016422",
    "Meta-Analysis": "D017418",
    "Observational Study": "D064888",
    "Published Erratum": "D016425",
    "Randomized Controlled Trial": "D016449",
    "Retracted Publication": "D016441",
    "Retraction of Publication": "D016440",
    "Review": "D016454",
    "Systematic Review": "D000078182",
}


@dataclass(frozen=True, slots=True)
class BookChapter:
    """A PubmedBookArticle; PubMed has such records, and CiteRay skips them."""

    pmid: int
    title: str
    book: str
    publisher: str
    year: int
    abstract: str = ""


def strip_inline(text: str) -> str:
    """Return `text` without its `<b> <i> <sub> <sup> <u>` tags; other `<` stay."""
    return _INLINE_TAG.sub("", text)


def citation_element(citation: Citation, inline: Mapping[str, str], note: str) -> etree._Element:
    """Return a PubmedArticle element; `inline` and `note` are those of `render_articles`.

    Raises InputError for an invalid month or unpaired inline tags, and ValueError for a text that
    XML cannot hold.
    """
    root = etree.Element("PubmedArticle")
    medline = _add(root, "MedlineCitation", Status="MEDLINE", Owner="NLM")
    _add(medline, "PMID", str(citation.pmid), Version=str(citation.version))
    revised = _add(medline, "DateRevised")
    for name, value in zip(("Year", "Month", "Day"), _REVISED, strict=True):
        _add(revised, name, value)
    _add_article(medline, citation, inline)
    abbreviation = citation.journal_abbreviation or citation.journal
    _add(_add(medline, "MedlineJournalInfo"), "MedlineTA", abbreviation)
    _add_chemicals(medline, citation)
    _add_links(medline, citation.links)
    _add_mesh(medline, citation)
    for other in citation.other_abstracts:
        _add_other_abstract(medline, other, inline)
    if citation.keywords:
        keywords = _add(medline, "KeywordList", Owner="NOTNLM")
        for keyword in citation.keywords:
            _add(keywords, "Keyword", keyword, MajorTopicYN="N")
    if note:
        _add(medline, "GeneralNote", note, Owner="NLM")
    _add_pubmed_data(root, citation)
    return root


def _add_article(medline: etree._Element, citation: Citation, inline: Mapping[str, str]) -> None:
    article = _add(medline, "Article", PubModel="Electronic")
    _add_journal(article, citation)
    _add_marked(article, "ArticleTitle", citation.title, inline)
    # The DTD requires pages or a DOI; NLM leaves MedlinePgn empty if both are missing.
    if citation.pages or not citation.doi:
        _add(_add(article, "Pagination"), "MedlinePgn", citation.pages)
    if citation.doi:
        _add(article, "ELocationID", citation.doi, EIdType="doi", ValidYN="Y")
    if citation.sections:
        _add_sections(_add(article, "Abstract"), citation.sections, inline)
    if citation.authors:
        _add_authors(_add(article, "AuthorList", CompleteYN="Y"), citation.authors)
    for language in citation.languages:
        _add(article, "Language", language)
    if citation.publication_types:
        types = _add(article, "PublicationTypeList")
        for name in citation.publication_types:
            _add(types, "PublicationType", name, UI=_PUBLICATION_TYPE_UIS.get(name, ""))


def _add_journal(article: etree._Element, citation: Citation) -> None:
    journal = _add(article, "Journal")
    issue = _add(journal, "JournalIssue", CitedMedium="Internet")
    _add_filled(issue, Volume=citation.volume, Issue=citation.issue)
    _add_date(issue, citation)
    _add_filled(journal, Title=citation.journal, ISOAbbreviation=citation.journal_abbreviation)


def _add_authors(authors: etree._Element, people: tuple[Author, ...]) -> None:
    for person in people:
        _add_filled(
            _add(authors, "Author", ValidYN="Y"),
            LastName=person.last,
            ForeName=person.fore,
            Initials=person.initials,
            CollectiveName=person.collective,
        )


def _add_date(issue: etree._Element, citation: Citation) -> None:
    date = _add(issue, "PubDate")
    if citation.year is None:
        if citation.month is not None:
            raise InputError(
                f"PMID {citation.pmid}: month {citation.month} without a year; set both"
            )
        _add(date, "MedlineDate", "Date unknown")
        return
    _add(date, "Year", str(citation.year))
    if citation.month is not None:
        if not 1 <= citation.month <= len(_MONTHS):
            raise InputError(f"PMID {citation.pmid}: month {citation.month} is not one of 1 to 12")
        _add(date, "Month", _MONTHS[citation.month - 1])


def _add_sections(
    parent: etree._Element, sections: tuple[Section, ...], inline: Mapping[str, str]
) -> None:
    for section in sections:
        element = _add_marked(parent, "AbstractText", section.text, inline)
        if section.label:
            element.set("Label", section.label)
            element.set("NlmCategory", _NLM_CATEGORIES.get(section.label.upper(), "UNASSIGNED"))


def _add_other_abstract(
    medline: etree._Element, other: OtherAbstract, inline: Mapping[str, str]
) -> None:
    element = _add(medline, "OtherAbstract", Type=other.kind, Language=other.language)
    _add_sections(element, other.sections, inline)


def _add_chemicals(medline: etree._Element, citation: Citation) -> None:
    if not citation.chemicals:
        return
    chemicals = _add(medline, "ChemicalList")
    for substance in citation.chemicals:
        chemical = _add(chemicals, "Chemical")
        _add(chemical, "RegistryNumber", "0")
        _add(chemical, "NameOfSubstance", substance.name, UI=substance.ui)


def _add_links(medline: etree._Element, links: tuple[Link, ...]) -> None:
    if not links:
        return
    corrections = _add(medline, "CommentsCorrectionsList")
    for link in links:
        correction = _add(corrections, "CommentsCorrections", RefType=link.kind)
        _add(correction, "RefSource", link.source)
        if link.pmid is not None:
            _add(correction, "PMID", str(link.pmid), Version="1")


def _add_mesh(medline: etree._Element, citation: Citation) -> None:
    if not citation.mesh:
        return
    headings = _add(medline, "MeshHeadingList")
    for mesh in citation.mesh:
        heading = _add(headings, "MeshHeading")
        major = "Y" if mesh.major else "N"
        _add(heading, "DescriptorName", mesh.name, UI=mesh.ui, MajorTopicYN=major)


def _add_pubmed_data(root: etree._Element, citation: Citation) -> None:
    data = _add(root, "PubmedData")
    _add(data, "PublicationStatus", "epublish")
    ids = _add(data, "ArticleIdList")
    _add(ids, "ArticleId", str(citation.pmid), IdType="pubmed")
    if citation.doi:
        _add(ids, "ArticleId", citation.doi, IdType="doi")
    if citation.pmcid:
        _add(ids, "ArticleId", citation.pmcid, IdType="pmc")
    if citation.references:
        references = _add(data, "ReferenceList")
        for cited in citation.references:
            reference = _add(references, "Reference")
            _add(reference, "Citation", f"PMID {cited}")
            own = _add(reference, "ArticleIdList")
            _add(own, "ArticleId", str(cited), IdType="pubmed")


def book_element(chapter: BookChapter) -> etree._Element:
    """Return the chapter as a PubmedBookArticle element; an empty abstract is left out."""
    root = etree.Element("PubmedBookArticle")
    document = _add(root, "BookDocument")
    _add(document, "PMID", str(chapter.pmid), Version="1")
    ids = _add(document, "ArticleIdList")
    _add(ids, "ArticleId", str(chapter.pmid), IdType="pubmed")
    book = _add(document, "Book")
    _add(_add(book, "Publisher"), "PublisherName", chapter.publisher)
    _add(book, "BookTitle", chapter.book)
    _add(_add(book, "PubDate"), "Year", str(chapter.year))
    _add(document, "ArticleTitle", chapter.title)
    if chapter.abstract:
        _add(_add(document, "Abstract"), "AbstractText", chapter.abstract)
    return root


def deletion_element(deletions: Iterable[Deletion]) -> etree._Element:
    """Return a DeleteCitation element that names the PMIDs in order.

    A deletion of any version is written as one of version 1, as NLM does.
    """
    element = etree.Element("DeleteCitation")
    for deletion in deletions:
        _add(element, "PMID", str(deletion.pmid), Version=str(deletion.version or 1))
    return element


def _add(parent: etree._Element, tag: str, text: str = "", **attributes: str) -> etree._Element:
    child = etree.SubElement(parent, tag, attributes)
    if text:
        child.text = text
    return child


def _add_filled(parent: etree._Element, **texts: str) -> None:
    """Add one child element per non-empty text, named after its argument."""
    for tag, text in texts.items():
        if text:
            _add(parent, tag, text)


def _add_marked(
    parent: etree._Element, tag: str, plain: str, inline: Mapping[str, str]
) -> etree._Element:
    """Add `plain`, with the inline elements that `inline` holds for it."""
    marked = inline.get(plain, plain) if inline else plain
    element = _add(parent, tag)
    # An empty text stops the pretty printer from adding white space between inline tags.
    element.text = ""
    if marked == plain:
        element.text = plain
        return element
    open_elements = [element]
    begin = 0
    for match in _INLINE_TAG.finditer(marked):
        _append_text(open_elements[-1], marked[begin : match.start()])
        begin = match.end()
        closes, name = match.groups()
        if not closes:
            open_elements.append(etree.SubElement(open_elements[-1], name))
        elif open_elements[-1].tag != name or len(open_elements) == 1:
            raise InputError(f"{marked[:60]!r}...: </{name}> closes nothing; pair the inline tags")
        else:
            open_elements.pop()
    if len(open_elements) > 1:
        name = open_elements[-1].tag
        raise InputError(f"{marked[:60]!r}...: <{name}> is not closed; pair the inline tags")
    _append_text(element, marked[begin:])
    return element


def _append_text(element: etree._Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
