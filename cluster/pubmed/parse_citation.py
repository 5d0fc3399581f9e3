"""Parse a PubmedArticle element into a Citation, or into the reason for its rejection.

Element names and their meaning: https://dtd.nlm.nih.gov/ncbi/pubmed/doc/out/250101/index.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

from cluster.errors import CiteRayError
from cluster.pubmed.read_elements import (
    Element,
    number_fault,
    parse_number,
    read_number,
    read_text,
    texts_of,
    year_and_month,
)
from cluster.records import (
    MORE_AUTHORS,
    NO_TITLE,
    Author,
    Chemical,
    Citation,
    Link,
    MeshHeading,
    OtherAbstract,
    Rejected,
    Section,
    bare_doi,
)

# Limit of a citation's text, since batches of citations must fit in memory; the longest ones of
# PubMed have some tens of thousands of characters.
MAX_CHARACTERS = 500_000


# The arguments of a Citation, collected element by element in document order.
_Fields: TypeAlias = dict[str, Any]
_Reader: TypeAlias = Callable[[_Fields, Element], None]
_NAME_PARTS = ("LastName", "ForeName", "Initials", "Suffix", "CollectiveName")
# Fields that several elements of a record contribute to.
_GATHERED = ("languages", "other_abstracts", "keywords")

# Equal headings and chemicals share one immutable object, because a few of them are very common.
_shared_heading = lru_cache(maxsize=2**16)(MeshHeading)
_shared_chemical = lru_cache(maxsize=2**16)(Chemical)
# Longer names are not cached, to bound the memory; NLM's longest have about 200 characters.
_MAX_SHARED_CHARS = 500


def parse_citation(record: Element, source: str, position: int) -> Citation | Rejected:
    """Parse a PubmedArticle; a Rejected names the field that is at fault."""
    fields: _Fields = {"source": source, "position": position}
    try:
        _read_children(fields, record, _RECORD_READERS)
        _require(fields)
    except _UnusableError as fault:
        reason, detail = fault.args
        return Rejected(reason, detail, source, position)
    vernacular = fields.pop("vernacular", "")
    if fields["title"] in ("", NO_TITLE):
        fields["title"] = vernacular or fields["title"]
    for name in _GATHERED:
        if name in fields:
            fields[name] = tuple(fields[name])
    if not fields.get("sections"):
        fields["sections"] = _english_abstract(fields.get("other_abstracts", ()))
    citation = Citation(**fields)
    size = _characters(citation)
    if size > MAX_CHARACTERS:
        detail = f"PMID {citation.pmid}: {size} characters of text, at most {MAX_CHARACTERS}"
        return Rejected("too-long", detail, source, position)
    return citation


def _characters(citation: Citation) -> int:
    """Return the number of characters of all texts, plus one for each structured item."""
    c = citation
    parts = [
        *[len(section.label) + len(section.text) for section in c.sections],
        *[len(each.language) + len(each.kind) for each in c.other_abstracts],
        *[len(part.label) + len(part.text) for each in c.other_abstracts for part in each.sections],
        *[len(a.last) + len(a.fore) + len(a.initials) + len(a.collective) for a in c.authors],
        *[len(heading.ui) + len(heading.name) for heading in c.mesh],
        *[len(chemical.ui) + len(chemical.name) for chemical in c.chemicals],
        *[len(link.kind) + len(link.source) for link in c.links],
        *[0 for _ in c.references or ()],
    ]
    own = (c.title, c.journal, c.journal_abbreviation, c.volume, c.issue, c.pages, c.doi, c.pmcid)
    lists = (*own, *c.keywords, *c.languages, *c.publication_types)
    return len(parts) + sum(parts) + sum(map(len, lists))


def _english_abstract(others: Sequence[OtherAbstract]) -> tuple[Section, ...]:
    """Return the first English abstract in `others`; some records have no other abstract."""
    return next((o.sections for o in others if o.language == "eng" and o.sections), ())


class _UnusableError(CiteRayError):
    """A record is not a valid Citation; the arguments are the reason, a fixed word, and details."""


def _require(fields: _Fields) -> None:
    if "pmid" not in fields:
        raise _UnusableError("no-pmid", "MedlineCitation/PMID is missing")
    if "languages" not in fields:
        raise _UnusableError("no-article", f"PMID {fields['pmid']}: Article is missing")
    if "title" not in fields:
        raise _UnusableError("no-title", f"PMID {fields['pmid']}: ArticleTitle is missing")


def _read_children(fields: _Fields, parent: Element, readers: Mapping[str, _Reader]) -> None:
    """Read the children in one pass with dispatch by tag, which is faster than lookups."""
    for element in parent:
        reader = readers.get(element.tag)
        if reader is not None:
            reader(fields, element)


def _sections(abstract: Element) -> tuple[Section, ...]:
    # Skip a label without text, since "LABEL: " would leave a stray space.
    return tuple(
        [
            Section(part.get("Label", "").strip(), text)
            for part in abstract
            if part.tag == "AbstractText" and (text := read_text(part))
        ]
    )


def _authors(authors: Element) -> tuple[Author, ...]:
    """Return the authors of an AuthorList in order, without empty and invalid names.

    NLM keeps a misspelt name, marked as invalid, together with the corrected one. `MORE_AUTHORS`
    ends a list that NLM marks as incomplete.
    """
    found = []
    for author in authors:
        if author.tag == "Author" and author.get("ValidYN") != "N":
            named = _author(author)
            if named is not None:
                found.append(named)
    if found and authors.get("CompleteYN") == "N":
        found.append(MORE_AUTHORS)
    return tuple(found)


def _author(author: Element) -> Author | None:
    # Other parts, such as long affiliations, are not read.
    parts = {part.tag: read_text(part) for part in author if part.tag in _NAME_PARTS}
    last, fore, initials, suffix, collective = (parts.get(tag, "") for tag in _NAME_PARTS)
    if suffix:
        fore, initials = f"{fore} {suffix}".lstrip(), f"{initials} {suffix}".lstrip()
    if last or fore or initials or collective:
        return Author(last, fore, initials, collective)
    return None


def _pages(pagination: Element) -> str:
    """Return the page range as NLM prints it, or else the publisher's first and last page."""
    parts = {part.tag: read_text(part) for part in pagination}
    start, end = parts.get("StartPage", ""), parts.get("EndPage", "")
    ends = start if end in ("", start) else f"{start}-{end}"
    return parts.get("MedlinePgn") or ends


