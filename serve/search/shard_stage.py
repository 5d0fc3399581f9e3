"""Replies of a shard, with the index version that they were read from.

While a graph switches to a new version, its shards briefly serve different versions. Results of
different versions can be combined, because each citation is in one shard only, but every reply
must name the version that it was read from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from cluster.errors import InputError
from cluster.exposure import Doubt
from cluster.index.boolean.expressions import Expression
from cluster.index.filters.inspect_filters import FilterFacts, FilterInquiry, inspect_filters
from cluster.index.manifest import Manifest
from cluster.index.read_segment import identify
from cluster.index.read_shard import Fetched, Found, ShardQuery, ShardReader
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import Vectors
from cluster.index.versions import analyser_of
from cluster.pubmed.source_order import natural_key
from cluster.records import Citation
from serve.contracts.stage_calls import REQUEST, stage_method

# Maximum number of citations of one shard that match a Boolean search, at 12 bytes each.
MOST_MATCHES = 1_000_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VersionName:
    """Name of an index version, the last source file that it contains, and its date in UTC."""

    version: str
    last_source: str
    date: str = ""

    @classmethod
    def of(cls, manifest: Manifest) -> VersionName:
        """Return the version name, last source file and date of `manifest`."""
        return cls(manifest.version, manifest.last_source, manifest.created[:10])


def oldest(names: Iterable[VersionName]) -> VersionName:
    """Return the oldest of `names`, which must not be empty."""
    return min(names, key=lambda name: natural_key(name.version))


@dataclass(frozen=True, slots=True)
class FromVersion(Generic[T]):
    """A shard's reply and the version that it was read from."""

    value: T
    read: VersionName


@dataclass(frozen=True, slots=True)
class ShardMatches:
    """Citations of a shard that match a Boolean expression, in no order.

    `months` are 12 * year + month of publication. `refused` is a sentence that says why the shard
    refused the expression, or "".
    """

    pmids: npt.NDArray[np.int64]
    months: npt.NDArray[np.int32]
    refused: str = ""


class ShardVersion:
    """A shard reader that adds its version to each reply."""

    def __init__(self, reader: ShardReader, manifest: Manifest) -> None:
        self.reader = reader
        self.name = VersionName.of(manifest)
        self._analyser = analyser_of(manifest)

    def find(self, query: ShardQuery) -> FromVersion[Found]:
        """Return the candidates and fetched citations of `ShardReader.find`, with the version."""
        return FromVersion(self.reader.find(query), self.name)

    def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, tokens: Halves | None
    ) -> FromVersion[list[Fetched]]:
        """Return the citations that the shard has, with their scores and the version."""
        return FromVersion(self.reader.fetch(pmids, vector, tokens), self.name)

    def identify(
        self, pmids: Sequence[int], dois: Sequence[str], pmcids: Sequence[str] = ()
    ) -> dict[str, int]:
        """Return the PMID of each identifier that is in the shard."""
        return identify(self.reader.segments, pmids, dois, pmcids)

    def inspect_filters(self, asked: FilterInquiry) -> FilterFacts:
        """Return the facts about filter values that `asked` requests of this shard."""
        return inspect_filters(self.reader.segments, asked)

    def references(self, pmids: Sequence[int]) -> dict[int, tuple[int, ...] | None]:
        """Return the references of the articles that are in the shard; None if unknown."""
        return self.reader.references(pmids)

    def doubts(self, pmids: Sequence[int]) -> dict[int, Doubt]:
        """Return those `pmids` that records of the shard mark as retracted or doubted."""
        return self.reader.doubts(pmids)

    def match(self, expression: Expression) -> FromVersion[ShardMatches]:
        """Return the matching citations, or why there are too many, with the version."""
        pmids, months = np.empty(0, np.int64), np.empty(0, np.int32)
        try:
            pmids, months = self.reader.match_dated(expression, self._analyser)
            refused = ""
            if len(pmids) > MOST_MATCHES:
                pmids, months = pmids[:0], months[:0]
                refused = (
                    f"query: over {MOST_MATCHES:,} citations in one part of the index match; add "
                    "terms with AND"
                )
        except InputError as error:
            refused = str(error)
        return FromVersion(ShardMatches(pmids, months, refused), self.name)

    def citations(self, pmids: Sequence[int]) -> list[Citation]:
        """Return the records of those `pmids` that the shard has, in the same order."""
        return self.reader.citations(pmids)

    def citation(self, pmid: int) -> Citation | None:
        """Return the record of `pmid`, or None if the shard does not have it."""
        return self.reader.citation(pmid)


# Callers select the shard with `at(shard_stage(number))` or `of_shard(number)`.
FIND = stage_method("shard", ShardVersion.find, "retrieve")
FETCH = stage_method("shard", ShardVersion.fetch, "fetch")
IDENTIFY = stage_method("shard", ShardVersion.identify, "identify")
INSPECT_FILTERS = stage_method("shard", ShardVersion.inspect_filters, "filters")
REFERENCES = stage_method("shard", ShardVersion.references, "exposure")
DOUBTS = stage_method("shard", ShardVersion.doubts, "exposure")
MATCH = stage_method("shard", ShardVersion.match, "boolean", limit=REQUEST)
CITATIONS = stage_method("shard", ShardVersion.citations, "citations", limit=REQUEST)
CITATION = stage_method("shard", ShardVersion.citation, "citation")
