"""A tampered index is refused with one sentence, and no file outside the index is accessed.

Tests of accidental damage are in tests/cluster/test_index.py and tests/pipelines/verify/. Here an
attacker also rewrites the checksums, or the object store itself is hostile.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest

from cluster.errors import IndexFormatError
from cluster.index.layout import CURRENT, PASSAGES, VECTORS, segment_directory
from cluster.index.manifest import read_manifest
from cluster.index.read_shard import ShardReader
from cluster.index.vectors import load, load_quantiser
from cluster.storage.locations import Location, StoredLocation
from tests.object_store import BUCKET, s3_server
from tests.small_index import citation, make_index

DRUGS = [citation(n, f"Drug {n} lowers fever in patients.", f"Drug {n}") for n in range(1, 9)]
SEGMENT = segment_directory(0, "segment")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built") / "index"
    make_index(place, DRUGS, shards=1)
    return place


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def open_shard(index: Location) -> ShardReader:
    (entry,) = read_manifest(index).shards
    return ShardReader(index, 0, entry, ef_search=16, exact_below=0)


def seal(index: Path) -> None:
    """Update the checksum of the manifest in CURRENT."""
    digest = hashlib.sha256((index / "versions" / "v000001.json").read_bytes()).hexdigest()
    (index / CURRENT).write_text(json.dumps({"version": "v000001", "sha256": digest}))


def reseal(index: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest and update its checksum in CURRENT, as an attacker would."""
    path = index / "versions" / "v000001.json"
    fields = json.loads(path.read_text())
    change(fields)
    path.write_text(json.dumps(fields))
    seal(index)