def _read_pmid(fields: _Fields, pmid: Element) -> None:
    fields["pmid"] = read_number(pmid)
    fields["version"] = parse_number(pmid.get("Version", "1"))
    if fields["pmid"] is None:
        raise _UnusableError("bad-pmid", number_fault("MedlineCitation/PMID", pmid))
    if fields["version"] is None:
        detail = f"PMID {fields['pmid']}: its attribute Version is not a positive integer"
        raise _UnusableError("bad-version", detail)


def _read_article(fields: _Fields, article: Element) -> None:
    fields["languages"] = []
    _read_children(fields, article, _ARTICLE_READERS)
    # Articles that have only appeared online may have no date of an issue.
    for date in article.iterchildren("ArticleDate"):
        if fields.get("year") is None:
            _read_date(fields, date)


def _read_language(fields: _Fields, language: Element) -> None:
    if text := read_text(language):
        fields["languages"].append(text)


def _read_journal(fields: _Fields, journal: Element) -> None:
    title = abbreviation = ""
    for part in journal:
        tag = part.tag
        if tag == "JournalIssue":
            _read_children(fields, part, _ISSUE_READERS)
        elif tag == "Title":
            title = read_text(part)
        elif tag == "ISOAbbreviation":
            abbreviation = read_text(part)
    fields["journal"], fields["journal_abbreviation"] = title or abbreviation, abbreviation


def _read_date(fields: _Fields, date: Element) -> None:
    fields["year"], fields["month"] = year_and_month(date)


def _read_journal_info(fields: _Fields, info: Element) -> None:
    if not fields.get("journal"):
        fields["journal"] = "".join(texts_of(info, "MedlineTA"))


def _read_pagination(fields: _Fields, pagination: Element) -> None:
    # An empty range must not replace the article number, which may precede or follow it.
    if pages := _pages(pagination):
        fields["pages"] = pages


def _read_location(fields: _Fields, location: Element) -> None:
    if location.get("ValidYN") == "N":
        return
    kind = location.get("EIdType")
    if kind == "doi":
        fields.setdefault("doi", bare_doi(read_text(location)))
    elif kind == "pii":
        fields.setdefault("pages", read_text(location))


def _chemical(ui: str, name: str) -> Chemical:
    is_short = len(ui) + len(name) <= _MAX_SHARED_CHARS
    return (_shared_chemical if is_short else Chemical)(ui, name)


