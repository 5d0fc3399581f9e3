"""Rules for BioASQ's documents and snippets.

Source: the guidelines of BioASQ Task 13b (participants-area.bioasq.org): at most ten of each, and
snippets from titles and abstracts of the returned articles. Offsets are CiteRay's: Unicode code
points, with an exclusive end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cluster.records import ABSTRACT, TITLE, Citation
from evaluation.lint.note_problems import Checker, read_pmid
from serve.formats.bioasq import MAX_DOCUMENTS, MAX_SNIPPETS, document_url

Snippet = dict[str, Any]
EDGES = ("Begin", "End")
SECTIONS = {TITLE: TITLE, ABSTRACT: ABSTRACT, "sections.0": ABSTRACT}


def check_documents(checker: Checker, documents: Sequence[Any], place: str) -> list[Any]:
    """Return the first MAX_DOCUMENTS distinct documents as `--fix` writes them.

    Problems are recorded.
    """

    def check(document: Any, where: str) -> list[Any]:
        address, pmid = _address(checker, document, where)
        return [address] if pmid is None or checker.live(pmid, where) else []

    return checker.select(documents, check, repr, MAX_DOCUMENTS, place, "document")


def check_snippets(
    checker: Checker, snippets: Sequence[Any], documents: Collection[Any], place: str
) -> list[Any]:
    """Check snippets against the question's `documents`; without any, all articles are allowed."""

    def check(snippet: Any, where: str) -> list[Any]:
        return _check(checker, snippet, documents, where)

    return checker.select(snippets, check, _span, MAX_SNIPPETS, place, "snippet")


def _address(checker: Checker, document: Any, where: str) -> tuple[Any, int | None]:
    """Return (address in the gold files' form, PMID); other addresses are unchanged, without PMID.

    The official program compares addresses as strings, so another spelling never matches.
    """
    pmid = read_pmid(document)
    form = "http://www.ncbi.nlm.nih.gov/pubmed/PMID"
    if pmid is None:
        checker.note(where, f"{document!r:.80} is not a PubMed article; the form is {form}")
        return document, None
    address = document_url(pmid)
    if document != address:
        checker.note(where, f"{document!r:.80} is not of the form {form}", f"writes {address}")
    return address, pmid


def _span(snippet: Any) -> str:
    if not isinstance(snippet, dict):
        return repr(snippet)
    fields = ("document", "beginSection", "offsetInBeginSection", "offsetInEndSection")
    return repr([snippet.get(field) for field in fields])


def _check(checker: Checker, snippet: Any, documents: Collection[Any], where: str) -> list[Snippet]:
    """Return the repaired snippet, or an empty list if `--fix` drops it."""
    if not isinstance(snippet, dict):
        checker.note(where, f"must be an object, not {snippet!r:.40}")
        return [snippet]
    address, pmid = _address(checker, snippet.get("document"), where)
    if pmid is not None and not checker.live(pmid, where):
        return []
    if documents and address not in documents:
        checker.note(where, f"{address!r:.80} is not among the question's documents")
    mended = {**snippet, "document": address}
    section = _section(checker, mended, where)
    citation = checker.lookup.find(pmid) if checker.lookup and pmid else None
    if section and citation:
        _place(checker, mended, citation, section, where)
    else:
        _measure(checker, mended, where)
    return [mended]


def _section(checker: Checker, snippet: Snippet, where: str) -> str:
    """Return the section, or "" if it is invalid or ambiguous; old names are updated."""
    names = [snippet.get(f"{edge.lower()}Section") for edge in EDGES]
    known = [
        SECTIONS.get(name.strip().lower(), "") if isinstance(name, str) else "" for name in names
    ]
    if not all(known) or known[0] != known[1]:
        checker.note(
            where, f"sections {names[0]!r:.40} and {names[1]!r:.40}: both title or both abstract"
        )
        return ""
    if names != known:
        checker.note(where, f"sections {names[0]!r:.40} and {names[1]!r:.40}", f"writes {known[0]}")
        snippet.update(beginSection=known[0], endSection=known[1])
    return known[0]


def _offsets(snippet: Snippet) -> tuple[Any, Any]:
    begin, end = (snippet.get(f"offsetIn{edge}Section") for edge in EDGES)
    return begin, end


def _measure(checker: Checker, snippet: Snippet, where: str) -> None:
    """Check, without the article, that offsets are in order and match the text's length."""
    (begin, end), text = _offsets(snippet), snippet.get("text")
    if not (type(begin) is int and type(end) is int and 0 <= begin < end):
        checker.note(where, f"offsets {begin!r:.40} to {end!r:.40}: 0 or more, end after begin")
    elif not isinstance(text, str) or not text:
        checker.note(where, f"text must be a string that is not empty, not {text!r:.40}")
    elif end - begin != len(text):
        checker.note(
            where, f"offsets {begin} to {end} hold {end - begin} characters, text {len(text)}"
        )


def _place(
    checker: Checker, snippet: Snippet, citation: Citation, section: str, where: str
) -> None:
    """Check the text against the article at the offsets; move the offsets if they are wrong."""
    (begin, end), text = _offsets(snippet), snippet.get("text")
    if not isinstance(text, str) or not text:
        checker.note(where, f"text must be a string that is not empty, not {text!r:.40}")
        return
    sections = {TITLE: citation.title, ABSTRACT: citation.abstract}
    found = _occurrences(sections[section], text)
    if type(begin) is int and type(end) is int and begin in found and end == begin + len(text):
        return
    message = f"text is not at {begin!r:.40} to {end!r:.40} of PMID {citation.pmid}'s {section}"
    # If the text occurs at `begin`, only the end is wrong.
    to = begin if begin in found else found[0] if len(found) == 1 else None
    if to is None:
        other = ABSTRACT if section == TITLE else TITLE
        hint = f", but in the {other}" if text in sections[other] else ""
        times = f"{len(found)} times elsewhere" if found else f"nowhere in it{hint}"
        checker.note(where, f"{message}; it is {times}")
        return
    checker.note(where, message, f"moves the offsets to {to} and {to + len(text)}")
    snippet.update(offsetInBeginSection=to, offsetInEndSection=to + len(text))


def _occurrences(section: str, text: str) -> list[int]:
    """Return the offsets at which `text` occurs in `section`, including overlaps."""
    found, begin = [], section.find(text)
    while begin >= 0:
        found.append(begin)
        begin = section.find(text, begin + 1)
    return found
