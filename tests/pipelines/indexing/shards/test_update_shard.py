import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from cluster.arrow_records import CITATION_SCHEMA
from cluster.errors import CiteRayError, IndexFormatError, InputError
from cluster.index import write_segment
from cluster.index.layout import VECTORS, bm25_directory, segment_directory, shard_of
from cluster.index.lease import hold_lease
from cluster.index.manifest import SegmentEntry, read_manifest
from cluster.index.terms.collection import CollectionTerms
from cluster.settings.settings import load_settings
from cluster.storage.locations import StoredLocation
from pipelines.indexing.publish_index import publish_update
from pipelines.indexing.shards.update_shard import applicable, check_settings
from pipelines.indexing.staging.plan_build import quantiser_of
from pipelines.verify.verify_index import verify_index
from tests.faults.memory_store import MemoryStore
from tests.pipelines.histories import SMALL, File, SmallIndex, lengths, live, name_of
from tests.pipelines.staging import account
from tests.publish_manifest import publish
from tests.small_index import citation, make_index

pytestmark = pytest.mark.slow

FIRST: File = [(1, "aspirin"), (2, "warfarin"), (3, "heparin")]


def built(folder: Path, *runs: File, shards: int = 1, vectors: str = "flat") -> SmallIndex:
    """Return an index built from the first file and updated with each of the others."""
    index = SmallIndex(folder, vectors, shards)
    index.build(runs[:1])
    for events in runs[1:]:
        index.update([events])
    return index


def titles(index: SmallIndex) -> dict[int, str]:
    return {pmid: found.citation.title for pmid, found in index.citations(range(1, 6)).items()}


def counts(index: SmallIndex) -> tuple[int, int, int]:
    """Return the numbers of live, superseded and deleted citations."""
    return index.manifest.citations, index.manifest.superseded, index.manifest.deleted


def test_untouched_shard_keeps_its_segments(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, shards=4)
    before = index.manifest
    after = index.update([[(2, "dabigatran"), (99, None)]])
    grown = [a != b for a, b in zip(after.shards, before.shards, strict=True)]
    assert grown == [shard == shard_of(2, 4) for shard in range(4)]
    # An update without changes still publishes its sources.
    last = index.update([[(99, None)]])
    assert (last.shards, last.last_source) == (after.shards, name_of(3))


@pytest.mark.parametrize("over", ["citations", "passages"])
def test_dead_citations_are_excluded_from_statistics(tmp_path: Path, over: str) -> None:
    index = built(tmp_path / "a", FIRST, [(2, "heparin heparin"), (3, None)])
    fresh = built(tmp_path / "b", [(1, "aspirin"), (2, "heparin heparin")])
    terms = ["warfarin", "heparin", "aspirin", "trial", "absent"]
    own, expected = (i.readers()[0].frequencies(terms, over) for i in (index, fresh))
    assert own == expected
    assert lengths(index.manifest, over) == lengths(fresh.manifest, over)
    statistics = [
        CollectionTerms.open(i.path, i.manifest).statistics(terms, over) for i in (index, fresh)
    ]
    assert statistics[0] == statistics[1]
    assert statistics[0].frequencies == own


def test_term_files_are_merged_so_that_a_version_has_few(tmp_path: Path) -> None:
    index = built(tmp_path, [(1, " ".join(f"word{n}" for n in range(3000)))])
    for number in range(12):
        index.update([[(10 + number, f"fresh{number} aspirin")]])
        assert len(index.manifest.terms) <= 4
        # The terms of the build are not rewritten.
        assert index.manifest.terms[0].version == "v000001"
    collection = CollectionTerms.open(tmp_path, index.manifest)
    found = collection.statistics(["aspirin", "fresh11", "word7"], "citations").frequencies
    assert found == {"aspirin": 12, "fresh11": 1, "word7": 1}


def test_update_does_not_read_vectors_or_postings_of_older_segments(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    [segment] = index.manifest.segments
    directory = tmp_path / segment_directory(0, segment.id)
    for path in (directory / VECTORS, directory / bm25_directory("citations") / "meta.json"):
        path.unlink()
    assert index.update([[(2, "dabigatran")]]).citations == 3


def test_update_reads_at_most_ten_times_the_bytes_that_it_changes(tmp_path: Path) -> None:
    words = [f"{gene}{n} binds protein{n}" for gene in ("tp", "il", "mir") for n in range(40)]
    whole = [(pmid, " ".join(words[pmid % 97 :][:20])) for pmid in range(1, 1501)]
    revised = [(pmid, " ".join(words[pmid % 89 :][:20])) for pmid in range(7, 1500, 100)]
    store = MemoryStore()
    with store.in_place():
        location = StoredLocation.at("s3://bucket/index", tmp_path / "cache")
        index = SmallIndex(location, shards=1, overrides=SMALL)
        [before] = index.build([whole]).segments
        # A worker on another machine has no copies of the older segments.
        shutil.rmtree(tmp_path / "cache")
        read = store.bytes_read
        [_, added] = index.update([revised]).segments
        read = store.bytes_read - read
        found = index.citations([107, 108])
        assert {pmid: f.citation for pmid, f in found.items()} == {
            107: live([whole, revised])[107],
            108: live([whole, revised])[108],
        }
    assert added.dead.citations == len(revised)
    assert read <= 10 * size_of(added)
    assert read <= size_of(before) / 10


def size_of(segment: SegmentEntry) -> int:
    return sum(file.bytes for file in segment.artefacts.values())


def test_updates_and_compactions_keep_the_build_on_which_they_are_based(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(2, "dabigatran")])
    for manifest in (index.manifest, index.compact()):
        assert (manifest.build, manifest.build_sources) == ("built", 1)
    assert [len(m.sources) for m in (manifest, index.update([[(3, "iron")]]))] == [2, 3]


