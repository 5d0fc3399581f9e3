"""The stages that read the index, as replicas that follow its versions by themselves.

A handle is a `ray.serve.handle.DeploymentHandle`; this module does not import Ray.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.index.filters.inspect_filters import FilterFacts, FilterInquiry
from cluster.index.manifest import Manifest
from cluster.index.read_shard import Fetched, Found, ShardQuery
from cluster.index.terms.collection import Statistics
from cluster.index.tokens.codec import Halves
from cluster.index.vectors import Vectors
from cluster.records import Citation, Entity
from cluster.settings.settings import Settings
from serve.graph.call_handles import Handle, HandleTurns
from serve.graph.versions.follow_versions import StageVersion, follow_expander, follow_shard
from serve.graph.versions.read_version import FromVersion
from serve.question.understand_question import Suggestion, Understood


class Expander:
    """Finds the entities and term statistics of questions; follows the index versions."""

    def __init__(self, settings: Settings, manifest: Manifest, turns: Handle) -> None:
        self._follower = follow_expander(settings, manifest)
        self._follower.follow(settings.serve.follow_s, HandleTurns(turns))

    def understand(self, text: str, over: str, named: bool) -> Understood:
        """See `serve.question.understand_question.Expander`; uses the current version."""
        return self._follower.current.value.understand(text, over, named)

    def entities(self, text: str) -> list[Entity]:
        """See `Recogniser.entities`; uses the current version."""
        return self._follower.current.value.entities(text)

    def headings(self, names: Sequence[str]) -> dict[str, str]:
        """See `Expander.headings`; uses the current version."""
        return self._follower.current.value.headings(names)

    def did_you_mean(self, body: str) -> str | None:
        """See `Expander.did_you_mean`; uses the current version."""
        return self._follower.current.value.did_you_mean(body)

    def suggest(self, prefix: str, limit: int) -> list[Suggestion]:
        """See `Expander.suggest`; uses the current version."""
        return self._follower.current.value.suggest(prefix, limit)

    def statistics(self, terms: Sequence[str], over: str) -> Statistics:
        """See `CollectionTerms.statistics`; uses the current version."""
        return self._follower.current.value.statistics(terms, over)

    def version(self) -> StageVersion:
        """Return the vocabulary version in use, and why a newer one is refused."""
        return self._follower.state()

    def ready(self) -> str:
        """Return "ready" once the recogniser is loaded."""
        return "ready"


class Shard:
    """One shard of the index; its methods run in threads, and its libraries release the GIL."""

    def __init__(self, settings: Settings, manifest: Manifest, turns: Handle, number: int) -> None:
        self._follower = follow_shard(settings, manifest, number)
        self._follower.follow(settings.serve.follow_s, HandleTurns(turns))

    def find(self, query: ShardQuery) -> FromVersion[Found]:
        """See `ShardReader.find`; the reply names the version that was searched."""
        return self._follower.current.value.find(query)

    def fetch(
        self, pmids: Sequence[int], vector: Vectors | None, tokens: Halves | None
    ) -> FromVersion[list[Fetched]]:
        """See `ShardReader.fetch`; the reply names the version that was read."""
        return self._follower.current.value.fetch(pmids, vector, tokens)

    def citation(self, pmid: int) -> Citation | None:
        """See `ShardReader.citation`; uses the current version."""
        return self._follower.current.value.citation(pmid)

    def identify(
        self, pmids: Sequence[int], dois: Sequence[str], pmcids: Sequence[str] = ()
    ) -> dict[str, int]:
        """See `cluster.index.read_segment.identify`; uses the current version."""
        return self._follower.current.value.identify(pmids, dois, pmcids)

    def inspect_filters(self, asked: FilterInquiry) -> FilterFacts:
        """See `cluster.index.filters.inspect_filters`; uses the current version."""
        return self._follower.current.value.inspect_filters(asked)

    def version(self) -> StageVersion:
        """Return the version that is served, and why a newer one is refused."""
        return self._follower.state()

    def ready(self) -> str:
        """Return "ready" once the shard is open and its checksums are verified."""
        return "ready"
