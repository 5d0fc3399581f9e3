"""Look up citations by PMID in the published index version."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from cluster.exposure import Doubt, Exposure, find_exposure, join_doubts
from cluster.index.layout import shard_of
from cluster.index.read_shard import ShardReader
from cluster.records import Citation
from cluster.settings.settings import Settings
from serve.graph.load_stages import load_shard, open_manifest

_PMIDS = range(1, 1 << 63)
# Number of cached citations, because a question's documents are looked up again for its snippets.
_KEPT = 1024


class CitationLookup:
    """Citations by PMID; opens and verifies a shard when one of its PMIDs is first requested.

    Raises IndexFormatError if `index.path` has no index or a damaged one.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._manifest = open_manifest(settings)
        self._readers: dict[int, ShardReader] = {}
        self._read = lru_cache(maxsize=_KEPT)(lambda pmid: self._shard(pmid).citation(pmid))

    @property
    def version(self) -> str:
        """The name of the index version, such as v000001."""
        return self._manifest.version

    def find(self, pmid: int) -> Citation | None:
        """Return the citation, or None if this version has no live one."""
        return self._read(pmid) if pmid in _PMIDS else None

    def texts(self, pmids: Sequence[int]) -> dict[int, str]:
        """Return title and abstract of each PMID in this version, in the order of `pmids`."""
        found = {pmid: self.find(pmid) for pmid in pmids}
        return {pmid: citation.search_text for pmid, citation in found.items() if citation}

    def exposure(self, pmid: int) -> Exposure:
        """Return whether an article is in doubt or cites such articles; opens every shard."""
        cited = self._shard(pmid).references([pmid])
        asked = [pmid, *(cited.get(pmid) or ())]
        doubts: dict[int, Doubt] = {}
        for number in range(len(self._manifest.shards)):
            join_doubts(doubts, self._numbered(number).doubts(asked))
        return find_exposure([pmid], cited, doubts)

    def _shard(self, pmid: int) -> ShardReader:
        return self._numbered(shard_of(pmid, len(self._manifest.shards)))

    def _numbered(self, number: int) -> ShardReader:
        if number not in self._readers:
            self._readers[number] = load_shard(self._settings, self._manifest, number)
        return self._readers[number]
