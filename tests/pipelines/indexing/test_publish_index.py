from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.index.layout import shard_of, vocabulary_file
from cluster.index.lease import hold_lease
from cluster.index.manifest import (
    EncoderEntry,
    Manifest,
    check_artefact,
    current_version,
    read_manifest,
)
from cluster.settings.settings import load_settings
from cluster.text.vocabulary import Vocabulary
from pipelines.indexing.publish_index import publish_build
from pipelines.indexing.shards.build_shard import build_shard, train_quantiser
from pipelines.indexing.staging.stage_citations import ParsedSource, staged_ranges
from tests.pipelines.indexing.shards.test_build_shard import plan_in
from tests.pipelines.staging import account, stage
from tests.small_index import DIMENSIONS, citation, keep_codec

ENCODER = EncoderEntry(model="test", sha256="", dimensions=DIMENSIONS, max_tokens=256)
CITATIONS = [citation(p, f"Abstract {p}.", keywords=("rare disease",)) for p in range(1, 11)]
ACCOUNTS = [
    account("n1.xml", 10, dropped={"book": 2}, read=12),
    account("n2.xml", 3, error="n2.xml: truncated"),
]


def publish_in(
    index: Path, accounts: Sequence[ParsedSource] = ACCOUNTS, concepts: str = "''"
) -> Manifest:
    vocabulary = [f"vocabulary.concepts={concepts}", "vocabulary.lexicons=[]"]
    settings = load_settings(overrides=["split.size=512", *vocabulary])
    directory = stage(index / "n1", CITATIONS, shards=2)
    plan = plan_in(index)
    train_quantiser(staged_ranges([directory], DIMENSIONS)[0], plan.quantiser, plan)
    shards = [build_shard(index, s, [directory], plan) for s in range(2)]
    with hold_lease(index, "build") as lease:
        return publish_build(
            lease,
            plan.quantiser,
            keep_codec(index),
            settings,
            ENCODER,
            accounts,
            shards,
        )


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
