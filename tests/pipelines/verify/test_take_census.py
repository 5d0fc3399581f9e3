"""Comparison of source files and index: missing, extra and stale PMIDs."""

from __future__ import annotations

import gzip
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cluster.index.layout import CITATIONS, shard_of
from cluster.pubmed.parse_articles import Record, read_records
from pipelines.indexing.sources.find_sources import find_sources
from pipelines.verify import read_source_records
from pipelines.verify.check_segment import Rows
from pipelines.verify.note_findings import Finding
from pipelines.verify.take_census import CensusFiles, compare, split_by_shard
from pipelines.verify.verify_index import in_processes, verify_index
from tests.pipelines.verify.built_index import (
    SEGMENT,
    alter,
    build_from,
    deletion,
    put,
    record,
    replaced,
    write_source,
)

pytestmark = pytest.mark.slow

FILES = {
    "n1.xml.gz": [record(pmid, f"Protein {pmid}.") for pmid in range(1, 31)],
    "n2.xml.gz": [
        record(3, "Protein 3, revised."),
        deletion(4, 5),
        record(5, "Protein 5, back."),
        record(31, "Protein 31."),
    ],
    "n10.xml.gz": [record(3, "Protein 3, once more."), record(6, "Gone."), deletion(6, 99)],
}
NAMES = tuple(FILES)
REFERENCES = pa.list_(pa.int32())


