"""Unreadable records are skipped and reported by position and PMID."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from cluster.errors import SourceError
from cluster.pubmed import split_records
from cluster.pubmed.parse_articles import Record, parse_stream
from cluster.pubmed.skipped_records import MAX_DAMAGED
from cluster.pubmed.split_records import MAX_RECORD_BYTES, ByteBuffer, Extent, read_blocks
from cluster.records import Citation, Rejected
from tests.cluster.pubmed_sets import DOCTYPE, article


def lenient(data: bytes) -> list[Record]:
    return list(parse_stream(io.BytesIO(data), "set.xml", strict=False))


def small_set(records: Sequence[str], opening: str = DOCTYPE) -> bytes:
    return f"{opening}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()


def numbered(count: int) -> list[str]:
    return [article(f"<PMID>{n + 1}</PMID>") for n in range(count)]


def test_oversized_record_is_skipped() -> None:
    huge = article("<PMID>2</PMID>", f"<X>{'<a/>' * (MAX_RECORD_BYTES // 3)}</X>")
    first, damaged, last = lenient(small_set([*numbered(1), huge, article("<PMID>3</PMID>")]))
    assert isinstance(damaged, Rejected)
    assert (damaged.reason, damaged.position) == ("too-large", 1)
    assert damaged.detail.startswith("PMID 2, bytes ")
    assert damaged.detail.endswith(f": more than {MAX_RECORD_BYTES} bytes")
    assert [r.pmid for r in (first, last) if isinstance(r, Citation)] == [1, 3]


def test_start_tag_across_chunks_ends_an_oversized_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_records, "MAX_RECORD_BYTES", 1000)
    record = b"<PubmedArticle/>"
    data = b"<PubmedArticle>" + b"x" * 2000 + record + b"</PubmedArticleSet>"
    for cut in range(2015, 2015 + len(record)):
        buffer = ByteBuffer(iter([data[:cut], data[cut:]]))
        skipped, following = read_blocks(buffer, is_set=True, max_skipped=10_000)
        assert (skipped.extent, skipped.end) == (Extent.TOO_LARGE, 2015), cut
        assert following.data == record, cut


def test_declared_encoding_applies_after_damage() -> None:
    opening = '<?xml version="1.0" encoding="iso-8859-1"?>'
    records = [*numbered(2), article("<PMID>3</PMID>", "<ArticleTitle>Läuft</ArticleTitle>")]
    data = small_set(records, opening).decode().encode("iso-8859-1")
    _, damaged, last = lenient(data.replace(b"<PMID>2</PMID>", b"<PMID>2"))
    assert isinstance(damaged, Rejected)
    assert isinstance(last, Citation)
    assert last.title == "Läuft"


@pytest.mark.parametrize(
    "gone",
    [
        "<DeleteCitation><PMID>8</PMUD></DeleteCitation>",
        "<DeleteCitatiom><PMID>8</PMID></DeleteCitation>",
        "<DeleteCitation><PMID>8</PMID></DeleteCitatiom>",
    ],
)
def test_damaged_deletion_rejects_the_file(gone: str) -> None:
    with pytest.raises(SourceError, match="not well-formed XML after 2 records"):
        lenient(small_set([*numbered(2), gone, *numbered(1)]))


@pytest.mark.parametrize(
    "data",
    [
        small_set(numbered(2)) + b" trailing",
        b"<html><br></head></html>",
        small_set(numbered(2), '<!DOCTYPE PubmedArticleSet [<!ENTITY x "y">]>'),
        small_set([r.replace("</PMID>", "</PMUD>") for r in numbered(MAX_DAMAGED + 1)]),
    ],
)
def test_invalid_sets_are_rejected_in_lenient_mode(data: bytes) -> None:
    with pytest.raises(SourceError, match="download it again"):
        lenient(data)
