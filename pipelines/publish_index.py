"""The last step of a build: the vocabulary, the manifest, and the switch to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cluster.index.analysis import ANALYSER
from cluster.index.layout import vocabulary_file
from cluster.index.manifest import (
    FORMAT,
    EncoderEntry,
    Manifest,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    artefact,
    current_version,
    publish,
)
from cluster.settings import Settings
from cluster.storage import published_atomically
from pipelines.assemble_vocabulary import read_mesh_headings, write_vocabulary
from pipelines.build_shard import ShardSummary, counts_file
from pipelines.mine_vocabulary import merge_counts, read_counts
from pipelines.stage_citations import ParsedSource


def next_version(index: Path) -> str:
    """`v000001` for the first version, and so on."""
    current = current_version(index)
    return f"v{(int(current[1:]) if current else 0) + 1:06d}"


def publish_build(
    index: Path,
    build: Path,
    settings: Settings,
    encoder: EncoderEntry,
    mesh: Path | None,
    accounts: Sequence[ParsedSource],
    shards: Sequence[ShardSummary],
) -> Manifest:
    """Write the version's vocabulary and manifest, and make it the current one."""
    version = next_version(index)
    vocabulary = index / vocabulary_file(version)
    sources = [a for a in accounts if not a.error]
    vocabulary.parent.mkdir(parents=True, exist_ok=True)

    counts = (
        read_counts(counts_file(build, shard.entry.id, number))
        for number, shard in enumerate(shards)
    )
    with published_atomically(vocabulary) as aside:
        write_vocabulary(
            merge_counts(counts),
            read_mesh_headings(mesh) if mesh else (),
            aside,
            min_citations=settings.vocabulary.abbreviation_min_citations,
        )
    manifest = Manifest(
        format=FORMAT,
        version=version,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        encoder=encoder,
        split=SplitEntry(**settings.split.model_dump()),
        analyser=ANALYSER,
        vectors=settings.index.vectors,
        bm25_over=settings.index.bm25_over,
        shards=tuple(ShardEntry(segments=(s.entry,)) for s in shards),
        sources=tuple(
            SourceEntry(**s.model_dump(include=set(SourceEntry.model_fields))) for s in sources
        ),
        failed_sources=tuple(a.name for a in accounts if a.error),
        last_source=sources[-1].name,
        citations=sum(s.entry.citations for s in shards),
        passages=sum(s.entry.passages for s in shards),
        superseded=sum(s.superseded for s in shards),
        deleted=sum(s.deleted for s in shards),
        vocabulary=artefact(vocabulary),
    )
    publish(index, manifest)
    return manifest
