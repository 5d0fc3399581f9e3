"""The stages that read the index, as replicas that follow its versions by themselves.

A handle is a `ray.serve.handle.DeploymentHandle`; nothing here needs to import Ray.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.index.manifest import Manifest
from cluster.index.read_shard import Candidates, Fetched, ShardQuery, Statistics
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity
from cluster.settings.settings import Settings
from serve.graph.call_handles import Handle, HandleTurns
from serve.graph.versions.follow_versions import StageVersion, follow_shard, follow_vocabulary
from serve.graph.versions.read_version import FromVersion


class Expander:
    """Finds the entities of questions; follows the index's vocabulary."""

    def __init__(self, settings: Settings, manifest: Manifest, turns: Handle) -> None:
        self._follower = follow_vocabulary(settings, manifest)
        self._follower.follow(settings.serve.follow_s, HandleTurns(turns))

    def entities(self, text: str) -> list[Entity]:
        """See `Recogniser.entities`; by the current version's vocabulary."""
        return self._follower.current.value.entities(text)

    def version(self) -> StageVersion:
        """The version of the vocabulary in use, and why a newer one is not."""
        return self._follower.state()

    def ready(self) -> str:
        """Answers once the recogniser is loaded."""
        return "ready"


class Shard:
    """One shard of the index; its methods run in threads, and the libraries free the GIL."""

    def __init__(self, settings: Settings, manifest: Manifest, turns: Handle, number: int) -> None:
        self._follower = follow_shard(settings, manifest, number)
        self._follower.follow(settings.serve.follow_s, HandleTurns(turns))

    def statistics(self, terms: list[str], over: str) -> Statistics:
        """See `ShardReader.statistics`, of the current version."""
        return self._follower.current.value.statistics(terms, over)

    def search(self, query: ShardQuery) -> FromVersion[Candidates]:
        """See `ShardReader.search`; tells which version was searched."""
        return self._follower.current.value.search(query)

    def fetch(self, pmids: Sequence[int], vector: Vectors | None) -> FromVersion[list[Fetched]]:
        """See `ShardReader.fetch`; tells which version was read."""
        return self._follower.current.value.fetch(pmids, vector)

    def citation(self, pmid: int) -> Citation | None:
        """See `ShardReader.citation`, of the current version."""
        return self._follower.current.value.citation(pmid)

    def version(self) -> StageVersion:
        """The version that is served, and why a newer one is not."""
        return self._follower.state()

    def ready(self) -> str:
        """Answers once the shard is open and its checksums are verified."""
        return "ready"
