"""The last step of a build, an update, a compaction: vocabulary, manifest, the switch to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index.analysis import ANALYSER
from cluster.index.copies import at_hand
from cluster.index.layout import (
    TERM_COUNTS,
    manifest_file,
    quantiser_file,
    segment_directory,
    vocabulary_file,
)
from cluster.index.manifest import (
    FORMAT,
    Artefact,
    EncoderEntry,
    Manifest,
    SegmentEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    VersionEntry,
    artefact,
    current_version,
    publish,
    read_manifest,
)
from cluster.places import Place
from cluster.settings import Settings, VocabularySettings
from cluster.storage import published_atomically, sha256_of, write_atomically
from pipelines.assemble_vocabulary import write_vocabulary
from pipelines.build_shard import ShardSummary
from pipelines.mine_vocabulary import merge_counts, read_counts
from pipelines.read_concepts import read_concepts
from pipelines.stage_citations import ParsedSource
from pipelines.update_index import ShardUpdate

MakeVocabulary = Callable[
    [Place, str, Sequence[ShardEntry], VocabularySettings, Path | None], Artefact
]


def next_version(index: Place) -> str:
    """`v000001` for the first version, and so on."""
    current = current_version(index)
    return f"v{(int(current[1:]) if current else 0) + 1:06d}"


def _history(index: Place) -> tuple[VersionEntry, ...]:
    """The versions before the next; none where the current one cannot be read any more."""
    try:
        current = read_manifest(index)
    except IndexFormatError:
        return ()
    last = VersionEntry(
        version=current.version,
        sha256=sha256_of(index / manifest_file(current.version)),
        created=current.created,
        last_source=current.last_source,
    )
    return (*current.history, last)


def _new_version(index: Place) -> dict[str, Any]:
    """What each manifest has of its own."""
    return {
        "format": FORMAT,
        "version": next_version(index),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "history": _history(index),
    }


def _live(shards: Sequence[ShardEntry]) -> dict[str, Any]:
    """Shards as a manifest holds them, with the counts of what is live in them."""
    segments = [segment for shard in shards for segment in shard.segments]
    return {
        "shards": tuple(shards),
        "citations": sum(s.citations - s.dead.citations for s in segments),
        "passages": sum(s.passages - s.dead.passages for s in segments),
    }


def publish_vocabulary(
    index: Place,
    version: str,
    shards: Sequence[ShardEntry],
    settings: VocabularySettings,
    release: Path | None,
) -> Artefact:
    """Write the vocabulary of a version from the term counts of all its segments.

    It reads every one of them, some hundred bytes a citation, and its memory is a few times
    the distinct terms and the names of `release`: a job calls it where there is room, which
    its driver need not have.
    """
    folders = (
        at_hand(index / segment_directory(number, segment.id), segment.artefacts, TERM_COUNTS)
        for number, shard in enumerate(shards)
        for segment in shard.segments
    )
    counts = (read_counts(folder / TERM_COUNTS) for folder in folders)
    with published_atomically(index / vocabulary_file(version)) as aside:
        write_vocabulary(
            merge_counts(counts),
            read_concepts(release, settings.umls_types) if release else (),
            aside,
            min_citations=settings.abbreviation_min_citations,
        )
        return artefact(aside)


def _keep_quantiser(index: Place, quantiser: Place) -> Artefact:
    entry = artefact(quantiser)
    path = index / quantiser_file(entry.sha256)
    if not path.is_file():
        write_atomically(path, quantiser.read_bytes())
    return entry


def _sources(accounts: Sequence[ParsedSource]) -> tuple[SourceEntry, ...]:
    fields = set(SourceEntry.model_fields)
    return tuple(SourceEntry(**a.model_dump(include=fields)) for a in accounts if not a.error)


def publish_build(
    index: Place,
    quantiser: Place,
    settings: Settings,
    encoder: EncoderEntry,
    release: Path | None,
    accounts: Sequence[ParsedSource],
    summaries: Sequence[ShardSummary],
    make_vocabulary: MakeVocabulary = publish_vocabulary,
) -> Manifest:
    """Publish a version that holds what was built from `accounts` and nothing else."""
    own = _new_version(index)
    shards = [ShardEntry(segments=(s.entry,)) for s in summaries]
    sources = _sources(accounts)
    vocabulary = make_vocabulary(index, own["version"], shards, settings.vocabulary, release)
    manifest = Manifest(
        **own,
        **_live(shards),
        encoder=encoder,
        split=SplitEntry(**settings.split.model_dump()),
        analyser=ANALYSER,
        vectors=settings.index.vectors,
        bm25_over=settings.index.bm25_over,
        sources=sources,
        failed_sources=tuple(a.name for a in accounts if a.error),
        last_source=sources[-1].name,
        superseded=sum(s.superseded for s in summaries),
        deleted=sum(s.deleted for s in summaries),
        vocabulary=vocabulary,
        quantiser=_keep_quantiser(index, quantiser),
    )
    publish(index, manifest)
    return manifest


def _check_current(index: Place, previous: Manifest) -> None:
    current = current_version(index)
    if current != previous.version:
        raise CiteRayError(
            f"{index}: {current} was published while this ran on top of {previous.version}; "
            "run it again"
        )


def publish_update(
    index: Place,
    previous: Manifest,
    settings: VocabularySettings,
    release: Path | None,
    accounts: Sequence[ParsedSource],
    updates: Sequence[ShardUpdate | None],
    make_vocabulary: MakeVocabulary = publish_vocabulary,
) -> Manifest:
    """Publish `previous` with a segment more in each shard that has an update.

    Raises CiteRayError when another version was published since `previous`.
    """
    _check_current(index, previous)
    own = _new_version(index)
    shards = [
        ShardEntry(segments=(*shard.segments, update.entry)) if update else shard
        for shard, update in zip(previous.shards, updates, strict=True)
    ]
    live = _live(shards)
    told = [update for update in updates if update]
    deleted = previous.deleted + sum(update.deleted for update in told)
    before = previous.citations + previous.superseded + previous.deleted
    records = before + sum(update.records for update in told)
    sources = _sources(accounts)
    applied = {source.name for source in sources}
    failed = [name for name in previous.failed_sources if name not in applied]
    failed += [a.name for a in accounts if a.error and a.name not in failed]
    changes = {
        **own,
        **live,
        "sources": (*previous.sources, *sources),
        "failed_sources": tuple(failed),
        "last_source": sources[-1].name,
        "deleted": deleted,
        "superseded": records - live["citations"] - deleted,
        "vocabulary": make_vocabulary(index, own["version"], shards, settings, release),
    }
    manifest = previous.model_copy(update=changes)
    publish(index, manifest)
    return manifest


def publish_compaction(
    index: Place, previous: Manifest, entries: Sequence[SegmentEntry]
) -> Manifest:
    """Publish what `previous` holds with one segment a shard.

    Raises CiteRayError when another version was published since `previous`.
    """
    _check_current(index, previous)
    own = _new_version(index)
    vocabulary = index / vocabulary_file(previous.version)
    with (
        vocabulary.open("rb") as stream,
        published_atomically(index / vocabulary_file(own["version"])) as aside,
        aside.open("wb") as copy,
    ):
        shutil.copyfileobj(stream, copy)
    shards = [ShardEntry(segments=(entry,)) for entry in entries]
    manifest = previous.model_copy(update={**own, **_live(shards)})
    publish(index, manifest)
    return manifest
