"""Find a published build of the same sources with the same settings, which need not be repeated.

A job that is retried after it has published, such as a RayJob whose later step failed, would
otherwise embed all sources again. Updates and compactions of that build may have been published
since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index.manifest import Manifest, read_manifest
from cluster.models.adapters import weights_checksum
from cluster.models.store import ModelStore, checksum
from cluster.settings.settings import Settings
from cluster.storage.object_store import File
from cluster.text.analysis import ANALYSER
from pipelines.indexing.sources.given_sources import (
    are_unchanged,
    copy_notes,
    find_copies,
    order_notes,
)
from pipelines.indexing.staging.plan_build import BuildResult, build_id, digest_of, index_facts
from pipelines.vocabulary.give_names import find_names


@dataclass(frozen=True, slots=True)
class Models:
    """Checksums of the encoder and of each file with names of concepts.

    Every worker finds the models by name in the store of its own node.
    """

    weights: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, settings: Settings, store: ModelStore | None = None) -> Models:
        """Return the checksums of the models of `settings` in `store`.

        Raises the errors of `ModelStore.resolve`.
        """
        names = find_names(settings.vocabulary, store)
        files = [path for path in (names.release, *names.lexicons) if path]
        return cls(weights_checksum(settings.encoder, store), tuple(map(checksum, files)))


def build_digest(settings: Settings, models: Models, *, strict: bool) -> str:
    """Return a digest of everything except the sources that determines the result of a build."""
    vocabulary = settings.vocabulary.model_dump(mode="json")
    facts = [build_id(settings, models.weights), index_facts(settings.index), vocabulary]
    return digest_of([*facts, *models.names, ANALYSER.name, strict])


def find_build(
    sources: Sequence[File], settings: Settings, *, strict: bool, models: Models | None = None
) -> BuildResult | None:
    """Return the published version as a result if it holds a build of these sources, else None.

    It may also hold updates of that build; `sources` may include those that the updates added.
    `sources` are in the order in which they apply. By default, nothing is fetched: a build is only
    found if this machine's store has its `models`. A source is recognised as in an update: its
    bytes are read only if its modification time has changed.
    """
    try:
        manifest = read_manifest(settings.index.location)
    except IndexFormatError:
        return None
    if not manifest.build:
        return None
    copies = find_copies(sources)
    distinct = [path for path in sources if path not in copies]
    if not _holds(manifest, distinct):
        return None
    try:
        models = models or Models.of(settings, ModelStore(fetches=False))
    except CiteRayError:
        return None
    if manifest.build != build_digest(settings, models, strict=strict):
        return None
    notes = (*copy_notes(copies), *order_notes(distinct), _note(manifest, len(distinct)))
    return BuildResult(manifest, (), notes=notes)


def _holds(manifest: Manifest, sources: Sequence[File]) -> bool:
    """Return whether `sources` are those of the manifest's build and any that updates added."""
    held = [source.name for source in manifest.sources]
    given = [path.name for path in sources]
    # Before the number was recorded, only the build itself had a digest.
    built = held[: manifest.build_sources or len(held)]
    known = set(given)
    in_order = given == [name for name in held if name in known]
    return in_order and given[: len(built)] == built and are_unchanged(sources, manifest)


def _note(manifest: Manifest, given: int) -> str:
    updates = len(manifest.sources) - given
    added, without = "", ""
    if updates:
        added = f", and {updates:,} that were added since"
        without = f", or leave out the {updates:,} others"
    return (
        f"{manifest.version} already holds a build of these {given:,} sources with the same "
        f"settings{added}, so nothing was built. Repeating this command does not repair a damaged "
        f"index; to build anyway{without}, add --again"
    )
