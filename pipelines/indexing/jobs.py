"""The index jobs on Ray: build, update, compact.

    sources --embed_sources--> parts --one task per shard--> segments --one task--> vocabulary

The driver handles only file names and counts; texts, vectors and terms do not pass through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import ray

from cluster.index.lease import Lease, hold_lease
from cluster.index.manifest import EncoderEntry, Manifest, read_manifest
from cluster.pubmed.source_order import check_gaps
from cluster.settings.settings import Settings
from cluster.storage.locations import Location, file_names
from cluster.storage.object_store import File
from cluster.storage.whole_files import require_writable
from pipelines.indexing.index_tasks import (
    build_shards,
    codec_for,
    compact_shards,
    find_models,
    make_terms,
    make_vocabulary,
    on_shards,
    plan_here,
    train_task,
    with_merged_tails,
)
from pipelines.indexing.publish_index import (
    publish_build,
    publish_compaction,
    publish_update,
)
from pipelines.indexing.published_build import Models, build_digest, find_build
from pipelines.indexing.shards.update_shard import (
    applicable,
    check_settings,
    update_shard,
)
from pipelines.indexing.sources.given_sources import (
    GivenSources,
    copy_notes,
    find_copies,
    order_notes,
    sort_sources,
)
from pipelines.indexing.sources.late_sources import (
    SourceOrder,
    deleted_in,
    files_of,
    first_late,
    later_deleting,
    order_of,
)
from pipelines.indexing.staging.drop_staging import drop_left, drop_taken, note_taken
from pipelines.indexing.staging.embed_sources import embed_sources
from pipelines.indexing.staging.plan_build import (
    BuildResult,
    Report,
    added_segment_plan,
    build_id,
    coded_tokens,
    quantiser_of,
    refuse_damaged,
    segment_id,
    segment_plan,
    staged_account,
    staging_name,
    tokens_entry,
)
from pipelines.indexing.staging.stage_citations import (
    ParsedSource,
    complete_account,
    staged_dimensions,
    staged_dtype,
    staging_directory,
)
from pipelines.indexing.staging.staging_tasks import CodedTokens


def _stage(
    places: Sequence[tuple[File, Location]],
    settings: Settings,
    models: Models,
    tokens: CodedTokens | None,
    report: Report,
    *,
    strict: bool,
) -> tuple[ParsedSource, ...]:
    """Stage the sources that are not fully staged yet, and return the accounts of all sources."""
    pending = [(p, d) for p, d in places if complete_account(d, p) is None]
    if pending:
        embed_sources(pending, settings, models.weights, tokens, report)
    accounts = (staged_account(path, directory) for path, directory in places)
    return tuple(refuse_damaged(account) if strict else account for account in accounts)


def build_index(
    sources: Sequence[File],
    settings: Settings,
    report: Report,
    *,
    strict: bool = False,
    again: bool = False,
) -> BuildResult:
    """Build a version from `sources`, in their order, and publish it.

    If the published version holds a build of these sources with these settings, it is the result
    and nothing is embedded, unless `again` is set.

    Citations staged by an earlier, interrupted run are not embedded again. A source that cannot be
    read is left out as a whole and named in the result; the staging is then kept, so that a rerun
    reads only that source. A record that cannot be read is skipped and reported; with `strict`, its
    whole source is left out. Of sources with the same content, only the first is read. Raises
    CiteRayError if no source can be read, or if another command is changing the index.
    """
    index = settings.index.location
    require_writable(index)
    copies = find_copies(sources)
    distinct = [path for path in sources if path not in copies]
    notes = (*copy_notes(copies), *order_notes(distinct))
    with hold_lease(index, "build") as lease:
        drop_taken(lease)
        report = lease.checking(report)
        models = find_models(settings, report)
        found = None if again else find_build(sources, settings, strict=strict, models=models)
        if found:
            return found
        digest = build_digest(settings, models, strict=strict)
        result = _build(distinct, settings, models, digest, lease, report, strict=strict)
        drop_taken(lease)
        return replace(result, notes=notes)


def _build(
    sources: Sequence[File],
    settings: Settings,
    models: Models,
    digest: str,
    lease: Lease,
    report: Report,
    *,
    strict: bool,
) -> BuildResult:
    index = lease.index
    name = build_id(settings, models.weights)
    tokens = tokens_entry(settings, codec_for(name, sources, settings, models))
    build = index / "staging" / staging_name(name, tokens)
    places = [(path, staging_directory(build, path)) for path in sources]
    coded = coded_tokens(index, tokens)
    result = BuildResult(None, _stage(places, settings, models, coded, report, strict=strict))
    good = [(d, a) for (_, d), a in zip(places, result.sources, strict=True) if not a.error]
    if not good:
        return result
    directories = [d for d, _ in good]
    encoder = EncoderEntry(
        model=settings.encoder.model,
        adapter=settings.encoder.adapter,
        sha256=models.weights,
        dimensions=staged_dimensions(directories),
        max_tokens=settings.encoder.max_tokens,
        dtype=staged_dtype(directories),
    )
    name = segment_id(build.name, settings.index, [a for _, a in good])
    quantiser = build / f"quantiser-{name}.faiss"
    plan = plan_here(segment_plan(name, quantiser, encoder.dimensions, settings.index))
    vectors = ray.get(train_task.remote(directories, quantiser, plan))
    summaries = build_shards(lease, directories, plan, vectors, settings.index.shards, report)
    # If a source failed, keep all staging: the rerun builds from it again.
    names = [] if result.failed else [account.name for _, account in good]
    quantisers = [n for n in file_names(build) if n.startswith("quantiser-")] if names else []
    manifest = publish_build(
        lease, quantiser, tokens, settings, encoder, result.sources, summaries, digest,
        make_vocabulary, make_terms, partial(note_taken, build, names, quantisers),
    )  # fmt: skip
    return BuildResult(manifest, result.sources)


def update_index(
    sources: Sequence[File],
    settings: Settings,
    report: Report,
    *,
    each: bool = False,
    allow_gap: bool = False,
    strict: bool = False,
) -> BuildResult:
    """Publish a version that adds the `sources` that the published version does not hold yet.

    With `each`, one version is published per source, so that the state after each source can be
    queried. Staging, resuming and `strict` work as in a build. Sources are applied in order, up to
    the first that cannot be read. The result lists the new sources in `sources` and the others in
    `held` and `notes`. If no source is new, the result is the published version and nothing is
    written; staging left by a run that failed after publishing is removed. A source is newer than
    everything in the index, except for a late source (see `late_sources.py`), which
    does not change PMIDs that appear in a source with a higher number.

    Raises InputError if a source has changed since it was indexed, if a late source is given
    without the later files that delete citations, if file numbers have a gap after the last one in
    the index (unless `allow_gap`), or if settings that must not change differ from those of the
    build. Raises CiteRayError if another command is changing the index.
    """
    index = settings.index.location
    manifest = read_manifest(index)
    given = sort_sources(manifest, sources)
    if not given.new:
        drop_left(index, "update")
        return _with_notes(BuildResult(manifest, ()), given, manifest)
    require_writable(index)
    with hold_lease(index, "update") as lease:
        drop_taken(lease)
        if lease.version != manifest.version:
            # Another command has published since the comparison above.
            manifest = read_manifest(index)
            given = sort_sources(manifest, sources)
        if not given.new:
            return _with_notes(BuildResult(manifest, ()), given, manifest)
        if not allow_gap:
            held = [source.name for source in manifest.sources]
            check_gaps([*held, *(path.name for path in given.new)], after=manifest.last_source)
        result = _update(
            given.new, sources, manifest, settings, lease, lease.checking(report),
            each=each, strict=strict,
        )  # fmt: skip
        drop_taken(lease)
        return _with_notes(result, given, manifest)


def _with_notes(result: BuildResult, given: GivenSources, before: Manifest) -> BuildResult:
    """Add to `result` the `given` sources that `before` already held, and the notes on sources."""
    held = tuple(path.name for path in given.held)
    notes = (*copy_notes(given.copies), *order_notes(given.new, before))
    return replace(result, held=held, notes=notes)


def _order(manifest: Manifest, names: Sequence[str], sources: Sequence[File]) -> SourceOrder | None:
    """Return the order of the sources if an update has late ones, else None."""
    first = first_late(manifest, names)
    if first is None:
        return None
    files = files_of(later_deleting(manifest, first), sources, first)
    task = ray.remote(max_retries=3)(deleted_in)
    found = ray.get([task.remote(path) for path in files])
    return order_of(manifest, names, dict(zip([p.name for p in files], found, strict=True)))


def _update(
    new: Sequence[File],
    sources: Sequence[File],
    manifest: Manifest,
    settings: Settings,
    lease: Lease,
    report: Report,
    *,
    each: bool,
    strict: bool,
) -> BuildResult:
    index = lease.index
    quantiser = quantiser_of(index, manifest)
    models = find_models(settings, report)
    check_settings(manifest, settings, models.weights)
    name = build_id(settings, models.weights)
    build = index / "staging" / staging_name(name, manifest.tokens)
    places = [(path, staging_directory(build, path)) for path in new]
    coded = coded_tokens(index, manifest.tokens)
    accounts = _stage(places, settings, models, coded, report, strict=strict)
    result = BuildResult(None, accounts)
    good = applicable(accounts)
    groups = [[account] for account in good] if each else [good]
    directories = {path.name: directory for path, directory in places}
    for group in filter(None, groups):
        name = segment_id(build.name, settings.index, group, manifest)
        plan = added_segment_plan(name, quantiser, manifest, settings.index)
        # The graphs of an update are small: one thread each, and no GPU.
        plan = replace(plan, threads=1, gpus=0)
        staged = [directories[account.name] for account in group]
        order = _order(manifest, [account.name for account in group], sources)
        calls = [(index, n, shard, staged, plan, order) for n, shard in enumerate(manifest.shards)]
        updates = on_shards(update_shard, calls, plan, report)
        reported = (*group, *result.failed)
        merged = with_merged_tails(index, manifest, updates, plan, report)
        manifest = publish_update(
            lease, merged, settings.vocabulary, reported, updates, make_vocabulary,
            make_terms, partial(note_taken, build, [account.name for account in group], []),
        )  # fmt: skip
        result = BuildResult(manifest, accounts)
    return result


def compact_index(settings: Settings, report: Report) -> Manifest:
    """Publish a version with one segment per shard, and the same citations and scores.

    Nothing is encoded; only the settings `index.build_threads` and `index.build_gpus` are used.
    After an interruption, a rerun keeps the complete shards. Raises CiteRayError if another command
    is changing the index.
    """
    index = settings.index.location
    require_writable(index)
    with hold_lease(index, "compact") as lease:
        drop_taken(lease)
        manifest = read_manifest(index)
        kept = {"vectors": manifest.vectors, "bm25_over": manifest.bm25_over}
        like = settings.index.model_copy(update=kept)
        quantiser = quantiser_of(index, manifest)
        plan = plan_here(added_segment_plan("", quantiser, manifest, like))
        entries = compact_shards(lease, manifest, plan, lease.checking(report))
        return publish_compaction(lease, manifest, entries)
