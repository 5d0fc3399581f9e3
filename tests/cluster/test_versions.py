from pathlib import Path

import pytest

from cluster.errors import IndexFormatError, InputError
from cluster.index.layout import manifest_file
from cluster.index.manifest import (
    DeadEntry,
    Manifest,
    SegmentEntry,
    ShardEntry,
    SourceEntry,
    VersionEntry,
    read_manifest,
)
from cluster.index.versions import read_as_of
from cluster.storage.whole_files import sha256_of
from tests.publish_manifest import publish
from tests.small_index import citation, make_index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Versions 1 to 4 that end with n1, n9, n10 and, after a rebuild, n9."""
    manifest = make_index(tmp_path, [citation(1, "one")])
    for number, last in enumerate(("n1.xml", "n9.xml", "n10.xml", "n9.xml"), 1):
        manifest = following(tmp_path, manifest, number, last)
    return tmp_path


def following(index: Path, before: Manifest, number: int, last: str) -> Manifest:
    history = before.history
    if number > 1:
        entry = VersionEntry(
            version=before.version,
            sha256=sha256_of(index / manifest_file(before.version)),
            created=before.created,
            last_source=before.last_source,
        )
        history = (*history, entry)
    changes = {"version": f"v{number:06d}", "last_source": last, "history": history}
    manifest = before.model_copy(update=changes)
    publish(index, manifest)
    return manifest


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("n1.xml", "v000001"),
        ("n8.xml", "v000001"),
        ("n9.xml", "v000004"),
        ("n10.xml", "v000003"),
        ("n99.xml", "v000003"),
    ],
)
def test_as_of_opens_the_newest_version_up_to_a_source(
    index: Path, source: str, version: str
) -> None:
    assert read_as_of(index, source).version == version


def test_versions_open_by_name(index: Path) -> None:
    found = [read_manifest(index, f"v00000{n}").last_source for n in (1, 2, 3, 4)]
    assert found == ["n1.xml", "n9.xml", "n10.xml", "n9.xml"]
    with pytest.raises(IndexFormatError, match="no version v000007 here; there are: v000001, "):
        read_manifest(index, "v000007")
    with pytest.raises(InputError, match=r"n0\.xml: no version .* the earliest ends with n1\.xml"):
        read_as_of(index, "n0.xml")


def test_changed_earlier_manifest_is_rejected(index: Path) -> None:
    path = index / manifest_file("v000002")
    path.write_text(path.read_text().replace("n9.xml", "n8.xml"))
    with pytest.raises(IndexFormatError, match=r"v000002\.json: missing or changed"):
        read_manifest(index, "v000002")


def test_as_of_orders_unnumbered_sources_by_application(tmp_path: Path) -> None:
    manifest = make_index(tmp_path, [citation(1, "one")])
    sources: tuple[SourceEntry, ...] = ()
    for number, name in enumerate(("march.xml", "april.xml", "1st.xml"), 1):
        counts = {"bytes": 1, "sha256": "", "read": 0, "kept": 0, "deletions": 0, "dropped": {}}
        sources = (*sources, SourceEntry(name=name, **counts))
        manifest = manifest.model_copy(update={"sources": sources})
        manifest = following(tmp_path, manifest, number, name)
    found = {s.name: read_as_of(tmp_path, s.name).version for s in sources}
    assert found == {"march.xml": "v000001", "april.xml": "v000002", "1st.xml": "v000003"}
    with pytest.raises(InputError, match=r"may\.xml: no version .* the earliest ends with march"):
        read_as_of(tmp_path, "may.xml")


def test_units_and_terms_exclude_those_of_replaced_records() -> None:
    old = SegmentEntry(
        id="old", citations=4, passages=9, terms={"citations": 30, "passages": 33}, artefacts={}
    )
    dead = DeadEntry(citations=1, passages=3, terms={"citations": 12})
    new = SegmentEntry(
        id="new", citations=1, passages=2, terms={"citations": 5}, artefacts={}, dead=dead
    )
    shard = ShardEntry(segments=(old, new))
    assert (shard.units("citations"), shard.live_terms("citations")) == (4, 23)
    assert (shard.units("passages"), shard.live_terms("passages")) == (8, 33)
