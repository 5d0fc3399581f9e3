"""Parsing of files: deletions, rejected records, syntax errors and size limits."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from cluster.errors import SourceError
from cluster.pubmed.parse_articles import Record, parse_stream, read_records
from cluster.pubmed.read_chunks import MAX_BYTES
from cluster.records import Deletion, Rejected
from tests.cluster.pubmed_sets import abstract, article, parse, reject_one


def read_until_error(data: bytes, max_bytes: int = MAX_BYTES) -> tuple[list[Record], SourceError]:
    """Return the records before the expected SourceError, and the error."""
    records: list[Record] = []
    with pytest.raises(SourceError) as caught:
        records.extend(parse_stream(io.BytesIO(data), "set.xml", max_bytes=max_bytes))
    return records, caught.value


def test_delete_citation_yields_a_deletion_per_pmid() -> None:
    pmids = '<PMID>8</PMID><PMID>x</PMID><PMID Version="1">9</PMID><PMID Version="2">10</PMID>'
    records = parse(article(), f"<DeleteCitation>{pmids}</DeleteCitation>")
    assert records[1] == Deletion(8, "set.xml", 1, version=0)
    assert isinstance(records[2], Rejected)
    assert records[2].reason == "bad-pmid"
    assert records[3:] == [Deletion(9, "set.xml", 3, 1), Deletion(10, "set.xml", 4, 2)]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ("<PubmedArticle/>", "no-pmid"),
        ("<PubmedArticle><MedlineCitation/></PubmedArticle>", "no-pmid"),
        (article(pmid=""), "no-pmid"),
        (article(pmid="<PMID/>"), "bad-pmid"),
        (article(pmid="<PMID>0</PMID>"), "bad-pmid"),
        (article(pmid="<PMID>12a</PMID>"), "bad-pmid"),
        (article(pmid="<PMID>\u0661\u0662</PMID>"), "bad-pmid"),
        (article(pmid=f"<PMID>{'9' * 5000}</PMID>"), "bad-pmid"),
        (article(pmid='<PMID Version="two">12</PMID>'), "bad-version"),
        (
            "<PubmedArticle><MedlineCitation><PMID>12</PMID></MedlineCitation></PubmedArticle>",
            "no-article",
        ),
        (article(inside=""), "no-title"),
        ("<PubmedArticel><PMID>1</PMID></PubmedArticel>", "unknown-element"),
        (
            "<PubmedBookArticle><BookDocument><PMID>12</PMID></BookDocument></PubmedBookArticle>",
            "book",
        ),
    ],
)
def test_malformed_record_is_rejected_and_parsing_continues(record: str, reason: str) -> None:
    rejected = reject_one(record)
    assert rejected.reason == reason
    if reason in ("book", "no-title"):
        assert "12" in rejected.detail or "ArticleTitle" in rejected.detail


@pytest.mark.parametrize("outside", [article(after="{}"), "<Wrapper>{}</Wrapper>"])
def test_nested_record_is_rejected_in_strict_mode(outside: str) -> None:
    with pytest.raises(SourceError, match="after 1 records, at line 4"):
        parse(article(), outside.replace("{}", article(pmid="<PMID>99</PMID>")))


def long_set(count: int) -> bytes:
    """A set that is longer than several reads of the parser."""
    filler = abstract(f"<AbstractText>{'word ' * 400}</AbstractText>")
    records = (article(f"<PMID>{n + 1}</PMID>", filler) for n in range(count))
    return ("<PubmedArticleSet>" + "\n".join(records) + "</PubmedArticleSet>").encode()


def test_syntax_error_follows_every_record_before_it() -> None:
    data = long_set(100).replace(b"<PMID>61</PMID>", b"<PMID>61</PMUD>")
    records, error = read_until_error(data)
    assert len(records) == 60
    assert "line 61" in str(error)
    assert "download it again" in str(error)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\x00\x01\x02 not xml", "not well-formed"),
        (b"<html><head><br></head><body>503</body></html>", "root element is html"),
        (b"<html><body/></html>", "root element is html"),
        (b'<PubmedArticleSet xmlns="urn:x"/>', "not PubmedArticleSet"),
        (b"<PubmedBookArticleSet/>", "not PubmedArticleSet"),
        (b"<PubmedArticleSet>\xff\xfe</PubmedArticleSet>", "not well-formed"),
        (b"<PubmedArticleSet/> trailing", "not well-formed"),
    ],
)
def test_other_files_are_rejected(data: bytes, says: str) -> None:
    records, error = read_until_error(data)
    assert records == []
    assert says in str(error)
    assert "download it again" in str(error)


def test_missing_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.xml.*check the path"):
        list(read_records(tmp_path / "nowhere.xml"))


def test_gzip_is_detected_by_magic_bytes(tmp_path: Path) -> None:
    data = long_set(20)
    packed, plain = tmp_path / "a.xml", tmp_path / "b.xml.gz"
    packed.write_bytes(gzip.compress(data[:7000]) + gzip.compress(data[7000:]))
    plain.write_bytes(data)
    assert [len(list(read_records(path))) for path in (packed, plain)] == [20, 20]


def test_max_bytes_limits_a_file() -> None:
    data = long_set(200)
    records, error = read_until_error(data, max_bytes=len(data) // 2)
    assert 0 < len(records) < 200
    assert "when decompressed" in str(error)
    assert len(list(parse_stream(io.BytesIO(data), "s", max_bytes=len(data)))) == 200
