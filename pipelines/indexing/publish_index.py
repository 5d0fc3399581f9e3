"""Publish a version: the last step of a build, an update or a compaction.

Publishing writes the vocabulary, the term counts and the manifest, and then switches to the new
version. It needs the lease of the index. The version number is reserved first, so that no two
writers use the same file names. If publishing fails, the files of the version are removed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index.copies import at_hand
from cluster.index.layout import (
    TERM_COUNTS,
    TERMS,
    manifest_file,
    quantiser_file,
    segment_directory,
    terms_file,
    vocabulary_file,
)
from cluster.index.lease import Lease
from cluster.index.manifest import (
    FORMAT,
    Artefact,
    EncoderEntry,
    Manifest,
    SegmentEntry,
    ShardEntry,
    SourceEntry,
    SplitEntry,
    TermsEntry,
    TokensEntry,
    VersionEntry,
    artefact,
    current_version,
    read_manifest,
    write_manifest,
)
from cluster.index.terms.term_table import map_terms, merged_batches, write_terms
from cluster.pubmed.source_order import apply_order
from cluster.settings.settings import Settings
from cluster.settings.stages.expander import VocabularySettings
from cluster.storage.locations import Location, remove
from cluster.storage.whole_files import published_atomically, sha256_of, write_atomically
from cluster.text.analysis import ANALYSER
from pipelines.indexing.shards.build_shard import ShardSummary
from pipelines.indexing.shards.update_shard import ShardUpdate
from pipelines.indexing.staging.stage_citations import ParsedSource
from pipelines.vocabulary.assemble_vocabulary import write_vocabulary
from pipelines.vocabulary.give_names import find_names, given_names
from pipelines.vocabulary.mine_vocabulary import merge_counts, read_counts

MakeVocabulary = Callable[[Location, str, Sequence[ShardEntry], VocabularySettings], Artefact]
MakeTerms = Callable[
    [Location, str, Sequence[TermsEntry], Sequence[tuple[int, SegmentEntry]]],
    tuple[TermsEntry, ...],
]
BeforeSwitch = Callable[[str], None]
"""Callback that gets the version's name just before the switch to that version."""


def _nothing(version: str) -> None:
    return


def _history(index: Location) -> tuple[VersionEntry, ...]:
    """Return the versions before the next one, or none if the current one cannot be read."""
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


@contextmanager
def _new_version(lease: Lease) -> Iterator[dict[str, Any]]:
    """Yield the manifest fields specific to the new version; remove its files on failure."""
    version = lease.reserve_version()
    try:
        yield {
            "format": FORMAT,
            "version": version,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "history": _history(lease.index),
        }
    except Exception:
        # The switch may have succeeded although its reply was lost; its files are then in use.
        with suppress(CiteRayError):
            if current_version(lease.index) != version:
                remove(lease.index / manifest_file(version))
                remove(lease.index / vocabulary_file(version))
                remove(lease.index / terms_file(version))
        raise


def _publish(lease: Lease, manifest: Manifest, before_switch: BeforeSwitch) -> None:
    lease.check()
    sha256 = write_manifest(lease.index, manifest)
    before_switch(manifest.version)
    lease.switch(manifest.version, sha256)


def _live(shards: Sequence[ShardEntry]) -> dict[str, Any]:
    """Return the manifest fields for `shards`, with their numbers of live items."""
    segments = [segment for shard in shards for segment in shard.segments]
    return {
        "shards": tuple(shards),
        "citations": sum(s.citations - s.dead.citations for s in segments),
        "passages": sum(s.passages - s.dead.passages for s in segments),
    }


