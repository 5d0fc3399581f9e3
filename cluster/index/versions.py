"""The versions of an index: the files each needs, and the version that matches an update file."""

from __future__ import annotations

from collections.abc import Sequence

from cluster.errors import IndexFormatError, InputError
from cluster.index.layout import (
    codec_file,
    manifest_file,
    quantiser_file,
    segment_directory,
    terms_file,
    vocabulary_file,
)
from cluster.index.manifest import Manifest, read_manifest
from cluster.pubmed.source_order import apply_order, natural_key, numbered_place
from cluster.storage.locations import Location
from cluster.text.analysis import ANALYSER, Analyser


def read_as_of(index: Location, source: str) -> Manifest:
    """Return the manifest of the state after `source`, such as pubmed26n1340.xml.gz.

    Each run of build or update publishes one version, so this is the newest version whose last
    source is `source` or an earlier one; `citeray index update --each` publishes a version for
    every file. Raises InputError if no version is old enough or the matching one was pruned,
    and IndexFormatError as `read_manifest` does.
    """
    current = read_manifest(index)
    versions = [(e.last_source, e.version) for e in current.history]
    versions.append((current.last_source, current.version))
    fitting = _up_to(source, versions, [s.name for s in current.sources])
    if not fitting:
        raise InputError(
            f"{source}: no version of {index} is old enough; the earliest ends with "
            f"{versions[0][0]}"
        )
    name, version = fitting[-1]
    if not (index / manifest_file(version)).is_file():
        raise InputError(
            f"{source}: {version} of {index}, which ends with {name}, was pruned; to see that "
            f"state again, build an index elsewhere from the sources up to {name}"
        )
    return read_manifest(index, version)


def _up_to(
    source: str, versions: Sequence[tuple[str, str]], held: Sequence[str]
) -> list[tuple[str, str]]:
    """Return those of `versions` (last source, name) that end with `source` or before it.

    They are sorted by their last sources. Names that differ only in their numbers are compared by
    number; for other names, `held` gives the order in which they were applied.
    """
    order = {name: position for position, name in enumerate(apply_order(held))}
    if source in order:
        fitting = [v for v in versions if v[0] in order and order[v[0]] <= order[source]]
        return sorted(fitting, key=lambda v: (order[v[0]], int(v[1][1:])))
    series = (numbered_place(source) or ((source,), ()))[0]
    key = natural_key(source)
    alike = [v for v in versions if (numbered_place(v[0]) or ((v[0],), ()))[0] == series]
    fitting = [v for v in alike if natural_key(v[0]) <= key]
    return sorted(fitting, key=lambda v: (natural_key(v[0]), int(v[1][1:])))


def analyser_of(manifest: Manifest) -> Analyser:
    """Return the analyser of the version's BM25 terms; raises IndexFormatError if unknown."""
    try:
        return Analyser(manifest.analyser)
    except ValueError:
        raise IndexFormatError(
            f"the BM25 terms of {manifest.version} were made by {manifest.analyser}, this CiteRay "
            f"uses {ANALYSER.name}; build the index again"
        ) from None


def named_by(manifest: Manifest) -> set[str]:
    """Return the files and segments that `manifest` needs, relative to the index."""
    named = {manifest_file(manifest.version), vocabulary_file(manifest.version)}
    named.add(quantiser_file(manifest.quantiser.sha256))
    named |= {terms_file(entry.version) for entry in manifest.terms}
    if manifest.tokens:
        named.add(codec_file(manifest.tokens.codec.sha256))
    for number, shard in enumerate(manifest.shards):
        named |= {segment_directory(number, segment.id) for segment in shard.segments}
    return set(map(str, named))
