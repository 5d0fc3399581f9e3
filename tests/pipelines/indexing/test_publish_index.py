"""A build is published whole or not at all, and recognised as published.

It is recognised only if its sources, settings and models are unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.index.layout import shard_of, vocabulary_file
from cluster.index.manifest import (
    Manifest,
    SourceEntry,
    check_artefact,
    current_version,
    read_manifest,
)
from cluster.settings.settings import load_settings
from cluster.text.vocabulary import Vocabulary
from pipelines.indexing.published_build import Models, build_digest, find_build
from pipelines.indexing.staging.plan_build import BuildResult
from tests.pipelines.staging import account, source_entry, stage
from tests.pipelines.verify.built_index import publish_staged
from tests.publish_manifest import publish
from tests.small_index import citation, make_index

CITATIONS = [citation(p, f"Abstract {p}.", keywords=("rare disease",)) for p in range(1, 11)]
ACCOUNTS = [
    account("n1.xml", 10, dropped={"book": 2}, read=12),
    account("n2.xml", 3, error="n2.xml: truncated"),
]


def publish_in(index: Path, concepts: str = "''") -> Manifest:
    return publish_staged(index, [stage(index / "n1", CITATIONS)], ACCOUNTS, concepts)


def test_published_build_is_readable(tmp_path: Path) -> None:
    published = publish_in(tmp_path)
    assert read_manifest(tmp_path) == published
    assert (published.version, published.citations, published.passages) == ("v000001", 10, 10)
    held = [[segment.citations for segment in shard.segments] for shard in published.shards]
    assert held == [[sum(shard_of(c.pmid, 2) == shard for c in CITATIONS)] for shard in (0, 1)]
    path = tmp_path / vocabulary_file("v000001")
    check_artefact(path, published.vocabulary)
    found = Vocabulary.open(path).lookup("rare disease")
    assert [c.name for c in found] == ["rare disease"]
    # The failed source is listed separately from the sources.
    assert (published.failed_sources, published.last_source) == (("n2.xml",), "n1.xml")
    (source,) = published.sources
    assert (source.name, source.read, source.kept) == ("n1.xml", 12, 10)
    assert source.dropped == {"book": 2}


def test_invalid_concept_file_publishes_nothing(tmp_path: Path) -> None:
    mesh = tmp_path / "mesh.csv"
    mesh.write_text("shoe,size\nboot,42\n")
    with pytest.raises(InputError, match=r"mesh\.csv: no column id or subject"):
        publish_in(tmp_path / "index", concepts=f"file:{mesh}")
    assert current_version(tmp_path / "index") is None
    # The token codec exists before anything is embedded.
    assert list((tmp_path / "index/versions").glob("v*")) == []


MODELS = Models("a" * 64, ("b" * 64,))


def digest(*overrides: str, models: Models = MODELS, strict: bool = False) -> str:
    return build_digest(load_settings(overrides=overrides), models, strict=strict)


def entries_of(paths: Sequence[Path]) -> tuple[SourceEntry, ...]:
    return tuple(source_entry(path, path.stat().st_mtime_ns) for path in paths)


class Published:
    """A published build of n1.xml and n2.xml; `change` publishes a later version."""

    def __init__(self, folder: Path) -> None:
        self.sources = [folder / f"n{number}.xml" for number in range(1, 5)]
        for path in self.sources:
            path.write_text(path.name)
        self.index = folder / "index"
        self.manifest = make_index(self.index, [citation(1, "one")])
        self.change(sources=entries_of(self.sources[:2]), build=digest(), build_sources=2)

    def change(self, **changes: object) -> None:
        self.manifest = self.manifest.model_copy(update=changes)
        publish(self.index, self.manifest)

    def find(
        self, sources: Sequence[Path] | None = None, *overrides: str, models: Models | None = MODELS
    ) -> BuildResult | None:
        settings = load_settings(overrides=[f"index.path={self.index}", *overrides])
        given = self.sources[:2] if sources is None else sources
        return find_build(given, settings, strict=False, models=models)


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path)


def test_build_of_the_same_sources_is_found(tmp_path: Path, published: Published) -> None:
    sources = published.sources
    os.utime(sources[0])
    found = published.find()
    assert found is not None
    assert (found.manifest, found.sources) == (published.manifest, ())
    assert "does not repair a damaged index; to build anyway, add --again" in found.notes[-1]
    # These settings do not change the content of an index.
    assert published.find(None, "index.build_threads=7", "encoder.batch_size=1") is not None
    assert published.find(None, f"index.path={tmp_path / 'none'}") is None
    assert published.find(None, "index.hnsw_m=16") is None
    assert published.find(sources[1::-1]) is None
    assert published.find(sources[:1]) is None
    assert published.find(sources[:3]) is None
    sources[0].write_text("other")
    assert published.find() is None


def test_build_is_found_in_a_version_that_updates_it(published: Published) -> None:
    sources = published.sources
    published.change(sources=entries_of(sources))
    found = published.find()
    assert found is not None
    assert "and 2 that were added since, so nothing was built" in found.notes[-1]
    # The folder of the sources may have the files of the updates, too.
    assert published.find(sources) is not None
    assert published.find([*sources[:2], sources[3]]) is not None
    assert published.find(sources[1:]) is None
    assert published.find(sources[:1]) is None
    sources[3].write_text("other")
    assert published.find(sources) is None
    assert published.find() is not None


def test_build_whose_number_of_sources_was_not_recorded_is_found(published: Published) -> None:
    published.change(build_sources=0)
    assert published.find() is not None
    assert published.find(published.sources[:1]) is None
    published.change(build="")
    assert published.find() is None


def test_build_is_found_without_fetching_models(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "config.json").write_text("{}")
    names = ["vocabulary.concepts=", f"encoder.model=file:{encoder}"]
    settings = load_settings(overrides=[*names, "encoder.adapter="])
    own = Models.of(settings)
    published.change(build=build_digest(settings, own, strict=False))
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "empty"))
    assert published.find(None, *names, "encoder.adapter=", models=None) is not None
    # The laptop's encoder is not in the empty store, and is not fetched.
    published.change(build=digest())
    monkeypatch.setattr("cluster.models.store.fetch", None)
    assert published.find(models=None) is None
    assert not (tmp_path / "empty").exists()


def test_every_setting_that_changes_an_index_changes_the_digest() -> None:
    others = [
        digest("index.hnsw_m=16"),
        digest("index.shards=3"),
        digest("split.size=100"),
        digest("encoder.max_tokens=128"),
        digest("vocabulary.abbreviation_min_citations=9"),
        digest(models=Models("c" * 64, MODELS.names)),
        digest(models=Models(MODELS.weights, ())),
        digest(strict=True),
    ]
    assert len({digest(), *others}) == 1 + len(others)