def publish_vocabulary(
    index: Location, version: str, shards: Sequence[ShardEntry], settings: VocabularySettings
) -> Artefact:
    """Write the vocabulary of a version from the term counts of all its segments.

    The vocabulary itself cannot be updated: it has only the concepts above the thresholds, and the
    counts below them, all definitions of a short form and all spellings decide the next version's
    concepts and names.

    Reads about a hundred bytes per citation. Needs a few times the memory of the distinct terms
    and of the names of concepts, so that jobs call it in a task instead of the driver.
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
            given_names(find_names(settings), settings.umls_types),
            aside,
            min_citations=settings.abbreviation_min_citations,
        )
        return artefact(aside)


def publish_terms(
    index: Location,
    version: str,
    before: Sequence[TermsEntry],
    added: Sequence[tuple[int, SegmentEntry]],
) -> tuple[TermsEntry, ...]:
    """Write the term counts of the segments that a version adds, and return all its term files.

    `before` are the term files of the previous version; `added` are pairs of a shard number and a
    segment. The last files of `before` are merged into the new one while they are at most twice as
    large, so that a version has few files and the cost of an update stays close to that of its own
    terms.
    """
    kept = list(before)
    size = sum(segment.artefacts[TERMS].bytes for _, segment in added)
    tables = [
        map_terms(at_hand(index / segment_directory(n, s.id), s.artefacts, TERMS) / TERMS)
        for n, s in added
    ]
    while kept and kept[-1].counts.bytes <= 2 * size:
        last = kept.pop()
        size += last.counts.bytes
        file = terms_file(last.version)
        named = {file.name: last.counts}
        tables.append(map_terms(at_hand(index / file.parent, named, file.name) / file.name))
    with published_atomically(index / terms_file(version)) as aside:
        write_terms(merged_batches(tables), aside)
        return (*kept, TermsEntry(version=version, counts=artefact(aside)))


def _keep_quantiser(index: Location, quantiser: Location) -> Artefact:
    entry = artefact(quantiser)
    path = index / quantiser_file(entry.sha256)
    if not path.is_file():
        write_atomically(path, quantiser.read_bytes())
    return entry


def _numbered(shards: Sequence[ShardEntry]) -> list[tuple[int, SegmentEntry]]:
    return [(n, segment) for n, shard in enumerate(shards) for segment in shard.segments]


def _sources(accounts: Sequence[ParsedSource]) -> tuple[SourceEntry, ...]:
    fields = set(SourceEntry.model_fields)
    return tuple(SourceEntry(**a.model_dump(include=fields)) for a in accounts if not a.error)


def publish_build(
    lease: Lease,
    quantiser: Location,
    tokens: TokensEntry | None,
    settings: Settings,
    encoder: EncoderEntry,
    accounts: Sequence[ParsedSource],
    summaries: Sequence[ShardSummary],
    build: str = "",
    make_vocabulary: MakeVocabulary = publish_vocabulary,
    make_terms: MakeTerms = publish_terms,
    before_switch: BeforeSwitch = _nothing,
) -> Manifest:
    """Publish a version that contains only the sources in `accounts`.

    `build` is the digest of the build (`build_digest`). Raises LeaseLostError, without publishing
    anything, if another command took the lease.
    """
    index = lease.index
    shards = [ShardEntry(segments=(s.entry,)) for s in summaries]
    sources = _sources(accounts)
    with _new_version(lease) as own:
        vocabulary = make_vocabulary(index, own["version"], shards, settings.vocabulary)
        manifest = Manifest(
            **own,
            **_live(shards),
            encoder=encoder,
            split=SplitEntry(**settings.split.model_dump()),
            analyser=ANALYSER.name,
            vectors=settings.index.vectors,
            bm25_over=settings.index.bm25_over,
            sources=sources,
            failed_sources=tuple(a.name for a in accounts if a.error),
            last_source=sources[-1].name,
            superseded=sum(s.superseded for s in summaries),
            deleted=sum(s.deleted for s in summaries),
            vocabulary=vocabulary,
            terms=make_terms(index, own["version"], (), _numbered(shards)),
            quantiser=_keep_quantiser(index, quantiser),
            tokens=tokens,
            build=build,
            build_sources=len(sources),
        )
        _publish(lease, manifest, before_switch)
    return manifest


def _check_current(lease: Lease, previous: Manifest) -> None:
    if lease.version != previous.version:
        raise CiteRayError(
            f"{lease.index}: {lease.version} was published while this ran on top of "
            f"{previous.version}; run the same command again"
        )


def publish_update(
    lease: Lease,
    previous: Manifest,
    settings: VocabularySettings,
    accounts: Sequence[ParsedSource],
    updates: Sequence[ShardUpdate | None],
    make_vocabulary: MakeVocabulary = publish_vocabulary,
    make_terms: MakeTerms = publish_terms,
    before_switch: BeforeSwitch = _nothing,
) -> Manifest:
    """Publish `previous` with one more segment in each shard that has an update.

    Raises CiteRayError if another version was published since `previous`, and LeaseLostError if
    another command took the lease.
    """
    _check_current(lease, previous)
    shards = [
        ShardEntry(segments=(*shard.segments, update.entry)) if update else shard
        for shard, update in zip(previous.shards, updates, strict=True)
    ]
    live = _live(shards)
    changed = [update for update in updates if update]
    deleted = previous.deleted + sum(update.deleted for update in changed)
    before = previous.citations + previous.superseded + previous.deleted
    records = before + sum(update.records for update in changed)
    sources = _sources(accounts)
    changes = {
        **live,
        "sources": (*previous.sources, *sources),
        "failed_sources": _still_failed(previous, accounts),
        "last_source": apply_order(s.name for s in (*previous.sources, *sources))[-1],
        "deleted": deleted,
        "superseded": records - live["citations"] - deleted,
    }
    with _new_version(lease) as own:
        changes |= own
        index, version = lease.index, own["version"]
        changes["vocabulary"] = make_vocabulary(index, version, shards, settings)
        added = [(n, update.entry) for n, update in enumerate(updates) if update]
        if added:
            changes["terms"] = make_terms(index, version, previous.terms, added)
        manifest = previous.model_copy(update=changes)
        _publish(lease, manifest, before_switch)
    return manifest


def _still_failed(previous: Manifest, accounts: Sequence[ParsedSource]) -> tuple[str, ...]:
    applied = {account.name for account in accounts if not account.error}
    failed = [name for name in previous.failed_sources if name not in applied]
    failed += [a.name for a in accounts if a.error and a.name not in failed]
    return tuple(failed)


def publish_compaction(
    lease: Lease, previous: Manifest, entries: Sequence[SegmentEntry]
) -> Manifest:
    """Publish the content of `previous` with one segment per shard.

    Raises the same errors as `publish_update`.
    """
    _check_current(lease, previous)
    index = lease.index
    shards = [ShardEntry(segments=(entry,)) for entry in entries]
    with _new_version(lease) as own:
        vocabulary = index / vocabulary_file(previous.version)
        with (
            vocabulary.open("rb") as stream,
            published_atomically(index / vocabulary_file(own["version"])) as aside,
            aside.open("wb") as copy,
        ):
            shutil.copyfileobj(stream, copy)
        manifest = previous.model_copy(update={**own, **_live(shards)})
        _publish(lease, manifest, _nothing)
    return manifest
