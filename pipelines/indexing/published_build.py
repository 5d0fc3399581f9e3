"""Find a published build of the same sources with the same settings, which need not be repeated.

A job that is retried after it has published, such as a RayJob whose later step failed, would
otherwise embed all sources again.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.errors import IndexFormatError
from cluster.index.manifest import Manifest, read_manifest
from cluster.settings.settings import Settings
from cluster.storage.locations import Location
from cluster.storage.object_store import File
from cluster.text.analysis import ANALYSER
from pipelines.indexing.sources.given_sources import are_unchanged
from pipelines.indexing.staging.plan_build import build_id, digest_of, index_facts


def build_digest(settings: Settings, weights: str, names: Sequence[str], *, strict: bool) -> str:
    """Return a digest of everything except the sources that determines the result of a build.

    `weights` and `names` are the checksums of the encoder and of each file with names of concepts.
    """
    vocabulary = settings.vocabulary.model_dump(mode="json")
    facts = [build_id(settings, weights), index_facts(settings.index), vocabulary, *names]
    return digest_of([*facts, ANALYSER, strict])


def find_published(index: Location, sources: Sequence[File], digest: str) -> Manifest | None:
    """Return the published version if it is a build of exactly these sources, else None.

    `sources` are in the order in which they apply, and `digest` is their `build_digest`. A source
    is recognised as in an update: its bytes are read only if its modification time has changed.
    """
    try:
        manifest = read_manifest(index)
    except IndexFormatError:
        return None
    same_names = [path.name for path in sources] == [source.name for source in manifest.sources]
    if manifest.build != digest or not same_names or not are_unchanged(sources, manifest):
        return None
    return manifest
