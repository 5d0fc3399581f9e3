"""One shard of one version: what it answers, and which version the answer was read from.

While a graph moves to a new version its shards differ for moments. A citation lives in one
shard only, so what they find together is valid; what it is called must be honest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from cluster.index.filters.inspect_filters import FilterFacts, FilterInquiry, inspect_filters
from cluster.index.manifest import Manifest
from cluster.index.read_segment import identify
from cluster.index.read_shard import Fetched, Found, ShardQuery, ShardReader
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import Vectors
from cluster.pubmed.source_order import natural_key
from cluster.records import Citation

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VersionName:
    """A version of the index, and the last source file that is in it."""

    version: str
    last_source: str

    @classmethod
    def of(cls, manifest: Manifest) -> VersionName:
        """The name and last source file that `manifest` records."""
        return cls(manifest.version, manifest.last_source)


def oldest(names: Iterable[VersionName]) -> VersionName:
    """The oldest of some versions, of which there must be one."""
    return min(names, key=lambda name: natural_key(name.version))


@dataclass(frozen=True, slots=True)
class FromVersion(Generic[T]):
    """What a shard answered and the version that it read."""

    value: T
    read: VersionName


class ShardVersion:
    """A shard's reader with the name of its version."""

    def __init__(self, reader: ShardReader, manifest: Manifest) -> None:
        self.reader = reader
        self.name = VersionName.of(manifest)

    def find(self, query: ShardQuery) -> FromVersion[Found]:
        """See `ShardReader.find`, with the version's name."""
        return FromVersion(self.reader.find(query), self.name)

    def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, tokens: Halves | None
    ) -> FromVersion[list[Fetched]]:
        """See `ShardReader.fetch`, with the version's name."""
        return FromVersion(self.reader.fetch(pmids, vector, tokens), self.name)

    def identify(
        self, pmids: Sequence[int], dois: Sequence[str], pmcids: Sequence[str] = ()
    ) -> dict[str, int]:
        """See `cluster.index.read_segment.identify`."""
        return identify(self.reader.segments, pmids, dois, pmcids)

    def inspect_filters(self, asked: FilterInquiry) -> FilterFacts:
        """See `cluster.index.filters.inspect_filters`."""
        return inspect_filters(self.reader.segments, asked)

    def citation(self, pmid: int) -> Citation | None:
        """See `ShardReader.citation`."""
        return self.reader.citation(pmid)
