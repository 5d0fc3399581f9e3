"""Publish versions of an index of generated citations, without Ray and without a model.

The vectors are random and have a fixed width, so that the encoder's speed does not count.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cluster.index.lease import hold_lease
from cluster.index.manifest import EncoderEntry, Manifest
from cluster.models.embedded import NO_CODES, Embedded
from cluster.settings.settings import Settings
from pipelines.indexing.publish_index import publish_build, publish_compaction, publish_update
from pipelines.indexing.shards.build_shard import build_shard, train_quantiser
from pipelines.indexing.shards.compact_shard import compact_shard, prune
from pipelines.indexing.shards.update_shard import update_shard
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from pipelines.indexing.staging.plan_build import quantiser_of, segment_id, segment_plan
from pipelines.indexing.staging.stage_citations import ParsedSource, write_account, write_part
from pipelines.sample.generate_citations import generate_citations
from tests.pipelines.staging import SPLITTER, account

WIDTH = 32


def stand_in(texts: Sequence[str]) -> np.ndarray:
    """Return random unit vectors (n, WIDTH) that depend only on the number of texts."""
    vectors = np.random.default_rng(len(texts)).normal(size=(len(texts), WIDTH))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-9), np.float32)


def embed_stand_in(texts: Sequence[str], _: object = None) -> Embedded:
    return Embedded(stand_in(texts), [NO_CODES] * len(texts))


def _stage(index: Path, number: int, count: int, first: int, shards: int) -> ParsedSource:
    name = f"pubmed26n{number:04d}.xml.gz"
    directory = index / "staging" / name
    made = generate_citations(count, seed=number, first_pmid=first)
    rows = [replace(c, source=name, position=n) for n, c in enumerate(made)]
    write_part(
        embed_citations(split_citations(rows, SPLITTER), embed_stand_in, None), directory, shards
    )
    staged = account(name, len(rows), sha256=f"{number} {count} {first}")
    write_account(directory, staged, ())
    return staged


def build(settings: Settings, encoder: EncoderEntry, count: int) -> Manifest:
    """Publish the first version, with `count` citations and PMIDs from 1."""
    index = Path(settings.index.path)
    staged = _stage(index, 1, count, 1, settings.index.shards)
    quantiser = index / "staging" / "quantiser.faiss"
    plan = segment_plan(
        segment_id("bench", settings.index, [staged]), quantiser, WIDTH, settings.index
    )
    train_quantiser(stand_in(["a"] * 1000), quantiser, plan)
    places = [index / "staging" / staged.name]
    summaries = [build_shard(index, n, places, plan) for n in range(settings.index.shards)]
    with hold_lease(index, "build") as lease:
        manifest = publish_build(lease, quantiser, None, settings, encoder, [staged], summaries)
    shutil.rmtree(index / "staging")
    return manifest


def update(settings: Settings, previous: Manifest, number: int, count: int, first: int) -> Manifest:
    """Publish an update of `previous`: source `number` with `count` records from PMID `first`."""
    index = Path(settings.index.path)
    staged = _stage(index, number, count, first, settings.index.shards)
    name = segment_id("bench", settings.index, [staged], previous)
    plan = segment_plan(name, quantiser_of(index, previous), WIDTH, settings.index)
    places = [index / "staging" / staged.name]
    updates = [update_shard(index, n, s, places, plan) for n, s in enumerate(previous.shards)]
    with hold_lease(index, "update") as lease:
        manifest = publish_update(lease, previous, settings.vocabulary, [staged], updates)
    shutil.rmtree(index / "staging")
    return manifest


def compact(settings: Settings, previous: Manifest) -> Manifest:
    """Compact `previous` to one segment per shard, and remove the files that only it needs."""
    index = Path(settings.index.path)
    plan = segment_plan("", quantiser_of(index, previous), WIDTH, settings.index)
    entries = [compact_shard(index, n, s, plan, None) for n, s in enumerate(previous.shards)]
    with hold_lease(index, "compact") as lease:
        manifest = publish_compaction(lease, previous, entries)
    prune(index, manifest)
    return manifest
