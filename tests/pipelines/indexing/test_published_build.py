"""A build is recognised as published only if its sources, settings and models are unchanged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster.index.manifest import SourceEntry, read_manifest
from cluster.settings.settings import load_settings
from cluster.storage.whole_files import sha256_of
from pipelines.indexing.published_build import build_digest, find_published
from tests.publish_manifest import publish
from tests.small_index import citation, make_index

WEIGHTS, NAMES = "a" * 64, ("b" * 64,)


def digest(*overrides: str, weights: str = WEIGHTS, strict: bool = False) -> str:
    return build_digest(load_settings(overrides=overrides), weights, NAMES, strict=strict)


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Two sources and a published build of them at `tmp_path / "index"`."""
    paths = [tmp_path / "n1.xml", tmp_path / "n2.xml"]
    entries = []
    for path in paths:
        path.write_text(path.name)
        state = {"bytes": path.stat().st_size, "modified_ns": path.stat().st_mtime_ns}
        counts = {"read": 0, "kept": 0, "deletions": 0, "dropped": {}}
        entries.append(SourceEntry(name=path.name, sha256=sha256_of(path), **state, **counts))
    index = tmp_path / "index"
    manifest = make_index(index, [citation(1, "one")])
    changes = {"sources": tuple(entries), "build": digest()}
    publish(index, manifest.model_copy(update=changes))
    return paths


def test_build_of_the_same_sources_is_found(tmp_path: Path, sources: list[Path]) -> None:
    index = tmp_path / "index"
    os.utime(sources[0])
    assert find_published(index, sources, digest()) == read_manifest(index)
    # These settings do not change the content of an index.
    same = digest("index.path=elsewhere", "index.build_threads=7", "encoder.batch_size=1")
    assert find_published(index, sources, same) is not None
    assert find_published(tmp_path / "none", sources, digest()) is None
    assert find_published(index, sources[::-1], digest()) is None
    assert find_published(index, sources[:1], digest()) is None
    sources[0].write_text("other")
    assert find_published(index, sources, digest()) is None


def test_every_setting_that_changes_an_index_changes_the_digest() -> None:
    others = [
        digest("index.hnsw_m=16"),
        digest("index.shards=3"),
        digest("split.size=100"),
        digest("encoder.max_tokens=128"),
        digest("vocabulary.abbreviation_min_citations=9"),
        digest(weights="c" * 64),
        digest(strict=True),
        build_digest(load_settings(), WEIGHTS, (), strict=False),
    ]
    assert len({digest(), *others}) == 1 + len(others)
