import gzip
from collections.abc import Sequence
from pathlib import Path

from cluster.storage.whole_files import sha256_of
from pipelines.indexing.staging.plan_build import BuildResult, refuse_damaged
from pipelines.indexing.staging.read_source import BATCH_CITATIONS, EXAMPLES, read_source
from pipelines.indexing.staging.stage_citations import ParsedSource, read_account, read_deletions
from tests.cluster.pubmed_sets import DOCTYPE, article
from tests.pipelines.staging import SPLITTER

BOOK = "<PubmedBookArticle><BookDocument><PMID>31</PMID></BookDocument></PubmedBookArticle>"
BAD_PMID = article(pmid="<PMID>twelve</PMID>")
DELETED = "<DeleteCitation><PMID>8</PMID><PMID>9</PMID></DeleteCitation>"


def numbered(pmid: int) -> str:
    return article(pmid=f"<PMID>{pmid}</PMID>", inside=f"<ArticleTitle>T{pmid}</ArticleTitle>")


def xml(records: Sequence[str]) -> bytes:
    return f"{DOCTYPE}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()


def read(path: Path, data: bytes) -> tuple[list[list[int]], ParsedSource]:
    """Return the PMIDs of each table, and the account."""
    path.write_bytes(data)
    staging = path.parent / "staging"
    tables = [t.column("pmid").to_pylist() for t in read_source(path, staging, SPLITTER)]
    account = read_account(staging)
    assert account is not None
    return tables, account


def test_citations_are_read_in_bounded_batches(tmp_path: Path) -> None:
    count = 2 * BATCH_CITATIONS + 3
    tables, account = read(tmp_path / "n1.xml", xml([numbered(p + 1) for p in range(count)]))
    assert [len(t) for t in tables] == [BATCH_CITATIONS, BATCH_CITATIONS, 3]
    assert [pmid for t in tables for pmid in t] == list(range(1, count + 1))
    assert (account.read, account.kept, account.error) == (count, count, "")
    tables, account = read(tmp_path / "n2.xml", xml([]))
    assert (tables, account.read, account.error) == ([[]], 0, "")


def test_staged_citations_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "n1.xml"
    path.write_bytes(xml([numbered(p + 1) for p in range(10)]))
    tables = read_source(path, tmp_path / "staging", SPLITTER, ["0-3", "6-6"])
    assert [pmid for t in tables for pmid in t.column("pmid").to_pylist()] == [5, 6, 8, 9, 10]
    account = read_account(tmp_path / "staging")
    assert account is not None
    assert (account.read, account.kept) == (10, 10)


def test_account_records_the_file_identity(tmp_path: Path) -> None:
    path = tmp_path / "n1.xml.gz"
    _, account = read(path, gzip.compress(xml([numbered(1)])))
    found = path.stat()
    assert account.name == "n1.xml.gz"
    assert (account.bytes, account.modified_ns) == (found.st_size, found.st_mtime_ns)
    assert account.sha256 == sha256_of(path)


def test_dropped_records_are_counted_and_deletions_kept(tmp_path: Path) -> None:
    _, account = read(tmp_path / "n1.xml", xml([numbered(1), BOOK, BAD_PMID, BOOK, DELETED]))
    assert account.dropped == {"book": 2, "bad-pmid": 1}
    assert (account.read, account.kept, account.deletions) == (6, 1, 2)
    assert [e.split(": ")[:2] for e in account.examples] == [
        ["n1.xml, record 1", "book"],
        ["n1.xml, record 2", "bad-pmid"],
        ["n1.xml, record 3", "book"],
    ]
    assert read_deletions(tmp_path / "staging").to_pylist() == [
        {"pmid": 8, "position": 4, "version": 0},
        {"pmid": 9, "position": 5, "version": 0},
    ]


def test_unreadable_record_is_skipped_and_reported(tmp_path: Path) -> None:
    records = [
        *([BOOK] * (EXAMPLES + 1)),
        numbered(1),
        numbered(2).replace("T2", "\0"),
        numbered(3),
    ]
    tables, account = read(tmp_path / "n1.xml", xml(records))
    assert tables == [[1, 3]]
    assert account.dropped == {"book": EXAMPLES + 1, "damaged": 1}
    assert (len(account.examples), account.error) == (EXAMPLES, "")
    (place,) = account.damaged
    assert place.startswith("n1.xml, PMID 2, bytes ")
    refused = refuse_damaged(account)
    assert refused.error.startswith("n1.xml, PMID 2, bytes ")
    assert BuildResult(None, (account,)).damaged == (place,)
    assert BuildResult(None, (refused,)).failed == (refused,)


def test_truncated_gzip_is_recorded_without_an_exception(tmp_path: Path) -> None:
    packed = gzip.compress(xml([numbered(p + 1) for p in range(2000)]))
    tables, account = read(tmp_path / "n1.xml.gz", packed[: len(packed) // 2])
    assert "n1.xml.gz: damaged or truncated after" in account.error
    assert account.sha256 == ""
    assert account.kept >= sum(map(len, tables))
