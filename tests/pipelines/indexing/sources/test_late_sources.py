"""A file applied after later ones gives the same index as in the right order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import InputError
from cluster.index.manifest import Manifest
from pipelines.indexing.sources.late_sources import files_of, later_deleting, order_of
from tests.pipelines.histories import File, SmallIndex, deletes, live, name_of, version_of
from tests.pipelines.indexing.shards.test_update_shard import counts

pytestmark = pytest.mark.nightly

FIRST: File = [(1, "aspirin"), (2, "warfarin"), (3, "heparin")]
PMIDS = range(1, 8)


def apply_late(index: SmallIndex, number: int, files: list[File]) -> Manifest:
    """Apply file `number` of `files` to an index of the others."""
    before, applied = index.manifest, index.applied
    deleting = {
        name: np.array([(p, version_of(t)) for p, t in files[int(name[9:13]) - 1] if deletes(t)])
        for name in later_deleting(before, name_of(number))
    }
    order = order_of(before, [name_of(number)], deleting)
    index.applied = number - 1
    manifest = index.update([files[number - 1]], order=order)
    index.applied = applied
    return manifest


def built_without(folder: Path, files: list[File], left_out: int) -> SmallIndex:
    index = SmallIndex(folder)
    index.build(files[:1])
    for number in range(2, len(files) + 1):
        if number == left_out:
            index.applied += 1
        else:
            index.update(files[number - 1 : number])
    return index


def check(folder: Path, files: list[File], late: int) -> None:
    index = built_without(folder / "late", files, late)
    manifest = apply_late(index, late, files)
    whole = built_without(folder / "whole", files, 0)
    found = {pmid: f.citation for pmid, f in index.citations(PMIDS).items()}
    assert found == live(files)
    assert counts(index) == counts(whole)
    assert manifest.last_source == name_of(max(len(files), late))
    assert index.update([[(1, "the last")]]).citations == len({*live(files), 1})


EVENT = st.tuples(st.integers(1, 5), st.sampled_from([None, "a", "b", "v2 c", "-v1", "-v2"]))
FILES = st.lists(st.lists(EVENT, min_size=1, max_size=4), min_size=2, max_size=4)


def check_drawn(folder: Path, files: list[File], data: st.DataObject) -> None:
    check(folder, [FIRST, *files], late=data.draw(st.integers(2, len(files) + 1)))


@pytest.mark.durability
@settings(max_examples=8)
@given(FILES, st.data())
def test_any_file_of_a_history_can_be_late(
    tmp_path_factory: pytest.TempPathFactory, files: list[File], data: st.DataObject
) -> None:
    check_drawn(tmp_path_factory.mktemp("late"), files, data)


@settings(max_examples=30)
@given(FILES, st.data())
def test_any_file_of_many_histories_can_be_late(
    tmp_path_factory: pytest.TempPathFactory, files: list[File], data: st.DataObject
) -> None:
    check_drawn(tmp_path_factory.mktemp("late"), files, data)


@pytest.mark.durability
def test_late_file_requires_later_files_with_deletions(tmp_path: Path) -> None:
    index = built_without(tmp_path, [FIRST, [(1, "late")], [(2, None)]], 2)
    names = later_deleting(index.manifest, name_of(2))
    assert names == [name_of(3)]
    with pytest.raises(InputError, match=rf"^{name_of(2)}: .*deletions of {name_of(3)}"):
        files_of(names, [tmp_path / name_of(2)], name_of(2))
