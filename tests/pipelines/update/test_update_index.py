import os
from pathlib import Path

import pytest

from cluster.errors import CiteRayError, IndexFormatError, InputError
from cluster.index.layout import VECTORS, bm25_directory, segment_directory, shard_of
from cluster.index.lease import hold_lease
from cluster.index.manifest import read_manifest
from cluster.index.terms.collection import CollectionTerms
from cluster.settings.settings import load_settings
from pipelines.build.plan_build import quantiser_of
from pipelines.build.publish_index import publish_update
from pipelines.update.update_index import applicable, check_settings
from pipelines.vocabulary.give_names import NO_NAMES
from tests.pipelines.histories import File, SmallIndex, lengths, name_of
from tests.pipelines.staging import account
from tests.small_index import citation, make_index

pytestmark = pytest.mark.slow

FIRST: File = [(1, "aspirin"), (2, "warfarin"), (3, "heparin")]


def built(folder: Path, *runs: File, shards: int = 1, vectors: str = "flat") -> SmallIndex:
    """A build of the first file and an update with each of the others."""
    index = SmallIndex(folder, vectors, shards)
    index.build(runs[:1])
    for events in runs[1:]:
        index.update([events])
    return index


def titles(index: SmallIndex, pmids: range = range(1, 6)) -> dict[int, str]:
    return {pmid: found.citation.title for pmid, found in index.citations(pmids).items()}


def counts(index: SmallIndex) -> tuple[int, int, int]:
    """Live, superseded, deleted."""
    assert index.manifest is not None
    manifest = index.manifest
    return manifest.citations, manifest.superseded, manifest.deleted


def test_a_revision_takes_the_place_of_what_it_revises(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(2, "dabigatran")])
    assert titles(index) == {1: "aspirin", 2: "dabigatran", 3: "heparin"}
    assert counts(index) == (3, 1, 0)


def test_a_deletion_stays_until_a_later_record_revives_the_pmid(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(2, None)])
    assert titles(index) == {1: "aspirin", 3: "heparin"}
    assert counts(index) == (2, 0, 1)
    index.update([[(5, "statins")]])
    assert 2 not in titles(index)
    index.update([[(2, "revived")]])
    assert titles(index)[2] == "revived"
    assert counts(index) == (4, 1, 0)


def test_a_second_deletion_of_a_pmid_counts_once(tmp_path: Path) -> None:
    assert counts(built(tmp_path, FIRST, [(2, None)], [(2, None)])) == (2, 0, 1)


def test_a_revived_pmid_that_is_deleted_again_counts_as_deleted(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(2, None)], [(2, "revived")], [(2, None)])
    assert 2 not in titles(index)
    assert counts(index) == (2, 1, 1)


def test_a_lower_version_replaces_nothing_in_its_file_or_in_a_later_one(tmp_path: Path) -> None:
    index = built(tmp_path, [(1, "v2 aspirin"), (1, "aspirin"), (2, "v2 iron")], [(2, "iron")])
    assert titles(index) == {1: "v2 aspirin", 2: "v2 iron"}
    assert counts(index) == (2, 2, 0)
    index.update([[(2, "v2 iron, revised"), (1, "v3 aspirin")]])
    assert titles(index) == {1: "v3 aspirin", 2: "v2 iron, revised"}


def test_a_deletion_removes_the_version_that_it_names_and_no_other(tmp_path: Path) -> None:
    index = built(tmp_path, [(1, "v2 aspirin"), (2, "v2 iron"), (1, "-v1")], [(2, "-v1")])
    assert titles(index) == {1: "v2 aspirin", 2: "v2 iron"}
    assert counts(index) == (2, 0, 0)
    index.update([[(2, "-v2"), (1, None)]])
    assert titles(index) == {}


def test_a_deletion_before_any_record_of_the_pmid_removes_nothing(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(4, None)])
    assert counts(index) == (3, 0, 0)
    index.update([[(4, "late")]])
    assert titles(index)[4] == "late"


@pytest.mark.parametrize(
    ("events", "found"),
    [([(4, "new"), (4, None)], None), ([(4, None), (4, "new")], "new"), ([(2, None)], None)],
)
def test_within_a_file_the_position_decides(
    tmp_path: Path, events: File, found: str | None
) -> None:
    index = built(tmp_path, FIRST, events)
    assert titles(index).get(events[0][0]) == found


def test_a_pmid_that_came_and_went_between_two_versions_counts_as_deleted(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(4, "new"), (4, None)])
    assert counts(index) == (3, 0, 1)
    index.update([[(4, "again")]])
    assert counts(index) == (4, 1, 0)


def test_a_shard_that_nothing_touches_keeps_its_segments(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, shards=4)
    before = index.manifest
    after = index.update([[(2, "dabigatran"), (99, None)]])
    assert before is not None
    grown = [a != b for a, b in zip(after.shards, before.shards, strict=True)]
    assert grown == [shard == shard_of(2, 4) for shard in range(4)]


def test_an_update_that_changes_nothing_is_published_with_its_sources(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST, [(99, None)])
    assert index.manifest is not None
    assert len(index.manifest.segments) == 1
    assert index.manifest.last_source == name_of(2)


