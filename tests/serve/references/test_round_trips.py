"""Round trips of 1,000 citations through independent parsers: no field is lost or changed."""

import csv
import io
import json
import re
from functools import cache
from typing import Any

import bibtexparser
import pytest
import rispy
from bibtexparser.middlewares import (
    LatexDecodingMiddleware,
    MonthIntMiddleware,
    NameParts,
    SeparateCoAuthors,
    SplitNameParts,
)
from Bio import Medline
from pylatexenc.latex2text import LatexNodes2Text

from cluster.pubmed.languages import language_name, language_tag
from cluster.records import Author, Citation
from serve.references.describe_citation import link_words, person_name, pubmed_url
from serve.references.export_citations import FORMATS, PartWriter, export_citations
from serve.references.page_ranges import expand_pages, first_and_last
from tests.serve.references.generated_citations import generated_citations

CITATIONS = generated_citations()


def spaced(text: str) -> str:
    return " ".join(text.split())


def kept(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", [], None)}


def bare(title: str) -> str:
    """Remove PubMed's full stop, which reference managers do not expect."""
    return title.removesuffix(".")


def in_line(author: Author) -> str:
    if author.collective:
        return author.collective
    name = person_name(author)
    return ", ".join(part for part in (name.last, name.given, name.suffix) if part)


def subjects(citation: Citation) -> list[str]:
    return [*(heading.name for heading in citation.mesh), *citation.keywords]


def notes(citation: Citation) -> list[str]:
    major = [heading.name for heading in citation.mesh if heading.major]
    return [
        *(["Retracted article"] if citation.retracted else []),
        *([f"Pages: {citation.pages}"] if ";" in citation.pages else []),
        *map(link_words, citation.links),
        *([f"Major topics: {'; '.join(major)}"] if major else []),
        *(["Substances: Metformin"] if citation.chemicals else []),
        *(f"Abstract (spa): {o.sections[0].text}" for o in citation.other_abstracts),
    ]


def as_ris(c: Citation) -> dict[str, Any]:
    first, last = first_and_last(c.pages)
    return kept(
        {
            "type_of_reference": "JOUR",
            "authors": [in_line(a) for a in c.authors],
            "title": bare(c.title),
            "secondary_title": c.journal,
            "journal_name": c.journal,
            "alternate_title1": c.journal_abbreviation,
            "year": str(c.year or ""),
            "date": f"{c.year}/{c.month:02}//" if c.month else "",
            "volume": c.volume,
            "number": c.issue,
            "start_page": first,
            "end_page": last,
            "doi": c.doi,
            "accession_number": str(c.pmid),
            "custom2": c.pmcid,
            "name_of_database": "PubMed",
            "language": "; ".join(c.languages),
            "type_of_work": "; ".join(c.publication_types),
            "abstract": c.abstract,
            "keywords": subjects(c),
            "urls": [pubmed_url(c.pmid)],
            "notes": notes(c),
        }
    )


def test_ris_is_read_by_rispy() -> None:
    read = rispy.loads(export_citations(CITATIONS, "ris").replace("\r\n", "\n"))
    assert len(read) == 1000
    for citation, entry in zip(CITATIONS, read, strict=True):
        assert kept(entry) == as_ris(citation)


def as_bibtex(c: Citation) -> dict[str, Any]:
    major = "; ".join(heading.name for heading in c.mesh if heading.major)
    languages = "; ".join(language_name(code) for code in c.languages)
    return kept(
        {
            "title": bare(c.title),
            "journal": c.journal,
            "shortjournal": c.journal_abbreviation,
            "year": str(c.year or ""),
            "month": c.month,
            "volume": c.volume,
            "number": c.issue,
            "pages": expand_pages(c.pages).replace("-", "\u2013"),
            "doi": c.doi,
            "pmid": str(c.pmid),
            "pmcid": c.pmcid,
            "url": pubmed_url(c.pmid),
            "language": languages,
            "keywords": "; ".join(subjects(c)),
            "abstract": c.abstract,
            "pubtype": "; ".join(c.publication_types),
            "majortopics": major,
            "substances": "; ".join(chemical.name for chemical in c.chemicals),
            "related-notices": "; ".join(map(link_words, c.links)),
            "otherabstract1": "".join(f"spa: {o.sections[0].text}" for o in c.other_abstracts),
            "note": "; ".join(
                ["Retracted article", *map(link_words, c.links)] if c.retracted else []
            ),
        }
    )


def in_parts(author: Author) -> tuple[str, str, str]:
    if author.collective:
        return "", author.collective, ""
    name = person_name(author)
    return name.given, name.last, name.suffix


@cache
def decoded(text: str) -> str:
    return str(LatexNodes2Text(keep_braced_groups=False).latex_to_text(text))


def joined(name: NameParts) -> tuple[str, str, str]:
    """Return the parts of a name; BibTeX's "von" belongs to the family name."""
    first, last, jr = name.first, [*name.von, *name.last], name.jr
    return decoded(" ".join(first)), decoded(" ".join(last)), decoded(" ".join(jr))


@pytest.mark.slow
def test_bibtex_is_read_by_bibtexparser() -> None:
    # Parsing all of them takes over ten seconds.
    citations = CITATIONS[::10]
    text = export_citations(citations, "bibtex")
    middleware = [
        MonthIntMiddleware(),
        SeparateCoAuthors(),
        SplitNameParts(),
        LatexDecodingMiddleware(keep_braced_groups=False),
    ]
    read = bibtexparser.parse_string(text, append_middleware=middleware)
    assert not read.failed_blocks
    assert [entry.key for entry in read.entries] == [f"pmid{c.pmid}" for c in citations]
    for citation, entry in zip(citations, read.entries, strict=True):
        fields = {field.key: field.value for field in entry.fields}
        names = [joined(name) for name in fields.pop("author", [])]
        # pylatexenc reads \textasciicircum as a modifier letter.
        fields = {k: v.replace("\u02c6", "^") if k != "month" else v for k, v in fields.items()}
        assert names == list(map(in_parts, citation.authors))
        assert fields == as_bibtex(citation)


def test_nbib_is_read_by_biopython() -> None:
    read = list(Medline.parse(io.StringIO(export_citations(CITATIONS, "nbib"))))
    assert len(read) == 1000
    for c, record in zip(CITATIONS, read, strict=True):
        people = [a for a in c.authors if not a.collective]
        expected = kept(
            {
                "PMID": str(c.pmid),
                "VI": c.volume,
                "IP": c.issue,
                "TI": spaced(c.title),
                "PG": c.pages,
                "AB": spaced(c.abstract),
                "CN": [a.collective for a in c.authors if a.collective],
                "AU": [f"{a.last} {a.initials}".strip() for a in people],
                "LA": list(c.languages),
                "PT": list(c.publication_types),
                "JT": spaced(c.journal),
                "TA": c.journal_abbreviation.replace(".", ""),
                "MH": [f"{'*' if h.major else ''}{h.name}" for h in c.mesh],
                "NM": [chemical.name for chemical in c.chemicals],
                "OT": list(c.keywords),
                "OAB": [o.sections[0].text for o in c.other_abstracts],
                "PMC": c.pmcid,
                "LID": f"{c.doi} [doi]" if c.doi else "",
                "AID": [f"{c.doi} [doi]"] if c.doi else [],
            }
        )
        found = {name: record.get(name) for name in expected}
        assert found | {n: spaced(found[n]) for n in ("TI", "AB", "JT") if n in found} == expected
        dated = {None: "", 1: " Jan", 12: " Dec"}
        assert record.get("DP", "") == f"{c.year or ''}{dated[c.month]}"
        given = [author.fore or author.initials for author in people]
        assert [bool(", " in full) for full in record.get("FAU", [])] == list(map(bool, given))
        for link in c.links:
            assert any(
                f"PMID: {link.pmid}" in line
                for tag in ("RIN", "EIN", "CON", "ECI", "GN")
                for line in record.get(tag, [])
            )


CSL_FIELDS = {
    "id", "type", "title", "author", "container-title", "container-title-short", "issued", "volume",
    "issue", "page", "DOI", "PMID", "PMCID", "URL", "language", "abstract", "keyword", "note",
    "source", "custom",
}  # fmt: skip


def test_csl_json_follows_the_schema() -> None:
    read = json.loads(export_citations(CITATIONS, "csl-json"))
    assert len(read) == 1000
    for c, item in zip(CITATIONS, read, strict=True):
        assert item.keys() <= CSL_FIELDS
        assert (item["id"], item["type"]) == (f"pmid{c.pmid}", "article-journal")
        dated = [[part for part in (c.year, c.month) if part]] if c.year else None
        assert item.get("issued", {}).get("date-parts") == dated
        texts = {
            "title": bare(c.title),
            "container-title": c.journal,
            "container-title-short": c.journal_abbreviation,
            "volume": c.volume,
            "issue": c.issue,
            "page": expand_pages(c.pages),
            "DOI": c.doi,
            "PMID": str(c.pmid),
            "PMCID": c.pmcid,
            "abstract": c.abstract,
            "keyword": "; ".join(subjects(c)),
            "language": language_tag(c.languages[0]) if c.languages else "",
        }
        assert {name: item.get(name, "") for name in texts} == texts
        own = item["custom"]
        assert [h["major"] for h in own.get("mesh", [])] == [h.major for h in c.mesh]
        assert own["publication_types"] == list(c.publication_types)
        assert [link["pmid"] for link in own.get("links", [])] == [link.pmid for link in c.links]
        for author, name in zip(c.authors, item.get("author", []), strict=True):
            assert name.keys() <= {"family", "given", "suffix", "literal"}
            assert name.get("literal", "") == author.collective


def test_csv_has_a_row_per_citation_and_no_formula() -> None:
    text = export_citations(CITATIONS, "csv")
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert [int(row["pmid"]) for row in rows] == [c.pmid for c in CITATIONS]
    for c, row in zip(CITATIONS, rows, strict=True):
        assert row["abstract"] == c.abstract or row["abstract"] == f"'{c.abstract}"
        assert row["authors"].removeprefix("'") == "; ".join(map(in_line, c.authors))
        assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values())


