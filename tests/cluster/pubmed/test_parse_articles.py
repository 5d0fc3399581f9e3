"""Files and streams of records: deletions, rejects, breaks, hostile input, bounded memory."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import pytest

from cluster.errors import SourceError
from cluster.pubmed.parse_articles import Record, parse_stream, read_records
from cluster.pubmed.read_chunks import MAX_BYTES
from cluster.pubmed.split_records import MAX_RECORD_BYTES
from cluster.records import Citation, Deletion, Rejected
from tests.cluster.pubmed_sets import abstract, article, parse, parse_one, reject_one


def read_until_error(data: bytes, max_bytes: int = MAX_BYTES) -> tuple[list[Record], SourceError]:
    """The records yielded before the SourceError that must come, and the error."""
    records: list[Record] = []
    with pytest.raises(SourceError) as caught:
        records.extend(parse_stream(io.BytesIO(data), "set.xml", max_bytes=max_bytes))
    return records, caught.value


# --- deletions, books and records that cannot be kept


def test_every_pmid_of_delete_citation_is_a_deletion() -> None:
    deleted = "<DeleteCitation><PMID>8</PMID><PMID>x</PMID><PMID>9</PMID></DeleteCitation>"
    records = parse(article(), deleted)
    assert records[1] == Deletion(8, "set.xml", 1)
    assert isinstance(records[2], Rejected)
    assert records[2].reason == "bad-pmid"
    assert records[3] == Deletion(9, "set.xml", 3)


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
def test_a_malformed_record_is_rejected_and_the_rest_goes_on(record: str, reason: str) -> None:
    rejected = reject_one(record)
    assert rejected.reason == reason
    if reason in ("book", "no-title"):
        assert "12" in rejected.detail or "ArticleTitle" in rejected.detail


def test_unknown_elements_after_the_last_record_are_counted() -> None:
    assert parse() == []
    alone = parse_stream(io.BytesIO(article().encode()), "one.xml")
    assert [type(r) for r in alone] == [Citation]
    records = parse(article(), "<Extra/>", "<Extra/>")
    assert [type(r) for r in records] == [Citation, Rejected, Rejected]
    assert [(r.source, r.position) for r in records] == [("set.xml", n) for n in (0, 1, 2)]


@pytest.mark.parametrize("outside", [article(after="{}"), "<Wrapper>{}</Wrapper>"])
def test_record_inside_another_element_is_refused_in_strict_mode(outside: str) -> None:
    with pytest.raises(SourceError, match="after 1 records, at line 4"):
        parse(article(), outside.replace("{}", article(pmid="<PMID>99</PMID>")))


# --- files that break


def long_set(count: int) -> bytes:
    """Several reads long, so that errors come both with and without records before them."""
    filler = abstract(f"<AbstractText>{'word ' * 400}</AbstractText>")
    records = (article(f"<PMID>{n + 1}</PMID>", filler) for n in range(count))
    return ("<PubmedArticleSet>" + "\n".join(records) + "</PubmedArticleSet>").encode()


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.999])
def test_xml_that_ends_early_yields_every_whole_record_first(cut: float) -> None:
    data = long_set(100)
    data = data[: int(len(data) * cut)]
    records, error = read_until_error(data)
    assert len(records) == data.count(b"</PubmedArticle>")
    assert f"{len(records)} records" in str(error)
    assert str(error).startswith("set.xml: not well-formed XML")


def test_a_syntax_error_yields_every_record_before_it() -> None:
    data = long_set(100).replace(b"<PMID>61</PMID>", b"<PMID>61</PMUD>")
    records, error = read_until_error(data)
    assert len(records) == 60
    assert "line 61" in str(error)
    assert "download it again" in str(error)


def test_truncated_or_damaged_gzip_yields_what_could_be_read(tmp_path: Path) -> None:
    packed = gzip.compress(long_set(3000))
    half = len(packed) // 2
    path = tmp_path / "cut.xml.gz"
    path.write_bytes(packed[:half])
    records: list[Record] = []
    with pytest.raises(SourceError, match=r"cut\.xml\.gz.*truncated"):
        records.extend(read_records(path))
    assert len(records) > 500
    path.write_bytes(packed[:half] + bytes([packed[half] ^ 0xFF]) + packed[half + 1 :])
    with pytest.raises(SourceError):
        list(read_records(path))


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
def test_what_is_no_pubmed_file_is_one_clear_error(data: bytes, says: str) -> None:
    records, error = read_until_error(data)
    assert records == []
    assert says in str(error)
    assert "download it again" in str(error)


def test_a_missing_file_is_a_source_error_that_names_the_path(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere\.xml.*check the path"):
        list(read_records(tmp_path / "nowhere.xml"))


def test_gzip_is_told_by_its_magic_and_may_have_several_members(tmp_path: Path) -> None:
    data = long_set(20)
    packed, plain = tmp_path / "a.xml", tmp_path / "b.xml.gz"
    packed.write_bytes(gzip.compress(data[:7000]) + gzip.compress(data[7000:]))
    plain.write_bytes(data)
    assert [len(list(read_records(path))) for path in (packed, plain)] == [20, 20]


def test_records_name_the_source_that_the_caller_gives(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(long_set(1))
    assert next(read_records(path)).source == "a.xml"
    assert next(read_records(path, "s3://bucket/a.xml")).source == "s3://bucket/a.xml"


# --- hostile files


def test_a_file_larger_than_max_bytes_stops_with_an_error(tmp_path: Path) -> None:
    data = long_set(200)
    records, error = read_until_error(data, max_bytes=len(data) // 2)
    assert 0 < len(records) < 200
    assert "max_bytes" in str(error)
    assert len(list(parse_stream(io.BytesIO(data), "s", max_bytes=len(data)))) == 200


class Endless(io.RawIOBase):
    """A set whose first record never ends."""

    def __init__(self, filler: bytes) -> None:
        self._parts = self._read(filler)
        self.given = 0

    def _read(self, filler: bytes) -> Iterator[bytes]:
        yield b"<PubmedArticleSet><PubmedArticle>"
        while True:
            yield filler

    def read(self, size: int = -1) -> bytes:
        part = next(self._parts)
        self.given += len(part)
        return part


@pytest.mark.parametrize("filler", [b"<a/>" * 8000, b"<a>" * 8000, b"x" * 32000, b" " * 32000])
def test_a_record_that_never_ends_is_given_up(filler: bytes) -> None:
    stream = Endless(filler)
    with pytest.raises(SourceError):
        list(parse_stream(cast(IO[bytes], stream), "set.xml"))
    assert stream.given <= MAX_RECORD_BYTES + 2 * len(filler)


def test_entity_bombs_are_refused() -> None:
    levels = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
    doctype = f'<!DOCTYPE PubmedArticleSet [<!ENTITY e0 "ha">{levels}]>'
    with pytest.raises(SourceError, match=r"entities|amplification"):
        parse(article(inside="<ArticleTitle>&e12;</ArticleTitle>"), doctype=doctype)


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    doctype = f'<!DOCTYPE PubmedArticleSet [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    with pytest.raises(SourceError) as caught:
        parse(article(inside="<ArticleTitle>&x;</ArticleTitle>"), doctype=doctype)
    assert "secret<" not in str(caught.value)
    assert "declares entities" in str(caught.value)


def test_an_external_dtd_is_not_read(tmp_path: Path) -> None:
    dtd = tmp_path / "own.dtd"
    dtd.write_text('<!ENTITY own "from the DTD">')
    doctype = f'<!DOCTYPE PubmedArticleSet SYSTEM "{dtd.as_uri()}">'
    (record,) = parse(article(inside="<ArticleTitle>&own;</ArticleTitle>"), doctype=doctype)
    assert isinstance(record, Citation)
    assert record.title == "&own;"


def test_nesting_beyond_reason_is_an_error_and_not_a_crash() -> None:
    deep = "<i>" * 100_000 + "</i>" * 100_000
    with pytest.raises(SourceError, match="depth"):
        parse(article(inside=f"<ArticleTitle>{deep}</ArticleTitle>"))
    deep = "<i>" * 200 + "deep" + "</i>" * 200
    assert parse_one(inside=f"<ArticleTitle>{deep}</ArticleTitle>").title == "deep"


def write_set(path: Path, count: int) -> Path:
    filler = abstract(f"<AbstractText>{'word ' * 100}</AbstractText>")
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("<PubmedArticleSet>")
        for n in range(count):
            file.write(article(f"<PMID>{n + 1}</PMID>", filler) + "\n<Stray/>\n")
        file.write("</PubmedArticleSet>")
    return path


PEAK_OF_PROCESS = """
import resource, sys
from pathlib import Path
from cluster.pubmed.parse_articles import read_records
count = sum(1 for _ in read_records(Path(sys.argv[1])))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def process_peak(path: Path) -> int:
    """Peak KiB of a fresh process that reads a file: libxml2's trees are not Python's memory."""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", PEAK_OF_PROCESS, str(path)],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[1])


@pytest.mark.process
def test_memory_of_the_process_does_not_grow_with_the_number_of_records(tmp_path: Path) -> None:
    small = process_peak(write_set(tmp_path / "small.xml.gz", 1_000))
    large = process_peak(write_set(tmp_path / "large.xml.gz", 20_000))
    # 19,000 records more of 700 bytes are 13 MB of XML, and several times that as a tree.
    assert large < small + 8 * 1024