@pytest.mark.parametrize("over", ["citations", "passages"])
def test_dead_citations_count_in_no_statistic(tmp_path: Path, over: str) -> None:
    index = built(tmp_path / "a", FIRST, [(2, "heparin heparin"), (3, None)])
    fresh = built(tmp_path / "b", [(1, "aspirin"), (2, "heparin heparin")])
    terms = ["warfarin", "heparin", "aspirin", "trial", "absent"]
    assert index.manifest is not None
    assert fresh.manifest is not None
    assert [r.frequencies(terms, over) for r in index.readers()] == [
        r.frequencies(terms, over) for r in fresh.readers()
    ]
    assert lengths(index.manifest, over) == lengths(fresh.manifest, over)
    told = [
        CollectionTerms.open(i.path, m).statistics(terms, over)
        for i, m in ((index, index.manifest), (fresh, fresh.manifest))
    ]
    assert told[0] == told[1]
    assert told[0].frequencies == index.readers()[0].frequencies(terms, over)


@pytest.mark.slow
def test_an_update_pays_for_its_own_terms_and_a_version_names_few_files(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(3000)]
    index = built(tmp_path, [(1, " ".join(words))])
    for number in range(12):
        index.update([[(10 + number, f"fresh{number} aspirin")]])
        assert index.manifest is not None
        assert len(index.manifest.terms) <= 4
        # The terms of the build are written once.
        assert index.manifest.terms[0].version == "v000001"
    collection = CollectionTerms.open(tmp_path, index.manifest)
    found = collection.statistics(["aspirin", "fresh11", "word7"], "citations").frequencies
    assert found == {"aspirin": 12, "fresh11": 1, "word7": 1}


def test_of_older_segments_neither_vectors_nor_postings_are_read(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    assert index.manifest is not None
    [segment] = index.manifest.segments
    directory = tmp_path / segment_directory(0, segment.id)
    for path in (directory / VECTORS, directory / bm25_directory("citations") / "meta.json"):
        path.unlink()
    assert index.update([[(2, "dabigatran")]]).citations == 3


def test_a_rerun_after_a_crash_before_publishing_keeps_what_is_whole(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    index.update([[(2, "dabigatran")]], crash_after=1)
    assert read_manifest(tmp_path) == index.manifest
    written = {p: p.stat().st_mtime_ns for p in (tmp_path / "segments").rglob("*") if p.is_file()}
    index.update([[(2, "dabigatran")]])
    assert {
        p: p.stat().st_mtime_ns for p in (tmp_path / "segments").rglob("*") if p.is_file()
    } == written


def test_a_version_published_meanwhile_is_not_lost(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    stale = index.manifest
    index.update([[(2, "dabigatran")]])
    assert stale is not None
    vocabulary = index.settings.vocabulary
    with (
        hold_lease(tmp_path, "update") as lease,
        pytest.raises(CiteRayError, match="v000002 was published while this ran on top of v000001"),
    ):
        publish_update(lease, stale, vocabulary, NO_NAMES, [account("n", 0)], [None])
    assert read_manifest(tmp_path) == index.manifest


def test_a_failed_source_is_named_until_it_is_applied(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    assert index.manifest is not None
    told = [account(name_of(2), 0), account(name_of(3), 0, error="truncated")]
    vocabulary = index.settings.vocabulary
    with hold_lease(tmp_path, "update") as lease:
        first = publish_update(lease, index.manifest, vocabulary, NO_NAMES, told, [None])
    assert first.failed_sources == (name_of(3),)
    assert first.last_source == name_of(2)
    with hold_lease(tmp_path, "update") as lease:
        second = publish_update(
            lease, first, vocabulary, NO_NAMES, [account(name_of(3), 0)], [None]
        )
    assert (second.failed_sources, second.last_source) == ((), name_of(3))


def test_sources_after_one_that_failed_must_wait_for_it() -> None:
    told = [account("n1", 1), account("n2", 0, error="n2: truncated"), account("n3", 1)]
    assert [a.name for a in applicable(told)] == ["n1"]


def test_a_setting_that_must_stay_is_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, subtests: pytest.Subtests
) -> None:
    for override in [
        "index.shards=3",
        "index.vectors=fp16",
        "index.bm25_over=[citations]",
        "split.method=sentences",
        "split.size=100",
        "split.overlap=0",
        "encoder.max_tokens=12",
    ]:
        with subtests.test(override=override):
            tmp_path = tmp_path_factory.mktemp("case")
            manifest = make_index(tmp_path, [citation(1, "one")])
            same = ["index.vectors=flat", "encoder.max_tokens=256"]
            check_settings(manifest, load_settings(overrides=same), manifest.encoder.sha256)
            with pytest.raises(InputError, match=override.split("=")[0]):
                check_settings(manifest, load_settings(overrides=[*same, override]), "")


def test_another_encoder_is_refused_by_its_checksum(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, [citation(1, "one")])
    same = load_settings(overrides=["index.vectors=flat", "encoder.max_tokens=256"])
    with pytest.raises(InputError, match=r"encoder\.model test \(\) \(now .*abcdef\)"):
        check_settings(manifest, same, "abcdef")


def test_terms_of_another_analyser_are_refused(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, [citation(1, "one")])
    other = manifest.model_copy(update={"analyser": "latin-0"})
    with pytest.raises(IndexFormatError, match="made by latin-0"):
        check_settings(other, load_settings(), "")


def test_a_damaged_quantiser_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path, FIRST)
    assert index.manifest is not None
    path = quantiser_of(tmp_path, index.manifest)
    os.truncate(path, 10)
    with pytest.raises(IndexFormatError, match="quantiser-"):
        quantiser_of(tmp_path, index.manifest)