def write_files(folder: Path, *names: str) -> list[Path]:
    return [write_source(folder / name, *FILES[name]) for name in names]


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with three source files and an index of them."""
    folder = tmp_path_factory.mktemp("census")
    build_from(folder / "index", write_files(folder / "sources", *NAMES))
    return folder


@pytest.fixture
def folder(complete: Path, tmp_path: Path) -> Path:
    for name in ("index", "sources"):
        shutil.copytree(complete / name, tmp_path / name)
    return tmp_path


def census(folder: Path, kind: str = "") -> list[Finding]:
    """Return the findings of a full census, optionally of one kind."""
    found = verify_index(folder / "index", find_sources([str(folder / "sources")]))
    return [f for f in found.findings if kind in ("", f.kind)]


def rebuild(folder: Path, *names: str) -> None:
    """Replace the index by one of the files `names`; all source files remain."""
    shutil.rmtree(folder / "index")
    build_from(folder / "index", write_files(folder / "again", *names))


def test_census_counts_revisions_deletions_and_revivals(complete: Path) -> None:
    found = verify_index(complete / "index", find_sources([str(complete / "sources")]))
    assert found.findings == ()
    assert (found.citations, found.sources) == (29, 3)


@pytest.mark.process
def test_parallel_verification_gives_the_same_result(folder: Path) -> None:
    shutil.rmtree(folder / "index" / SEGMENT)
    sources = find_sources([str(folder / "sources")])
    progress: list[tuple[str, int, int]] = []
    found = verify_index(
        folder / "index",
        sources,
        map_in_order=in_processes(2),
        report=lambda *event: progress.append(event),
    )
    assert found == verify_index(folder / "index", sources)
    of_sources = [("sources", number, 3) for number in (1, 2, 3)]
    assert progress == [*of_sources, ("shards", 1, 2), ("shards", 2, 2)]


def test_unindexed_file_is_reported_with_its_changes(folder: Path) -> None:
    rebuild(folder, "n1.xml.gz", "n10.xml.gz")
    findings = census(folder)
    assert [(f.kind, f.place) for f in findings] == [
        ("source", "n2.xml.gz"),
        ("missing", "census, n2.xml.gz (1)"),
        ("extra", "census, n1.xml.gz (1)"),
        ("stale", "census, n2.xml.gz (2)"),
    ]
    assert [f.pmids for f in findings] == [(), (31,), (4,), (3, 5)]
    assert findings[0].message == "not in the index"


def test_other_references_than_in_the_source_are_reported(folder: Path) -> None:
    def cite(table: pa.Table, unknown: bool = False) -> pa.Table:
        cited = [None if unknown else [11], *[[]] * (len(table) - 1)]
        place = table.column_names.index("references")
        return table.set_column(place, table.field(place), pa.array(cited, REFERENCES))

    held = alter(folder / "index", CITATIONS, cite)
    (finding,) = census(folder)
    assert (finding.kind, finding.pmids) == ("references", (held["pmid"][0].as_py(),))
    alter(folder / "index", CITATIONS, lambda table: cite(table, unknown=True))
    assert census(folder) == []
    alter(folder / "index", CITATIONS, lambda table: table.drop_columns("references"))
    assert census(folder) == []


@pytest.mark.parametrize("name", ["n1.xml.gz", "n2.xml.gz"])
def test_missing_source_is_reported_and_its_records_ignored(folder: Path, name: str) -> None:
    (folder / "sources" / name).unlink()
    (finding,) = census(folder)
    assert (finding.kind, finding.place) == ("source", name)
    assert "not among the files given" in finding.message


def test_later_file_reveals_stale_records_of_a_missing_source(folder: Path) -> None:
    rebuild(folder, "n1.xml.gz", "n2.xml.gz")
    (folder / "sources/n2.xml.gz").unlink()
    named = {f.kind: f.pmids for f in census(folder) if f.pmids}
    assert named == {"extra": (6,), "stale": (3,)}


def test_replaced_pmid_is_reported_as_extra_and_missing(folder: Path) -> None:
    held = alter(folder / "index", CITATIONS, lambda t: replaced(t, "pmid", put(0, 77)))
    assert [f.pmids for f in census(folder, "extra")] == [(77,)]
    assert [f.pmids for f in census(folder, "missing")] == [(held["pmid"][0].as_py(),)]


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("position", put(0, 11)),
        ("version", put(0, 2)),
        ("source", lambda values: ["else.xml", *values[1:]]),
    ],
)
def test_record_of_another_position_version_or_source_is_stale(
    folder: Path, column: str, change: Callable[[Any], Any]
) -> None:
    held = alter(folder / "index", CITATIONS, lambda t: replaced(t, column, change))
    (stale,) = census(folder)
    assert (stale.kind, stale.pmids) == ("stale", (held["pmid"][0].as_py(),))


def test_source_with_a_wrong_md5_is_reported(folder: Path) -> None:
    beside = folder / "sources/n2.xml.gz.md5"
    for text, said in (
        ("MD5(n2.xml.gz)= " + "0" * 32, f" where n2.xml.gz.md5 says {'0' * 32}"),
        ("<html>", "no checksum in n2.xml.gz.md5"),
    ):
        beside.write_text(text)
        (finding,) = census(folder)
        assert (finding.kind, finding.place) == ("source", "n2.xml.gz")
        assert finding.message.endswith(said)
    beside.unlink()
    assert census(folder) == []


def test_replaced_source_is_reported_with_its_differences(folder: Path) -> None:
    write_source(folder / "sources/n2.xml.gz", *FILES["n2.xml.gz"][:-1])
    sha, count, extra = census(folder)
    assert sha.message.startswith("sha256 ")
    assert count.message == "2 citations instead of the manifest's 3"
    assert (extra.kind, extra.pmids) == ("extra", (31,))


def test_truncated_source_is_reported_and_ignored(folder: Path) -> None:
    path = folder / "sources/n1.xml.gz"
    path.write_bytes(path.read_bytes()[:-40])
    path.with_name("n1.xml.gz.md5").unlink()
    sha, broken = census(folder)
    assert sha.message.startswith("sha256 ")
    assert broken.place == "n1.xml.gz"
    assert broken.message.startswith("damaged or truncated after ")


def test_dropped_records_are_counted_in_the_census(folder: Path) -> None:
    path = folder / "sources/n1.xml.gz"
    end = b"</PubmedArticleSet>"
    xml = gzip.decompress(path.read_bytes()).replace(end, b"<Odd/>" + end)
    path.write_bytes(gzip.compress(xml))
    path.with_name("n1.xml.gz.md5").unlink()
    assert census(folder)[-1].message == "1 dropped records instead of the manifest's 0"


def test_skipped_records_are_counted_by_tag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_some(path: Path, *, strict: bool) -> Iterator[Record]:
        records = list(read_records(path, strict=strict))
        yield from records[:10] + records[15:] if path.name == "n1.xml.gz" else records

    monkeypatch.setattr(read_source_records, "read_records", read_some)
    found = [f for f in census(folder, "source") if "tags" in f.message]
    assert [(f.place, f.message) for f in found] == [
        ("n1.xml.gz", "30 records counted by their tags, but 25 were read")
    ]


def versioned(pmid: int, version: int, text: str) -> str:
    return record(pmid, text).replace('Version="1"', f'Version="{version}"')


def test_census_agrees_with_the_index_on_versions_and_rejects(tmp_path: Path) -> None:
    first = [versioned(1, 2, "Two."), record(1, "One."), record(2, "Bad.").replace("Bad.", "\0")]
    second = [record(1, "One, revised."), versioned(3, 2, "Three."), deletion(3)]
    sources = [
        write_source(tmp_path / "sources/n1.xml.gz", *first, record(3, "Old.")),
        write_source(tmp_path / "sources/n2.xml.gz", *second),
    ]
    manifest = build_from(tmp_path / "index", sources)
    found = verify_index(tmp_path / "index", sources)
    assert found.findings == ()
    assert (found.citations, manifest.superseded, manifest.deleted) == (2, 3, 0)
    assert manifest.sources[0].dropped == {"damaged": 1}


def test_census_needs_few_bytes_per_record_on_the_driver(tmp_path: Path) -> None:
    shards, count = 4, 4000
    source = tmp_path / "n1.xml"
    write_source(source, *(record(pmid, "Protein.") for pmid in range(1, count + 1)))
    tracemalloc.start()
    try:
        read = read_source_records.read_source_records(source, None, shards)
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        files = CensusFiles(["n1.xml"], np.ones(2, bool), -1)
        parts = split_by_shard(files, [read], shards)
        peak = tracemalloc.get_traced_memory()[1] - kept
    finally:
        tracemalloc.stop()
    own = sum(values.nbytes for values in asdict(read.records).values())
    assert own <= 11 * count
    assert peak <= 16 * count
    # A shard that equals its sources has an empty result.
    pmids = np.arange(1, count + 1)
    pmids = pmids[[shard_of(pmid, shards) == 0 for pmid in pmids.tolist()]]
    ones, zeros = np.ones(len(pmids), np.int64), np.zeros(len(pmids), np.int64)
    found = compare(parts[0], Rows(pmids, ones, ones, zeros, pmids - 1, zeros), files)
    assert all(len(column) == 0 for pair in astuple(found) for column in pair)
