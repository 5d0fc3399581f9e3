"""Files that decompress to gigabytes are refused or read in bounded memory."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cluster.pubmed.split_records import MAX_RECORD_BYTES
from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.hostile.cpu_time import cpu_within
from tests.hostile.hostile_sets import (
    BLOCK,
    check_sentence,
    outcome,
    read_in_fresh_process,
    set_of,
    write_gzip,
)

pytestmark = pytest.mark.nightly

GIGABYTE = 1024**3
TITLE = "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>"
# A record is kept in memory until it ends or exceeds its limit.
FLAT_MIB = 200

GIGABYTES = {
    "a text": (TITLE, b"x" * BLOCK),
    "an attribute": ("<PubmedArticleSet><PubmedArticle a='", b"x" * BLOCK),
    "a name": ("<PubmedArticleSet><P", b"x" * BLOCK),
    "a comment": ("<PubmedArticleSet><!--", b"x" * BLOCK),
    "character data": ("<PubmedArticleSet><PubmedArticle><![CDATA[", b"x" * BLOCK),
    "space": ("<PubmedArticleSet>", b" " * BLOCK),
    "space before the root": (DOCTYPE, b" " * BLOCK),
    "the subset of a DTD": ("<!DOCTYPE PubmedArticleSet [", b" " * BLOCK),
    "comments": ("<PubmedArticleSet>", b"<!---->\n" * (BLOCK // 8)),
    "NUL bytes": ("<PubmedArticleSet>", b"\0" * BLOCK),
}


@pytest.mark.parametrize(("before", "block"), GIGABYTES.values(), ids=GIGABYTES)
def test_gigabyte_in_one_element_is_refused_in_the_memory_of_one_record(
    tmp_path: Path, before: str, block: bytes
) -> None:
    path = write_gzip(tmp_path / "bomb.xml.gz", before, block, GIGABYTE // BLOCK + 1, "")
    assert path.stat().st_size < 20 * 1024**2
    reading = read_in_fresh_process([path])
    check_sentence(reading.sentence, "bomb.xml.gz: ")
    assert reading.records == 0
    assert reading.peak_mib < FLAT_MIB


@pytest.mark.parametrize("block", [b"<a/>", b"&a;", b'<a b=""/>', b"<a>b</a>"])
def test_gigabyte_of_small_elements_is_refused_in_the_memory_of_one_record(
    tmp_path: Path, block: bytes
) -> None:
    # libxml2 allocates 120 bytes per element.
    opening = f"{DOCTYPE}<PubmedArticleSet><PubmedArticle>"
    whole = block * (BLOCK // len(block))
    path = write_gzip(tmp_path / "bomb.xml.gz", opening, whole, GIGABYTE // BLOCK + 1, "")
    reading = read_in_fresh_process([path])
    assert f"is larger than {MAX_RECORD_BYTES} bytes, the limit" in reading.sentence
    assert reading.peak_mib < 1300


def test_gigabyte_of_long_records_is_read_in_the_memory_of_one_record(tmp_path: Path) -> None:
    huge = article(inside=f"<ArticleTitle>{'x' * 2 * BLOCK}</ArticleTitle>").encode()
    path = write_gzip(
        tmp_path / "long.xml.gz", "<PubmedArticleSet>", huge, 128, f"{article()}</PubmedArticleSet>"
    )
    reading = read_in_fresh_process([path])
    assert (reading.records, reading.sentence) == (129, "")
    assert reading.peak_mib < FLAT_MIB


def test_long_names_of_headings_and_chemicals_are_freed(tmp_path: Path) -> None:
    path = tmp_path / "headings.xml.gz"
    lists = (
        "<ChemicalList><Chemical><NameOfSubstance>{0}</NameOfSubstance></Chemical></ChemicalList>"
        "<MeshHeadingList><MeshHeading><DescriptorName>{0}</DescriptorName></MeshHeading>"
        "</MeshHeadingList>"
    )
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("<PubmedArticleSet>")
        for number in range(60):
            file.write(article(after=lists.format(f"{number}{'z' * BLOCK}")))
        file.write("</PubmedArticleSet>")
    assert read_in_fresh_process([path]).peak_mib < FLAT_MIB


@pytest.mark.parametrize(
    "part",
    [
        "<OtherAbstract><AbstractText>x</AbstractText></OtherAbstract>",
        "<KeywordList><Keyword>x</Keyword></KeywordList>",
        "<CommentsCorrectionsList><CommentsCorrections/></CommentsCorrectionsList>",
        "<Article><ArticleTitle>x</ArticleTitle></Article>",
    ],
)
def test_many_parts_are_read_in_linear_time(part: str) -> None:
    data = set_of(article(after=part * (8 * 1024**2 // len(part))))
    with cpu_within(15):
        records, sentence = outcome(data)
    assert (len(records), sentence) == (1, "")
