"""Well-formed but absurd records are kept or rejected with a reason."""

from __future__ import annotations

import pytest

from cluster.pubmed.parse_citation import MAX_CHARACTERS
from cluster.records import Author, Citation, Rejected
from tests.cluster.pubmed_sets import abstract, article, parse_one
from tests.hostile.cpu_time import cpu_within
from tests.hostile.hostile_sets import outcome, set_of


def kept(*records: str) -> list[Citation]:
    found, sentence = outcome(set_of(*records))
    assert sentence == ""
    return [record for record in found if isinstance(record, Citation)]


def test_invalid_pmid_rejects_only_its_record(subtests: pytest.Subtests) -> None:
    pmids = ["-1", "0", "1e3", "1.0", "1 2", "+5", "1_000", "9" * 10, "9" * 1_000_000, "\u0663", ""]
    for pmid in pmids:
        for number in (f"<PMID>{pmid}</PMID>", f'<PMID Version="{pmid}">5</PMID>'):
            with subtests.test(number[:40]):
                (rejected, after), sentence = outcome(set_of(article(number), article()))
                assert sentence == ""
                assert isinstance(rejected, Rejected)
                assert isinstance(after, Citation)


@pytest.mark.parametrize(
    ("date", "found"),
    [
        ("<Year>2001</Year><Month>13</Month>", (2001, None)),
        ("<Year>2001</Year><Month>-3</Month>", (2001, None)),
        ("<Year>99999</Year><Month>Mai</Month>", (None, None)),
        (f"<Year>{'2' * 100_000}</Year><Month>{'1' * 100_000}</Month>", (None, None)),
        ("<MedlineDate>\u0662\u0660\u0660\u0661 Jan</MedlineDate>", (None, 1)),
        ("<Year>&x;</Year>&x;<Month><Month>3</Month></Month>", (None, 3)),
    ],
)
def test_impossible_dates_are_none(date: str, found: tuple[int | None, int | None]) -> None:
    journal = f"<Journal><JournalIssue><PubDate>{date}</PubDate></JournalIssue></Journal>"
    citation = parse_one(inside=f"{journal}<ArticleTitle>T</ArticleTitle>")
    assert (citation.year, citation.month) == found


def test_empty_elements_make_an_empty_citation() -> None:
    def empty(names: str) -> str:
        return "".join(f"<{name}/>" for name in names.split())

    inside = "ArticleTitle Journal ELocationID Abstract PublicationTypeList Language AuthorList"
    after = "MedlineJournalInfo ChemicalList CommentsCorrectionsList MeshHeadingList OtherAbstract"
    data = empty("ArticleIdList ReferenceList History")
    after = empty(f"{after} KeywordList")
    (citation,) = kept(article(inside=empty(inside), after=after, data=data))
    assert (citation.title, citation.sections, citation.journal) == ("", (), "")
    assert citation.other_abstracts[0].sections == ()


def test_misplaced_elements_are_ignored() -> None:
    odd = "<PMID>9</PMID><?pi x?><!-- c --><Odd a='b'>text</Odd>&x;text"
    lists = ("ChemicalList", "CommentsCorrectionsList", "MeshHeadingList", "KeywordList")
    after = "".join(f"<{name}>{odd}</{name}>" for name in lists)
    (citation,) = kept(article(inside=f"{odd}<ArticleTitle>T</ArticleTitle>{odd}", after=after))
    assert (citation.pmid, citation.title) == (1, "T")
    assert (citation.mesh, citation.links, citation.keywords, citation.chemicals) == ((),) * 4


def test_text_skips_comments_and_processing_instructions() -> None:
    title = "a<!-- <b> --><?pi &?><![CDATA[<script>&amp;]]><i><!-- - -->c</i><?x?>d"
    (citation,) = kept(article(inside=f"<ArticleTitle>{title}</ArticleTitle>"))
    assert citation.title == "a<script>&amp;cd"


def test_record_with_many_elements_is_read_quickly() -> None:
    count = 50_000
    authors = "<Author><LastName>X</LastName><Initials>Y</Initials></Author>" * count
    headings = "<MeshHeading><DescriptorName UI='D1'>N</DescriptorName></MeshHeading>" * count
    keywords = "<Keyword>k</Keyword>" * count
    inside = f"<ArticleTitle/><AuthorList>{authors}</AuthorList>"
    after = f"<MeshHeadingList>{headings}</MeshHeadingList><KeywordList>{keywords}</KeywordList>"
    with cpu_within(10):
        (citation,) = kept(article(inside=inside, after=after))
    assert citation.authors == (Author("X", "", "Y"),) * count
    assert (len(citation.mesh), len(citation.keywords)) == (count, count)


def test_text_over_the_limit_rejects_the_record() -> None:
    fits, too_long = (
        article("<PMID>5</PMID>", abstract(f"<AbstractText>{'x' * size}</AbstractText>"))
        for size in (MAX_CHARACTERS - 10, MAX_CHARACTERS)
    )
    (first, second, third), sentence = outcome(set_of(fits, too_long, article()))
    assert sentence == ""
    assert isinstance(first, Citation)
    assert isinstance(second, Rejected)
    assert second.reason == "too-long"
    assert "PMID 5: 500" in second.detail
    assert isinstance(third, Citation)


@pytest.mark.parametrize(
    "field",
    [
        "<Article><AuthorList><Author><LastName>{}</LastName></Author></AuthorList></Article>",
        "<OtherAbstract Language='{}'/>",
        "<Article><Pagination><StartPage>{}</StartPage></Pagination></Article>",
        "<Article><Journal><ISOAbbreviation>{}</ISOAbbreviation></Journal></Article>",
        "<Article><Journal><JournalIssue><Volume>{}</Volume></JournalIssue></Journal></Article>",
        "<Article><Journal><JournalIssue><Issue>{}</Issue></JournalIssue></Journal></Article>",
        "<KeywordList><Keyword>{}</Keyword></KeywordList>",
        "<MeshHeadingList><MeshHeading><DescriptorName UI='{}'/></MeshHeading></MeshHeadingList>",
        "<ChemicalList><NameOfSubstance>{}</NameOfSubstance></ChemicalList>",
        "<CommentsCorrectionsList><CommentsCorrections RefType='{}'/></CommentsCorrectionsList>",
    ],
)
def test_every_text_field_counts_towards_the_limit(field: str) -> None:
    (record,), _ = outcome(set_of(article(after=field.format("x" * MAX_CHARACTERS))))
    assert isinstance(record, Rejected)
    assert record.reason == "too-long"


def test_long_names_are_truncated_in_errors() -> None:
    long = "r" * 40_000
    for data in (
        f"<{long}/>".encode(),
        set_of(f"<{long}/>"),
        set_of(f"<{long}></b>"),
        set_of(f"<a {long}='1' {long}='1'/>"),
        set_of(f"<PubmedBookArticle><BookDocument><PMID>{long}</PMID></BookDocument>"
               "</PubmedBookArticle>"),
    ):  # fmt: skip
        outcome(data)
