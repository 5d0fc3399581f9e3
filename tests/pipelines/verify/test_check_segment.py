"""Faulty rows of a segment are reported despite valid checksums."""

from __future__ import annotations

import shutil
from pathlib import Path

import faiss
import pyarrow as pa
import pytest

from cluster.index import vectors
from cluster.index.bm25 import Bm25Writer
from cluster.index.layout import (
    CITATIONS,
    PASSAGES,
    SUPERSEDES,
    TERMS,
    TOKENS,
    VECTORS,
    segment_directory,
    shard_of,
)
from cluster.index.manifest import read_manifest
from cluster.index.terms.bags import BAGS, BagWriter
from cluster.index.terms.term_table import TermCounter, write_terms
from cluster.index.write_segment import artefacts_of
from pipelines.indexing.publish_index import publish_terms
from pipelines.verify.verify_index import verify_index
from tests.pipelines.verify.built_index import (
    HERE,
    PMIDS,
    SEGMENT,
    alter,
    build_from,
    kinds,
    only,
    put,
    read_table,
    record,
    replace_segments,
    replaced,
    reseal,
    update_entry,
    update_manifest,
    write_source,
    write_table,
)
from tests.publish_manifest import publish

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("file", [CITATIONS, PASSAGES, VECTORS])
@pytest.mark.parametrize("quick", [False, True])
def test_artefact_of_another_format_is_reported(index: Path, file: str, quick: bool) -> None:
    (index / SEGMENT / file).write_bytes(b"ARROW1 and no more")
    reseal(index)
    finding = verify_index(index, quick=quick).findings[0]
    assert (finding.kind, finding.place) == ("unreadable", f"{SEGMENT}/{file}")


def test_unreadable_postings_and_columns_are_reported(index: Path) -> None:
    (index / SEGMENT / "bm25-passages/meta.json").write_text("{}")
    alter(index, CITATIONS, lambda t: t.drop_columns(["sections"]))
    found = {(f.kind, f.place) for f in verify_index(index).findings}
    assert found == {
        ("unreadable", f"{SEGMENT}/bm25-passages"),
        ("unreadable", f"{SEGMENT}/{CITATIONS}"),
    }


@pytest.mark.parametrize(("field", "file"), [("citations", CITATIONS), ("passages", PASSAGES)])
@pytest.mark.parametrize("quick", [False, True])
def test_wrong_segment_counts_are_reported(index: Path, field: str, file: str, quick: bool) -> None:
    held = getattr(read_manifest(index).shards[0].segments[0], field)
    update_entry(index, **{field: held + 1})
    finding = only(verify_index(index, quick=quick))
    assert (finding.kind, finding.place) == ("count", f"{SEGMENT}/{file}")
    assert finding.message == f"{held} {field} instead of the manifest's {held + 1}"


@pytest.mark.parametrize("side", ["citations", "passages"])
def test_wrong_term_counts_are_reported(index: Path, side: str) -> None:
    terms = dict(read_manifest(index).shards[0].segments[0].terms)
    update_entry(index, terms={**terms, side: terms[side] - 1})
    finding = only(verify_index(index))
    assert (finding.kind, finding.place) == ("terms", str(SEGMENT))
    assert f"{terms[side]} terms of {side}" in finding.message


def test_missing_bm25_side_is_reported(index: Path) -> None:
    update_manifest(index, bm25_over=("citations",))
    assert kinds(verify_index(index)) == {"bm25"}


def test_swapped_shards_are_reported(index: Path) -> None:
    manifest = read_manifest(index)
    folders = [index / segment_directory(shard, "first") for shard in (0, 1)]
    folders[0].rename(index / "aside")
    folders[1].rename(folders[0])
    (index / "aside").rename(folders[1])
    publish(index, manifest.model_copy(update={"shards": manifest.shards[::-1]}))
    found = verify_index(index, quick=True)
    assert [(f.kind, f.place) for f in found.findings] == [
        ("wrong-shard", f"{segment_directory(shard, 'first')}/{CITATIONS}") for shard in (0, 1)
    ]
    assert found.findings[1].pmids == tuple(HERE[:20])