def segment_of(contents: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = contents["shards"][0]["segments"][0]
    return found


LEADING_OUT = ["../../../etc", "/etc", "a/../../b", "..", ".", "", "a\\..\\b", "a\x00b", "a\nb"]
EARLIER = {"sha256": "0" * 64, "created": "", "last_source": ""}
NAMING: dict[str, Callable[[dict[str, Any], str], object]] = {
    "segment": lambda contents, name: segment_of(contents).update(id=name),
    "artefact": lambda contents, name: segment_of(contents)["artefacts"].update(
        {name: segment_of(contents)["artefacts"][VECTORS]}
    ),
    "terms": lambda contents, name: segment_of(contents)["terms"].update({name: 1}),
    "version": lambda contents, name: contents.update(version=name),
    "history": lambda contents, name: contents.update(history=[{"version": name, **EARLIER}]),
    "sha256": lambda contents, name: contents.update(quantiser={"bytes": 1, "sha256": name}),
}


def refuse(
    index: Path, contents: dict[str, Any], change: Callable[[dict[str, Any]], object]
) -> None:
    """Restore the manifest `contents`, change it, and check that reading it fails."""
    (index / "versions" / "v000001.json").write_text(json.dumps(contents))
    reseal(index, change)
    with pytest.raises(IndexFormatError, match=r"v000001\.json: not a manifest: "):
        read_manifest(index)


@pytest.fixture
def contents(index: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((index / "versions" / "v000001.json").read_text())
    return found


def test_forged_manifest_names_no_path_outside_the_index(
    index: Path, contents: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for where, name in product(NAMING, LEADING_OUT):
        with subtests.test(where=where, name=name):
            refuse(index, contents, partial(NAMING[where], name=name))


def test_current_names_no_path_outside_the_index(index: Path) -> None:
    for name in LEADING_OUT:
        (index / CURRENT).write_text(json.dumps({"version": name, "sha256": "0" * 64}))
        with pytest.raises(IndexFormatError, match="CURRENT: damaged"):
            read_manifest(index)


def test_manifest_with_invalid_fields_is_refused(index: Path, contents: dict[str, Any]) -> None:
    for change in (
        lambda contents: segment_of(contents).update(citations=-1),
        lambda contents: segment_of(contents).update(passages=10**400),
        lambda contents: segment_of(contents)["artefacts"][VECTORS].update(bytes=-1),
        lambda contents: segment_of(contents)["artefacts"][VECTORS].update(sha256="none"),
        lambda contents: contents.update(unknown="field"),
        lambda contents: contents.update(shards="all"),
    ):
        refuse(index, contents, change)


def test_file_that_is_not_a_manifest_is_refused(index: Path) -> None:
    path = index / "versions" / "v000001.json"
    for text in ("[]", "null", "[" * 100_000, '{"format": ' * 5000, "\xff"):
        path.write_bytes(text.encode("latin-1"))
        seal(index)
        with pytest.raises(IndexFormatError, match=r"v000001\.json: not a manifest: "):
            read_manifest(index)


def test_wrong_declared_size_is_detected(index: Path) -> None:
    reseal(index, lambda contents: segment_of(contents)["artefacts"][VECTORS].update(bytes=1 << 50))
    with pytest.raises(IndexFormatError, match=r"vectors\.faiss: \d+ bytes instead"):
        open_shard(index)


def test_symbolic_link_out_of_the_index_is_refused(index: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * (index / SEGMENT / PASSAGES).stat().st_size)
    (index / SEGMENT / PASSAGES).unlink()
    (index / SEGMENT / PASSAGES).symlink_to(secret)
    with pytest.raises(IndexFormatError, match=r"passages\.arrow: its checksum"):
        open_shard(index)


def test_unlisted_file_is_never_opened(index: Path) -> None:
    for name in ("vectors.pkl", "sitecustomize.py", "bm25-citations/evil.so"):
        (index / SEGMENT / name).write_bytes(b"import os; os.abort()")
    assert open_shard(index).citation(1) is not None


def test_damaged_faiss_file_is_refused_or_harmless(index: Path) -> None:
    """FAISS must withstand a damaged file, because an attacker can also forge its checksum."""
    path = index / SEGMENT / VECTORS
    sound = path.read_bytes()
    for seed in range(40):
        drawn = random.Random(seed)
        data = bytearray(sound)
        if seed % 4 == 0:
            del data[drawn.randrange(1, len(data)) :]
        else:
            # The first bytes hold lengths; 0xFF in their highest byte gives the largest value.
            for place in drawn.sample(range(min(len(data), 400)), 3):
                data[place] = 0xFF
        path.write_bytes(data)
        # If no error is raised, a different index is read, which its checksum would have refused.
        with suppress(IndexFormatError):
            load(path)


def test_length_beyond_the_file_is_refused_before_allocation(tmp_path: Path) -> None:
    flat = faiss.IndexFlatIP(16)
    flat.add(np.ones((4, 16), np.float32))
    faiss.write_index(flat, str(tmp_path / "flat"))
    data = bytearray((tmp_path / "flat").read_bytes())
    # The vector's length, in items, is stored directly before its 4 x 16 floats.
    place = len(data) - 4 * 16 * 4 - 8
    data[place : place + 8] = (1 << 36).to_bytes(8, "little")
    (tmp_path / "flat").write_bytes(data)
    for read in (load, load_quantiser):
        with pytest.raises(IndexFormatError, match="not a FAISS index"):
            read(tmp_path / "flat")


@pytest.mark.slow
def test_hostile_store_writes_only_into_the_cache(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names in a manifest become paths of copies, so that a name could choose any file."""
    target = tmp_path / "home" / "authorized_keys"
    target.parent.mkdir()
    keys = b"ssh-ed25519 AAAA forger"
    artefact = {"bytes": len(keys), "sha256": hashlib.sha256(keys).hexdigest()}
    location = StoredLocation.at(f"s3://{BUCKET}/index", tmp_path / "cache")
    name = os.path.relpath(target, location.copy / SEGMENT)
    reseal(index, lambda manifest: segment_of(manifest)["artefacts"].update({name: artefact}))
    with s3_server(monkeypatch) as store:
        for path in (p for p in index.rglob("*") if p.is_file()):
            with store.open_output_stream(f"{BUCKET}/index/{path.relative_to(index)}") as sink:
                sink.write(path.read_bytes())
        # The path in the server to which the name leads once `..` in the URL is resolved.
        store.create_dir(target.parent.name)
        with store.open_output_stream(f"{target.parent.name}/{target.name}") as sink:
            sink.write(keys)
        with pytest.raises(IndexFormatError, match="is outside the index"):
            open_shard(location)
    assert list(target.parent.iterdir()) == []
