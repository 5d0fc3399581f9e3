"""Faulty files and counts of a version are reported; an intact index has no findings."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.index.layout import (
    CITATIONS,
    CURRENT,
    PASSAGES,
    SUPERSEDES,
    VECTORS,
    segment_directory,
)
from cluster.index.manifest import read_manifest
from cluster.storage.sealed_text import seal, unseal
from pipelines.verify.verify_index import in_processes, verify_index
from tests.pipelines.verify.built_index import (
    HERE,
    SEGMENT,
    flip_byte,
    only,
    update_entry,
    update_manifest,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("quick", [False, True])
def test_built_index_has_no_findings(index: Path, quick: bool) -> None:
    found = verify_index(index, quick=quick)
    assert (found.findings, found.leftovers) == ((), ())
    assert (found.version, found.citations, found.passages) == ("v000001", 40, 80)


@pytest.mark.process
def test_parallel_verification_gives_the_same_result(index: Path) -> None:
    shutil.rmtree(index / segment_directory(1, "first"))
    told: list[tuple[str, int, int]] = []
    found = verify_index(
        index, map_in_order=in_processes(2), report=lambda *event: told.append(event)
    )
    assert found == verify_index(index)
    assert told == [("shards", 1, 2), ("shards", 2, 2)]


def test_missing_segment_is_reported_with_its_citations(index: Path) -> None:
    shutil.rmtree(index / SEGMENT)
    segment, total, passages = verify_index(index).findings
    assert (segment.kind, segment.place) == ("missing-segment", str(SEGMENT))
    assert segment.message == f"missing, with its {len(HERE)} citations"
    assert total.message == f"40 citations where the segments hold {40 - len(HERE)} live ones"
    assert passages.kind == "count"


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
    assert finding.message == f"{size - 1:,} bytes where the manifest says {size:,}"
    path.unlink()
    finding = verify_index(index, quick=quick).findings[0]
    assert finding.place == f"{SEGMENT}/{file}"
    assert finding.message.startswith("missing, the manifest says ")


def test_unlisted_artefact_is_reported(index: Path) -> None:
    manifest = read_manifest(index)
    named = dict(manifest.shards[0].segments[0].artefacts)
    del named[VECTORS]
    update_entry(index, artefacts=named)
    finding = only(verify_index(index))
    assert (finding.place, finding.message) == (
        f"{SEGMENT}/{VECTORS}",
        "the manifest does not name it",
    )
    (index / SEGMENT / SUPERSEDES).write_bytes(b"")
    places = {finding.place for finding in verify_index(index).findings}
    assert places == {f"{SEGMENT}/{VECTORS}", f"{SEGMENT}/{SUPERSEDES}"}


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