@pytest.mark.parametrize("quick", [False, True])
def test_pmid_in_the_wrong_shard_is_reported(index: Path, quick: bool) -> None:
    stray = next(p for p in range(41, 99) if shard_of(p, 2) == 1)
    alter(index, CITATIONS, lambda t: replaced(t, "pmid", put(-1, stray)))
    finding = only(verify_index(index, quick=quick))
    assert (finding.kind, finding.pmids) == ("wrong-shard", (stray,))


def test_unsorted_pmids_are_reported(index: Path) -> None:
    alter(index, CITATIONS, lambda t: replaced(t, "pmid", put(1, HERE[0])))
    found = verify_index(index)
    assert kinds(found) == {"order", "twice"}
    assert {finding.pmids for finding in found.findings} == {(HERE[0],)}


def test_added_row_is_reported_by_every_check(index: Path) -> None:
    more = next(p for p in range(41, 99) if shard_of(p, 2) == 0)

    def add(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, replaced(table.slice(0, 1), "pmid", put(0, more))])

    alter(index, CITATIONS, add)
    found = verify_index(index)
    assert kinds(found) == {"count", "bm25", "filters", "span", "terms"}
    assert {f.pmids for f in found.findings if f.kind in ("bm25", "span")} == {(more,)}


@pytest.mark.parametrize(("lost", "named"), [(2, 1), (3, 2)])
@pytest.mark.parametrize("quick", [False, True])
def test_missing_vectors_are_reported(index: Path, lost: int, named: int, quick: bool) -> None:
    path = index / SEGMENT / VECTORS
    held = vectors.load(path)
    stored = faiss.downcast_index(held.storage).reconstruct_n(0, held.ntotal)
    fewer = vectors.empty_index("flat", held.d, 8, 32)
    fewer.add(stored[:-lost])
    vectors.save(fewer, path)
    reseal(index)
    finding = only(verify_index(index, quick=quick))
    assert (finding.kind, finding.pmids) == ("vectors", tuple(HERE[-named:]))
    encoder = read_manifest(index).encoder.model_copy(update={"dimensions": 8})
    update_manifest(index, encoder=encoder)
    messages = [f.message for f in verify_index(index, quick=quick).findings]
    assert "vectors of 64 dimensions instead of the manifest's 8" in messages


def rewrite_postings(index: Path, side: str, rows: int, *, shift: int = 0) -> None:
    """Write postings of `rows` documents that begin at row `shift`."""
    directory = index / SEGMENT / f"bm25-{side}"
    shutil.rmtree(directory)
    writer = Bm25Writer(directory)
    writer._rows = shift
    for _ in range(rows):
        writer.add("any text")
    writer.close()
    reseal(index)


@pytest.mark.parametrize("quick", [False, True])
def test_missing_postings_are_reported(index: Path, quick: bool) -> None:
    rewrite_postings(index, "citations", len(HERE) - 1)
    finding = only(verify_index(index, quick=quick))
    assert (finding.kind, finding.place) == ("bm25", f"{SEGMENT}/bm25-citations")
    assert finding.message == f"{len(HERE) - 1} documents for {len(HERE)} citations"
    assert finding.pmids == (() if quick else (HERE[-1],))


def test_citation_without_passage_postings_is_reported(index: Path) -> None:
    rewrite_postings(index, "passages", 2 * len(HERE), shift=3)
    postings, bags = verify_index(index).findings
    assert (postings.place, postings.pmids) == (f"{SEGMENT}/bm25-passages", tuple(HERE[:2]))
    # The bags were counted from other texts.
    assert bags.place == f"{SEGMENT}/bm25-passages/{BAGS}"
    assert bags.message == f"{2 * len(HERE)} passages have not the terms that their texts have"


def test_missing_bags_are_reported(index: Path) -> None:
    writer = BagWriter(index / SEGMENT / "bm25-citations")
    writer.add(["fever"])
    writer.close()
    reseal(index)
    finding = only(verify_index(index, quick=True))
    assert finding.message == f"1 bags of terms for {len(HERE)} citations"


