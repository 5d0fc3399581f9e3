"""Updated and compacted indexes pass verification."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.index.layout import codec_file, quantiser_file, terms_file
from pipelines.verify.verify_index import Verification, verify_index
from tests.pipelines.histories import SmallIndex

pytestmark = pytest.mark.slow

FILES = [
    [(1, "aspirin"), (2, "heparin"), (3, "warfarin"), (4, "insulin"), (5, "iron")],
    [(2, "heparin again"), (3, None), (6, "copper"), (99, None)],
    [(3, "warfarin is back"), (6, None), (2, "heparin once more"), (1, None), (1, "aspirin too")],
    [(4, None), (1, None)],
]


@pytest.fixture
def grown(tmp_path: Path) -> SmallIndex:
    index = SmallIndex(tmp_path / "index")
    index.build(FILES[:1])
    for file in FILES[1:]:
        index.update([file])
    return index


def sound(index: SmallIndex) -> Verification:
    found = verify_index(index.path)
    assert found.findings == ()
    assert index.manifest is not None
    assert (found.citations, found.passages) == (index.manifest.citations, index.manifest.passages)
    return found


@pytest.mark.slow
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


def test_files_of_an_interrupted_update_are_leftovers(grown: SmallIndex) -> None:
    grown.update([[(7, "zinc"), (8, "lead"), (9, "tin")]], crash_after=1)
    places = [leftover.place for leftover in sound(grown).leftovers]
    assert places[0] == "staging"
    assert any(place.endswith(".partial") for place in places)


@pytest.mark.parametrize("kind", ["codec", "terms", "quantiser"])
def test_missing_shared_file_is_reported(grown: SmallIndex, kind: str) -> None:
    manifest = grown.manifest
    assert manifest is not None
    assert manifest.tokens is not None
    assert manifest.quantiser is not None
    files = {
        "codec": codec_file(manifest.tokens.codec.sha256),
        "terms": terms_file(manifest.terms[-1].version),
        "quantiser": quantiser_file(manifest.quantiser.sha256),
    }
    (grown.path / files[kind]).unlink()
    (finding,) = verify_index(grown.path).findings
    assert (finding.kind, finding.place) == ("artefact", str(files[kind]))
