"""Authors and pages of a Citation."""

from __future__ import annotations

import pytest

from cluster.records import MORE_AUTHORS, Author
from tests.cluster.pubmed_sets import parse_one

TITLE = "<ArticleTitle>T</ArticleTitle>"


def person(last: str = "", fore: str = "", initials: str = "", suffix: str = "") -> str:
    names = {"LastName": last, "ForeName": fore, "Initials": initials, "Suffix": suffix}
    return "".join(f"<{tag}>{text}</{tag}>" for tag, text in names.items() if text)


def authors_of(*authors: str) -> tuple[Author, ...]:
    listed = "".join(f'<Author ValidYN="Y">{author}</Author>' for author in authors)
    return parse_one(inside=f'{TITLE}<AuthorList CompleteYN="Y">{listed}</AuthorList>').authors


NAMELESS = "<AffiliationInfo><Affiliation>Town</Affiliation></AffiliationInfo>"


@pytest.mark.parametrize(
    ("authors", "found"),
    [
        (
            (person("Zhang", "Wei", "W"), person("Abel", "Ann B", "AB"), person("Zhang", "Wei")),
            (Author("Zhang", "Wei", "W"), Author("Abel", "Ann B", "AB"), Author("Zhang", "Wei")),
        ),
        (
            (person("A", "B", "B"), "<CollectiveName>ABC Group</CollectiveName>", person("C")),
            (Author("A", "B", "B"), Author(collective="ABC Group"), Author("C")),
        ),
        ((person("Smith", initials="J"),), (Author("Smith", "", "J"),)),
        (
            (person("King", "Martin Luther", "ML", "Jr"), person("Roe", suffix="3rd")),
            (Author("King", "Martin Luther Jr", "ML Jr"), Author("Roe", "3rd", "3rd")),
        ),
        (
            (f'{person("Doe", "Jo", "J")}<Identifier Source="ORCID">0</Identifier>{NAMELESS}',),
            (Author("Doe", "Jo", "J"),),
        ),
        (("", "<LastName/>", NAMELESS, person("Doe")), (Author("Doe"),)),
    ],
    ids=["people", "a group", "initials alone", "suffixes", "affiliation", "nameless"],
)
def test_authors_are_parsed_in_order(authors: tuple[str, ...], found: tuple[Author, ...]) -> None:
    assert authors_of(*authors) == found


def test_invalid_author_names_are_skipped() -> None:
    inside = (
        f'{TITLE}<AuthorList><Author ValidYN="N">{person("Smiht", "J", "J")}</Author>'
        f'<Author ValidYN="Y">{person("Smith", "J", "J")}</Author>'
        f"<Author>{person('Doe', 'D', 'D')}</Author></AuthorList>"
    )
    found = parse_one(inside=inside).authors
    assert found == (Author("Smith", "J", "J"), Author("Doe", "D", "D"))


def test_incomplete_author_list_ends_with_et_al() -> None:
    for listed in (f"<Author>{person('Doe')}</Author>", ""):
        inside = f'{TITLE}<AuthorList CompleteYN="N">{listed}</AuthorList>'
        assert parse_one(inside=inside).authors == ((Author("Doe"), MORE_AUTHORS) if listed else ())


def test_doi_is_stored_without_resolver() -> None:
    for prefix in ("https://doi.org/", "http://dx.doi.org/", "DOI: ", ""):
        placed = f'{TITLE}<ELocationID EIdType="doi">{prefix}10.1/doi:X</ELocationID>'
        listed = (
            f'<ArticleIdList><ArticleId IdType="doi">{prefix}10.1/doi:X</ArticleId></ArticleIdList>'
        )
        assert parse_one(inside=placed).doi == parse_one(data=listed).doi == "10.1/doi:X"


def test_author_names_keep_text_of_markup_and_entities() -> None:
    group = "<CollectiveName>CO<sub>2</sub> &amp; <i>H.&#xa0;pylori</i> Group</CollectiveName>"
    people = (person("Müller", "Zo&eacute;", "Z"), person("O'&#x10D;a", " J\n P ", "JP"))
    assert authors_of(*people, group) == (
        Author("Müller", "Zo\u00e9", "Z"),
        Author("O'\u010da", "J P", "JP"),
        Author(collective="CO2 & H.\u00a0pylori Group"),
    )


PII = '<ELocationID EIdType="pii" ValidYN="Y">e0123</ELocationID>'
WRONG = '<ELocationID EIdType="pii" ValidYN="N">e9</ELocationID>'
DOI = '<ELocationID EIdType="doi" ValidYN="Y">10.1/x</ELocationID>'


@pytest.mark.parametrize(
    ("xml", "pages"),
    [
        ("<Pagination><MedlinePgn>2327-36</MedlinePgn></Pagination>", "2327-36"),
        ("<Pagination><StartPage>11</StartPage><EndPage>19</EndPage>"
         "<MedlinePgn>11-9</MedlinePgn></Pagination>", "11-9"),
        ("<Pagination><StartPage>11</StartPage><EndPage>19</EndPage></Pagination>", "11-19"),
        ("<Pagination><StartPage>11</StartPage><EndPage>19</EndPage><MedlinePgn/></Pagination>",
         "11-19"),
        ("<Pagination><StartPage>11</StartPage></Pagination>", "11"),
        ("<Pagination><StartPage>11</StartPage><EndPage>11</EndPage></Pagination>", "11"),
        (f"<Pagination><MedlinePgn>S1-9; discussion S10</MedlinePgn></Pagination>{PII}",
         "S1-9; discussion S10"),
        (f"<Pagination><MedlinePgn/></Pagination>{DOI}{PII}", "e0123"),
        (f"{PII}<Pagination><MedlinePgn/></Pagination>", "e0123"),
        (f"{PII}<Pagination><MedlinePgn>4-5</MedlinePgn></Pagination>", "4-5"),
        (WRONG + PII + PII.replace("0123", "4"), "e0123"),
        (WRONG + DOI, ""),
        ("<Pagination/>", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_pages_fall_back_to_the_article_number(xml: str, pages: str) -> None:
    assert parse_one(inside=TITLE + xml).pages == pages