@pytest.mark.parametrize(("row", "value"), [(0, 7), (3, 10_000)])
@pytest.mark.parametrize("quick", [False, True])
def test_unsorted_passages_are_reported(index: Path, row: int, value: int, quick: bool) -> None:
    alter(index, PASSAGES, lambda t: replaced(t, "citation_row", put(row, value)))
    found = verify_index(index, quick=quick)
    assert ("order", f"{SEGMENT}/{PASSAGES}") in {(f.kind, f.place) for f in found.findings}


@pytest.mark.parametrize(("column", "value"), [("end", 4000), ("begin", 99), ("section", 2)])
def test_span_outside_its_text_is_reported(index: Path, column: str, value: int) -> None:
    alter(index, PASSAGES, lambda t: replaced(t, column, put(0, value)))
    spans = [f for f in verify_index(index).findings if f.kind == "span"]
    assert [(f.place, f.pmids) for f in spans] == [(f"{SEGMENT}/{PASSAGES}", (HERE[0],))]


def test_text_without_a_passage_is_reported(index: Path) -> None:
    alter(index, PASSAGES, lambda t: t.slice(2))
    found = verify_index(index)
    assert (HERE[0],) in [f.pmids for f in found.findings if f.kind == "span"]


def add_segment(index: Path, tmp_path: Path, *supersedes: int) -> None:
    """Add a second segment to shard 0, with a new record of its first PMID."""
    source = write_source(tmp_path / "n2.xml.gz", record(HERE[0], "Another text."))
    newer = build_from(tmp_path / "newer", [source]).shards[0].segments[0]
    directory = index / segment_directory(0, "second")
    shutil.copytree(tmp_path / "newer" / SEGMENT, directory)
    if supersedes:
        write_table(directory / SUPERSEDES, pa.table({"pmid": supersedes}))
    newer = newer.model_copy(update={"id": "second", "artefacts": artefacts_of(directory)})
    changed = replace_segments(index, read_manifest(index).shards[0].segments[0], newer)
    held = [(n, s) for n, shard in enumerate(changed.shards) for s in shard.segments]
    update_manifest(index, terms=publish_terms(index, changed.version, (), held))


def test_pmid_live_in_two_segments_is_reported(index: Path, tmp_path: Path) -> None:
    add_segment(index, tmp_path)
    found = verify_index(index, quick=True)
    twice = next(f for f in found.findings if f.kind == "twice")
    assert (twice.place, twice.pmids) == ("segments/0000", (HERE[0],))


def test_superseded_pmid_of_another_shard_is_reported(index: Path, tmp_path: Path) -> None:
    other = next(p for p in PMIDS if p not in HERE)
    add_segment(index, tmp_path, HERE[0], other)
    found = verify_index(index, quick=True)
    stray = next(f for f in found.findings if f.kind == "wrong-shard")
    assert (stray.place, stray.pmids) == (f"segments/0000/second/{SUPERSEDES}", (other,))


def test_passage_without_tokens_is_reported(index: Path) -> None:
    def none_of_the_first(table: pa.Table) -> pa.Table:
        ends = table["token_end"].to_numpy()
        return replaced(table, "token_end", lambda _: pa.array(ends - ends[0], pa.uint64()))

    first = int(read_table(index / SEGMENT / PASSAGES)["token_end"][0].as_py())
    codes = (index / SEGMENT / TOKENS).read_bytes()
    (index / SEGMENT / TOKENS).write_bytes(codes[16 * first :])
    alter(index, PASSAGES, none_of_the_first)
    finding = next(f for f in verify_index(index, quick=True).findings if f.kind == "tokens")
    assert (finding.message, finding.pmids) == ("1 passages without a token", (HERE[0],))


def test_counts_of_absent_terms_are_reported(index: Path) -> None:
    counter = TermCounter()
    counter.add("citations", ["fever"])
    write_terms(counter.table().to_batches(), index / SEGMENT / TERMS)
    reseal(index)
    places = {f.place for f in verify_index(index).findings if f.kind == "terms"}
    # The counts of the segment and those of the version, which are sums over segments.
    assert places == {f"{SEGMENT}/{TERMS}", "versions/v000001.json"}