def test_rerun_after_a_crash_keeps_complete_segments(tmp_path: Path) -> None:
    def written() -> dict[Path, int]:
        files = (tmp_path / "segments").rglob("*")
        return {path: path.stat().st_mtime_ns for path in files if path.is_file()}

    index = built(tmp_path, FIRST)
    index.update([[(2, "dabigatran")]], crash_after=1)
    assert read_manifest(tmp_path) == index.manifest
    before = written()
    index.update([[(2, "dabigatran")]])
    assert written() == before


def test_version_published_concurrently_is_not_lost(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    stale = index.manifest
    index.update([[(2, "dabigatran")]])
    vocabulary = index.settings.vocabulary
    with (
        hold_lease(tmp_path, "update") as lease,
        pytest.raises(CiteRayError, match="v000002 was published while this ran on top of v000001"),
    ):
        publish_update(lease, stale, vocabulary, [account("n", 0)], [None])
    assert read_manifest(tmp_path) == index.manifest


def test_failed_source_is_listed_until_it_is_applied(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    accounts = [account(name_of(2), 0), account(name_of(3), 0, error="truncated")]
    vocabulary = index.settings.vocabulary
    with hold_lease(tmp_path, "update") as lease:
        first = publish_update(lease, index.manifest, vocabulary, accounts, [None])
    assert first.failed_sources == (name_of(3),)
    assert first.last_source == name_of(2)
    with hold_lease(tmp_path, "update") as lease:
        second = publish_update(lease, first, vocabulary, [account(name_of(3), 0)], [None])
    assert (second.failed_sources, second.last_source) == ((), name_of(3))


def test_sources_after_a_failed_one_are_not_applied() -> None:
    accounts = [account("n1", 1), account("n2", 0, error="n2: truncated"), account("n3", 1)]
    assert [a.name for a in applicable(accounts)] == ["n1"]


def test_changed_setting_is_refused_by_name(tmp_path: Path, subtests: pytest.Subtests) -> None:
    manifest = make_index(tmp_path, [citation(1, "one")])
    same = ["index.vectors=flat", "encoder.max_tokens=256"]
    check_settings(manifest, load_settings(overrides=same), manifest.encoder.sha256)
    for override in [
        "index.shards=3",
        "index.vectors=fp16",
        "index.bm25_over=[citations]",
        "split.method=sentences",
        "split.size=100",
        "split.overlap=0",
        "encoder.max_tokens=12",
    ]:
        with (
            subtests.test(override=override),
            pytest.raises(InputError, match=override.split("=")[0]),
        ):
            check_settings(manifest, load_settings(overrides=[*same, override]), "")
    with pytest.raises(InputError, match=r"encoder\.model test \(\) \(now .*abcdef\)"):
        check_settings(manifest, load_settings(overrides=same), "abcdef")
    other = manifest.model_copy(update={"analyser": "latin-0"})
    with pytest.raises(IndexFormatError, match="made by latin-0"):
        check_settings(other, load_settings(overrides=same), "")


def test_older_index_is_updated_and_compacted_with_its_analyser(tmp_path: Path) -> None:
    index = built(tmp_path, [(1, "aspirin"), (2, "iron")])
    # All analysers agree on these ASCII texts, so that this is an index of an older version.
    older = {"analyser": "simple-lower-english-stop-stem-1"}
    index.manifest = index.manifest.model_copy(update=older)
    publish(tmp_path, index.manifest)
    update: list[File] = [[(3, "sj\u00f6gren"), (2, "sj\u00f6gren and iron")]]
    for job in (lambda: index.update(update), index.compact):
        manifest = job()
        assert manifest.analyser == older["analyser"]
        assert verify_index(tmp_path).findings == ()
        terms = CollectionTerms.open(tmp_path, manifest)
        counts = terms.statistics(["sj\u00f6gren", "sjogren"], "citations").frequencies
        assert counts == {"sj\u00f6gren": 2, "sjogren": 0}


def test_index_without_references_is_updated_and_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = pa.schema([field for field in CITATION_SCHEMA if field.name != "references"])
    with monkeypatch.context() as patch:
        patch.setattr(write_segment, "CITATION_SCHEMA", older)
        index = built(tmp_path, [(1, "aspirin"), (2, "iron")], shards=1)
    index.update([[(3, "iron"), (2, "iron and aspirin")]])
    for job in (lambda: None, index.compact):
        job()
        (shard,) = index.readers()
        held = {pmid: shard.citation(pmid) for pmid in (1, 2, 3)}
        assert {pmid: c.references for pmid, c in held.items() if c} == {1: None, 2: (), 3: ()}
        assert verify_index(tmp_path).findings == ()


def test_damaged_quantiser_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    path = quantiser_of(tmp_path, index.manifest)
    os.truncate(path, 10)
    with pytest.raises(IndexFormatError, match="quantiser-"):
        quantiser_of(tmp_path, index.manifest)