def test_hostile_title_cannot_start_another_record(subtests: pytest.Subtests) -> None:
    evil = "x\nER  - \n\nTY  - JOUR\r\nPMID- 7\u2028@article{y,\x00}\n\nPMID- 8"
    counts = {
        "ris": lambda text: len(rispy.loads(text.replace("\r\n", "\n"))),
        "bibtex": lambda text: len(bibtexparser.parse_string(text).entries),
        "nbib": lambda text: len(list(Medline.parse(io.StringIO(text)))),
        "csl-json": lambda text: len(json.loads(text)),
        "csv": lambda text: len(list(csv.reader(io.StringIO(text)))) - 1,
    }
    for form in FORMATS:
        with subtests.test(form=form):
            two = [Citation(pmid=1, title=evil), Citation(pmid=2, title="b")]
            text = export_citations(two, form)
            assert counts[form](text) == 2
            assert not re.search(r"^(TY  - JOUR\r?\nPMID|PMID- [78])", text, re.M)


def test_parts_of_an_export_join_to_the_whole_file(subtests: pytest.Subtests) -> None:
    held = [Citation(pmid=n, title=f"Title {n}") for n in range(1, 6)]
    for form in FORMATS:
        for parts in ([], [held], [held[:2], held[2:3], held[3:]]):
            with subtests.test(form=form, parts=len(parts)):
                writer = PartWriter(form)
                text = "".join([*map(writer.write, parts), writer.end()])
                assert text == export_citations([c for part in parts for c in part], form)
