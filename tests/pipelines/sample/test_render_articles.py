from dataclasses import replace
from pathlib import Path

import Bio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from cluster.records import (
    Author,
    Chemical,
    Citation,
    Deletion,
    Link,
    MeshHeading,
    OtherAbstract,
    Section,
)
from pipelines.sample.render_articles import render_articles
from pipelines.sample.render_citation import BookChapter, strip_inline
from tests.cluster.test_records import FULL

# NLM's DTD, from Biopython.
DTD = Path(Bio.__file__).parent / "Entrez/DTDs/pubmed_250101.dtd"

BOOK = BookChapter(7, "Chapter", "Book", "Publisher", 2020, "Text.")


def words(minimum: int = 1) -> st.SearchStrategy[str]:
    """Return text that is valid in XML, with white space as the parser normalises it."""
    letters = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Co", "Zs"])
    return st.lists(st.text(letters, min_size=1, max_size=8), min_size=minimum, max_size=5).map(
        " ".join
    )


def many(of: st.SearchStrategy) -> st.SearchStrategy[tuple]:
    return st.lists(of, max_size=3).map(tuple)


names = st.sampled_from(["", "Doe", "O'Ødegård & Söhne", "12 Suppl <1>", "e12-9; S1"])
authors = st.builds(Author, names, names, names, names).filter(lambda a: a != Author())
sections = many(st.builds(Section, words(0), words()))
dates = st.one_of(
    st.just((None, None)), st.tuples(st.integers(1500, 2099), st.none() | st.integers(1, 12))
)
citations = st.builds(
    lambda date, titles, **fields: Citation(
        year=date[0], month=date[1], journal=titles[0], journal_abbreviation=titles[1], **fields
    ),
    dates,
    # The parser uses the abbreviation of a journal without a title.
    st.one_of(st.just(("", "")), st.tuples(words(), names)),
    pmid=st.integers(1, 999_999_999),
    version=st.integers(1, 99),
    title=words(0),
    sections=sections,
    other_abstracts=many(st.builds(OtherAbstract, words(), words(), sections)),
    authors=many(authors),
    volume=names,
    issue=names,
    pages=names,
    languages=many(words()),
    publication_types=many(words()),
    mesh=many(st.builds(MeshHeading, words(), words(), st.booleans())),
    chemicals=many(st.builds(Chemical, words(), words())),
    keywords=many(words()),
    doi=words(0),
    pmcid=words(0),
    references=st.lists(st.integers(1, 999_999_999), max_size=3, unique=True).map(tuple),
    links=many(st.builds(Link, words(), st.none() | st.integers(1, 999_999_999), words(0))),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(st.lists(citations, min_size=1, max_size=3))
def test_every_field_survives_a_round_trip(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("round") / "trip.xml"
    render_articles(written, path)
    expected = [
        replace(citation, source="trip.xml", position=position)
        for position, citation in enumerate(written)
    ]
    assert list(read_records(path)) == expected


def test_rendered_records_are_valid_by_the_nlm_dtd(tmp_path):
    path = tmp_path / "a.xml"
    assert render_articles([FULL, BOOK, Deletion(5, "", 0)], path, note="a note") == 3
    dtd = etree.DTD(str(DTD))
    dtd.validate(etree.parse(str(path)))
    assert not dtd.error_log


def test_inline_markup_becomes_elements_and_is_parsed_as_plain_text(tmp_path):
    marked = "<i>TP53</i><sub>2</sub>, <b>a <sup>b</sup></b> & P<0.05"
    plain = "TP532, a b & P<0.05"
    assert strip_inline(marked) == plain
    path = tmp_path / "a.xml"
    render_articles([Citation(1, title=plain)], path, inline={plain: marked})
    title = etree.parse(str(path)).find(".//ArticleTitle")
    assert [element.tag for element in title.iter()] == ["ArticleTitle", "i", "sub", "b", "sup"]
    assert next(iter(read_records(path))).title == plain
    # No white space is added between adjacent tags.
    assert b"<ArticleTitle><i>TP53</i><sub>2</sub>, " in path.read_bytes()


@pytest.mark.parametrize("marked", ["<i>ab", "ab</i>", "<i>a<b>b</i></b>"])
def test_unpaired_inline_tag_is_refused(tmp_path, marked):
    with pytest.raises(InputError, match="pair the inline tags"):
        render_articles([Citation(1, title="ab")], tmp_path / "a.xml", inline={"ab": marked})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"month": 3}, "PMID 12: month 3 without a year"),
        ({"year": 2020, "month": 0}, "PMID 12: month 0 is not one of 1 to 12"),
        ({"year": 2020, "month": 13}, "PMID 12: month 13 is not one of 1 to 12"),
        ({"title": "a\x00b"}, r"PMID 12: .*control characters"),
    ],
)
def test_text_invalid_in_xml_is_refused_with_its_pmid(tmp_path, fields, said):
    with pytest.raises(InputError, match=said):
        render_articles([Citation(12, **fields)], tmp_path / "a.xml")


def test_failed_render_keeps_the_previous_file(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("old")
    with pytest.raises(InputError):
        render_articles([FULL, Citation(12, month=3)], path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.xml"]
    assert path.read_text() == "old"
