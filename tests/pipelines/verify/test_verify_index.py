"""Faulty files and counts of a version are reported; an intact index has no findings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.index.layout import CITATIONS, CURRENT, FILTERS, PASSAGES, SUPERSEDES, VECTORS
from cluster.index.manifest import read_manifest
from cluster.storage.sealed_text import seal, unseal
from pipelines.verify.verify_index import Verification, verify_index
from tests.pipelines.histories import SmallIndex
from tests.pipelines.verify.built_index import (
    SEGMENT,
    flip_byte,
    only,
    update_entry,
    update_manifest,
)

pytestmark = pytest.mark.slow


def test_quick_verification_does_not_hash_files(index: Path) -> None:
    flip_byte(next((index / SEGMENT).glob("bm25-*/*.store")))
    assert verify_index(index, quick=True).findings == ()


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("file", [CITATIONS, PASSAGES, VECTORS, "bm25-passages/meta.json"])
def test_truncated_or_missing_artefact_is_reported(index: Path, file: str, quick: bool) -> None:
    path = index / SEGMENT / file
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    finding = verify_index(index, quick=quick).findings[0]
    assert (finding.kind, finding.place) == ("artefact", f"{SEGMENT}/{file}")
    assert finding.message == f"{size - 1:,} bytes instead of the manifest's {size:,}"
    path.unlink()
    finding = verify_index(index, quick=quick).findings[0]
    assert finding.place == f"{SEGMENT}/{file}"
    assert finding.message.startswith("missing, the manifest says ")


@pytest.mark.parametrize("file", [VECTORS, FILTERS])
def test_unlisted_artefact_is_reported(index: Path, file: str) -> None:
    named = dict(read_manifest(index).shards[0].segments[0].artefacts)
    del named[file]
    update_entry(index, artefacts=named)
    finding = only(verify_index(index))
    assert finding.place == f"{SEGMENT}/{file}"
    assert finding.message == "the manifest does not name it"
    (index / SEGMENT / SUPERSEDES).write_bytes(b"")
    places = {finding.place for finding in verify_index(index).findings}
    assert places == {f"{SEGMENT}/{file}", f"{SEGMENT}/{SUPERSEDES}"}


def test_missing_or_dangling_pointer_is_reported(index: Path) -> None:
    pointer = unseal((index / CURRENT).read_bytes())
    (index / CURRENT).write_bytes(seal({**pointer, "version": "v000009"}))
    found = verify_index(index)
    assert (found.version, only(found).kind) == (None, "manifest")
    assert only(found).place == "versions/v000009.json"
    assert only(found).message == "missing or changed since it was published"
    (index / CURRENT).unlink()
    assert "no index here" in str(only(verify_index(index)))
    with pytest.raises(InputError, match="no such directory"):
        verify_index(index / "none")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"citations": 41}, "40 citations kept from all sources, but 41 live"),
        ({"citations": 41}, "41 citations where the segments hold 40 live ones"),
        ({"superseded": 1}, "40 citations kept from all sources, but 41 live"),
        ({"deleted": 1}, "40 citations kept from all sources, but 41 live"),
        ({"passages": 79}, "79 passages where the segments hold 80 live ones"),
        ({"analyser": "other-1"}, "were made by other-1, this CiteRay uses simple-fold-"),
        ({"read": 41}, "n1.xml.gz: 41 records read, but 40 kept, deletions and dropped"),
    ],
)
def test_wrong_totals_of_a_version_are_reported(
    index: Path, fields: dict[str, Any], message: str
) -> None:
    if "read" in fields:
        (source,) = read_manifest(index).sources
        fields = {"sources": (source.model_copy(update=fields),)}
    update_manifest(index, **fields)
    findings = verify_index(index).findings
    assert any(message in finding.message for finding in findings)
    if "citations" in fields or "superseded" in fields:
        assert {finding.kind for finding in findings} == {"count"}


def test_leftovers_are_listed_but_are_not_errors(index: Path) -> None:
    shutil.copytree(index / SEGMENT, index / "segments/0001/orphan")
    (index / "segments/0000/.second.partial").mkdir()
    (index / "staging/build").mkdir(parents=True)
    (index / ".CURRENT.0123").write_text("{")
    (index / "versions/v000009.vocabulary.arrow").write_bytes(b"")
    (index / SEGMENT / "notes.txt").write_text("x")
    (index / SEGMENT / "any.lock").write_text("")
    found = verify_index(index)
    assert found.findings == ()
    assert [leftover.place for leftover in found.leftovers] == [
        ".CURRENT.0123",
        "staging",
        "versions/v000009.vocabulary.arrow",
        "segments/0000/.second.partial",
        f"{SEGMENT}/notes.txt",
        "segments/0001/orphan",
    ]


def test_unreadable_manifest_suppresses_leftover_segments(index: Path) -> None:
    (index / "versions/v000000.json").write_text("{")
    (index / "segments/0000/other").mkdir()
    (leftover,) = verify_index(index).leftovers
    assert leftover.place == "versions/v000000.json"


def test_gap_in_source_numbers_is_reported(index: Path) -> None:
    source = read_manifest(index).sources[0]
    names = [f"pubmed26n{number}.xml.gz" for number in (1331, 1334)]
    sources = [source.model_copy(update={"name": name}) for name in names]
    update_manifest(index, sources=tuple(sources))
    gaps = [f for f in verify_index(index, quick=True).findings if f.kind == "gap"]
    assert [gap.place for gap in gaps] == ["pubmed26n1332.xml.gz"]
    assert "pubmed26n1332.xml.gz to pubmed26n1333.xml.gz missing" in gaps[0].message
    allowed = verify_index(index, quick=True, allow_gap=True)
    assert "gap" not in {finding.kind for finding in allowed.findings}


FILES = [
    [(1, "aspirin"), (2, "heparin"), (3, "warfarin"), (4, "insulin"), (5, "iron")],
    [(2, "heparin again"), (3, None), (6, "copper"), (99, None)],
    [(3, "warfarin is back"), (6, None), (2, "heparin once more"), (1, None), (1, "aspirin too")],
    [(4, None), (1, None)],
]


def sound(index: SmallIndex) -> Verification:
    found = verify_index(index.path)
    assert found.findings == ()
    assert (found.citations, found.passages) == (index.manifest.citations, index.manifest.passages)
    return found


def test_every_version_of_a_history_has_no_findings(tmp_path: Path) -> None:
    index = SmallIndex(tmp_path / "index")
    index.build(FILES[:1])
    live = [sound(index).citations]
    for file in FILES[1:]:
        index.update([file])
        live.append(sound(index).citations)
    index.compact()
    found = sound(index)
    assert {leftover.place for leftover in found.leftovers} == {"staging"}
    assert [*live, found.citations] == [5, 5, 5, 3, 3]


@pytest.mark.parametrize("pattern", ["tokens-*", "*.terms.arrow", "quantiser-*"])
def test_missing_shared_file_is_reported(index: Path, pattern: str) -> None:
    (path,) = (index / "versions").glob(pattern)
    path.unlink()
    finding = only(verify_index(index))
    assert (finding.kind, finding.place) == ("artefact", f"versions/{path.name}")
