"""Which sources of an update are new, by name and content, and the notes on the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.index.manifest import Manifest
from pipelines.indexing.sources.given_sources import (
    copy_notes,
    find_copies,
    order_notes,
    sort_sources,
)
from pipelines.indexing.sources.late_sources import first_late, later_deleting
from tests.pipelines.staging import source_entry
from tests.small_index import citation, make_index


@pytest.fixture
def manifest(tmp_path: Path) -> Manifest:
    return make_index(tmp_path / "index", [citation(1, "one")])


def written(folder: Path, *names: str) -> list[Path]:
    """Return files whose content is their name, so that names of equal length have equal sizes."""
    paths = [folder / name for name in names]
    for path in paths:
        path.write_text(path.name)
    return paths


def holding(manifest: Manifest, *paths: Path) -> Manifest:
    return manifest.model_copy(update={"sources": tuple(map(source_entry, paths))})


def test_indexed_sources_are_not_new(manifest: Manifest, tmp_path: Path) -> None:
    one, two, three = written(tmp_path, "n1.xml", "n2.xml", "n3.xml")
    given = sort_sources(holding(manifest, one, three), [one, two, three])
    assert (given.new, given.held, given.copies) == ([two], [one, three], {})


def test_indexed_names_with_other_content_are_refused(manifest: Manifest, tmp_path: Path) -> None:
    held = written(tmp_path, "n1.xml", "n2.xml", "n3.xml")
    manifest = holding(manifest, *held)
    held[0].write_text("longer than before")
    held[2].write_text("n3.XML")
    with pytest.raises(InputError, match=r"n1\.xml, .*n3\.xml: the content is not .* new name"):
        sort_sources(manifest, [*held, *written(tmp_path, "n4.xml")])


def test_indexed_source_is_hashed_only_if_its_time_differs(
    manifest: Manifest, tmp_path: Path
) -> None:
    (path,) = written(tmp_path, "n1.xml")
    os.utime(path, ns=(5, 5))
    manifest = manifest.model_copy(update={"sources": (source_entry(path, modified_ns=5),)})
    path.write_text("n1.XML")
    os.utime(path, ns=(5, 5))
    assert sort_sources(manifest, [path]).held == [path]
    os.utime(path, ns=(6, 6))
    with pytest.raises(InputError, match=r"n1\.xml: the content"):
        sort_sources(manifest, [path])


def test_copy_under_another_name_is_skipped_and_reported(
    manifest: Manifest, tmp_path: Path
) -> None:
    march, april = written(tmp_path, "march.xml", "april.xml")
    copy, second = tmp_path / "april2.xml", tmp_path / "zmarch.xml"
    copy.write_text("april.xml")
    second.write_text("march.xml")
    given = sort_sources(holding(manifest, march), [april, copy, second])
    assert given.new == [april]
    assert given.copies == {copy: "april.xml", second: "march.xml"}
    assert copy_notes(given.copies)[1] == (
        f"{second}: left out, since its content is that of march.xml"
    )
    assert find_copies([march, april, second]) == {second: "march.xml"}


def test_indexed_file_with_other_compression_is_refused(manifest: Manifest, tmp_path: Path) -> None:
    plain, packed = written(tmp_path, "march.xml", "march.xml.gz")
    for held, other in ((plain, packed), (packed, plain)):
        with pytest.raises(InputError, match=rf"{other.name}: .* holds {held.name}, which"):
            sort_sources(holding(manifest, held), [other])


def test_source_of_another_baseline_year_is_refused(manifest: Manifest, tmp_path: Path) -> None:
    old, new = written(tmp_path, "pubmed25n0001.xml.gz", "pubmed26n0001.xml.gz")
    with pytest.raises(InputError, match=r"build an index only from the files of 2026"):
        sort_sources(holding(manifest, old), [new])


def test_only_nlm_file_names_can_be_late(manifest: Manifest, tmp_path: Path) -> None:
    second, fourth, march = written(
        tmp_path, "pubmed26n0002.xml.gz", "pubmed26n0004.xml.gz", "march.xml"
    )
    held = holding(manifest, second, fourth, march)
    late = {
        name: first_late(held, [name])
        for name in ("pubmed26n0003.xml.gz", "pubmed26n0005.xml.gz", "april.xml", "a1.xml")
    }
    third = "pubmed26n0003.xml.gz"
    assert late == {**dict.fromkeys(late), third: third}
    assert first_late(held, ["april.xml", third]) == third
    assert later_deleting(held, third) == [fourth.name, march.name]


def test_order_of_unnumbered_sources_is_reported(manifest: Manifest, tmp_path: Path) -> None:
    march, april, may = written(tmp_path, "march.xml", "april.xml", "may.xml")
    held = holding(manifest, march)
    assert order_notes([may], held) == ()
    (note,) = order_notes([april], held)
    assert note.startswith("applied after march.xml")
    (note,) = order_notes([march, april])
    assert "march.xml, april.xml; where two hold the same article" in note
    numbered = written(tmp_path, "pubmed26n0001.xml.gz", "pubmed26n0002.xml.gz")
    assert order_notes(numbered) == ()
    (note,) = order_notes(numbered[:1], holding(manifest, numbered[1]))
    assert note.startswith("pubmed26n0001.xml.gz comes before files that the index holds")