def _read_chemicals(fields: _Fields, chemicals: Element) -> None:
    fields["chemicals"] = tuple(
        [
            _chemical(name.get("UI", ""), read_text(name))
            for name in chemicals.iter("NameOfSubstance")
        ]
    )


def _heading(ui: str, name: str, major: bool) -> MeshHeading:
    is_short = len(ui) + len(name) <= _MAX_SHARED_CHARS
    return (_shared_heading if is_short else MeshHeading)(ui, name, major)


def _read_mesh(fields: _Fields, headings: Element) -> None:
    """Read the MeSH headings; one is major if its descriptor or any of its qualifiers is."""
    found: list[tuple[str, str, bool]] = []
    for name in headings.iter("DescriptorName", "QualifierName"):
        if name.tag == "DescriptorName":
            major = name.get("MajorTopicYN") == "Y"
            found.append((name.get("UI", ""), read_text(name), major))
        elif found and not found[-1][2] and name.get("MajorTopicYN") == "Y":
            found[-1] = (*found[-1][:2], True)
    fields["mesh"] = tuple([_heading(*heading) for heading in found])


def _read_links(fields: _Fields, links: Element) -> None:
    found = []
    for link in links.iterchildren("CommentsCorrections"):
        pmid, source = None, ""
        for part in link:
            if part.tag == "PMID":
                pmid = read_number(part)
            elif part.tag == "RefSource":
                source = read_text(part)
        found.append(Link(link.get("RefType", ""), pmid, source))
    fields["links"] = tuple(found)


def _read_other_abstract(fields: _Fields, other: Element) -> None:
    # English is the default value of the attribute in the DTD, which is never loaded.
    abstract = OtherAbstract(other.get("Language", "eng"), other.get("Type", ""), _sections(other))
    fields.setdefault("other_abstracts", []).append(abstract)


def _read_keywords(fields: _Fields, keywords: Element) -> None:
    fields.setdefault("keywords", []).extend(texts_of(keywords, "Keyword"))


def _read_pubmed_data(fields: _Fields, pubmed_data: Element) -> None:
    cited: list[int | None] = []
    # Only direct children: each reference has an ArticleIdList of its own.
    for listed in pubmed_data:
        tag = listed.tag
        if tag == "ArticleIdList":
            ids = {each.get("IdType"): read_text(each) for each in listed}
            fields["doi"] = bare_doi(ids.get("doi", "")) or fields.get("doi", "")
            fields["pmcid"] = ids.get("pmc", "")
        elif tag == "ReferenceList":
            # This includes lists within lists. The DTD, which is never loaded, has this default.
            each_id = listed.iter("ArticleId")
            cited += [read_number(i) for i in each_id if i.get("IdType", "pubmed") == "pubmed"]
    # NLM listed the references as links of this kind before it had ReferenceList.
    cited += [link.pmid for link in fields.get("links", ()) if link.kind == "Cites"]
    fields["references"] = tuple(dict.fromkeys([pmid for pmid in cited if pmid]))


def _field(name: str, read: Callable[[Element], Any]) -> _Reader:
    """Return a reader that stores the result of `read` in the field `name`."""

    def store(fields: _Fields, element: Element) -> None:
        fields[name] = read(element)

    return store


_MEDLINE_READERS: Mapping[str, _Reader] = {
    "PMID": _read_pmid,
    "Article": _read_article,
    "MedlineJournalInfo": _read_journal_info,
    "ChemicalList": _read_chemicals,
    "CommentsCorrectionsList": _read_links,
    "MeshHeadingList": _read_mesh,
    "OtherAbstract": _read_other_abstract,
    "KeywordList": _read_keywords,
}
_ARTICLE_READERS: Mapping[str, _Reader] = {
    "Journal": _read_journal,
    "ArticleTitle": _field("title", read_text),
    "VernacularTitle": _field("vernacular", read_text),
    "Pagination": _read_pagination,
    "ELocationID": _read_location,
    "AuthorList": _field("authors", _authors),
    "Language": _read_language,
    "Abstract": _field("sections", _sections),
    "PublicationTypeList": _field("publication_types", partial(texts_of, tag="PublicationType")),
}
_ISSUE_READERS: Mapping[str, _Reader] = {
    "Volume": _field("volume", read_text),
    "Issue": _field("issue", read_text),
    "PubDate": _read_date,
}
_RECORD_READERS: Mapping[str, _Reader] = {
    "MedlineCitation": partial(_read_children, readers=_MEDLINE_READERS),
    "PubmedData": _read_pubmed_data,
}
