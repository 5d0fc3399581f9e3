"""Write citations in CSL-JSON, which Zotero, pandoc and CSL processors read.

The schema is csl-data.json of CSL 1.0.2. Data without a field in the schema is under `custom`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from cluster.pubmed.languages import language_tag
from cluster.records import Author, Citation
from serve.references.describe_citation import (
    RETRACTED,
    doi_of,
    link_words,
    one_line,
    person_name,
    pubmed_url,
    subjects,
    title_text,
)
from serve.references.page_ranges import expand_pages


def write_csl_items(citations: Iterable[Citation]) -> str:
    """Return CSL items as the elements of a JSON array, without its brackets."""
    items = [csl_item(citation) for citation in citations]
    array = json.dumps(items, ensure_ascii=False, indent=2)
    return array.removeprefix("[").removesuffix("\n]")


def csl_item(citation: Citation) -> dict[str, Any]:
    """Return the citation as a CSL item without empty fields."""
    c = citation
    notes = [RETRACTED if c.retracted else "", *map(link_words, c.links)]
    item = {
        "id": f"pmid{c.pmid}",
        "type": "article-journal",
        "title": title_text(c),
        "author": [csl_name(author) for author in c.authors],
        "container-title": one_line(c.journal),
        "container-title-short": one_line(c.journal_abbreviation),
        "issued": _issued(c),
        "volume": one_line(c.volume),
        "issue": one_line(c.issue),
        "page": expand_pages(one_line(c.pages)),
        "DOI": doi_of(c),
        "PMID": str(c.pmid),
        "PMCID": one_line(c.pmcid),
        "URL": pubmed_url(c.pmid),
        "language": language_tag(c.languages[0]) if c.languages else "",
        "abstract": one_line(c.abstract),
        "keyword": "; ".join(subjects(c)),
        "note": "; ".join(note for note in notes if note),
        "source": "PubMed",
        "custom": _custom(c),
    }
    return {name: value for name, value in item.items() if value}


def csl_name(author: Author) -> dict[str, str]:
    """Return the parts of a person's name, or a group's name as a literal."""
    if author.collective:
        return {"literal": one_line(author.collective)}
    name = person_name(author)
    parts = {"family": name.last, "given": name.given, "suffix": name.suffix}
    return {part: text for part, text in parts.items() if text}


def _issued(citation: Citation) -> dict[str, Any] | None:
    if citation.year is None:
        return None
    month = [citation.month] if citation.month else []
    return {"date-parts": [[citation.year, *month]]}


def _custom(citation: Citation) -> dict[str, Any]:
    fields = {
        "publication_types": list(citation.publication_types),
        "languages": list(citation.languages),
        "mesh": [asdict(heading) for heading in citation.mesh],
        "keywords": list(citation.keywords),
        "chemicals": [asdict(chemical) for chemical in citation.chemicals],
        "links": [asdict(link) for link in citation.links],
        "references": list(citation.references or ()),
        "sections": [asdict(s) for s in citation.sections] if len(citation.sections) > 1 else [],
        "other_abstracts": [asdict(other) for other in citation.other_abstracts],
    }
    return {name: value for name, value in fields.items() if value}
