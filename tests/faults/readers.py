"""Readers of both shards of an index, which open and follow versions as a graph does.

An open version reads the same until it is closed, whatever is published or pruned. A look at the
index moves a reader to a complete newer version or changes nothing; it never moves back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cluster.errors import CiteRayError
from cluster.index.layout import shard_of
from cluster.index.manifest import Manifest
from cluster.index.read_shard import ShardQuery
from cluster.records import Citation
from cluster.settings.settings import Settings
from cluster.storage.locations import Location
from serve.graph.follow_versions import MOST_LOOKS, Follower, follow_shard
from serve.graph.version_lease import MemoryLease
from serve.search.shard_stage import ShardVersion
from tests.faults.steps import DifferenceError
from tests.small_index import bag_of_words

Held = Mapping[str, Mapping[int, Citation]]


class Readers:
    """The shards of a graph, opened by the first `look` and closed by `die`."""

    def __init__(
        self, settings: Settings, index: Location, cache: Path, pmids: Sequence[int]
    ) -> None:
        path = index if isinstance(index, Path) else index.url
        changed = settings.index.model_copy(update={"path": path, "cache": cache})
        self._settings = settings.model_copy(update={"index": changed})
        self._pmids = pmids
        self._open: list[Follower[ShardVersion]] = []
        self._lease = MemoryLease()

    def die(self) -> None:
        self._open = []

    def look(self, manifest: Manifest) -> None:
        """Let each shard follow the index once; the first call opens `manifest`."""
        for number in range(len(manifest.shards)):
            if number == len(self._open):
                self._open.append(follow_shard(self._settings, manifest, number))
            else:
                self._open[number].look(self._lease, "reader")

    def look_until_there(self, manifest: Manifest) -> None:
        """Look until the readers are up to date; raises DifferenceError if they never are."""
        for _ in range(MOST_LOOKS + 1):
            self.look(manifest)
            found = {follower.state().name.version for follower in self._open}
            if found == {manifest.version}:
                return
        raise DifferenceError(f"of {manifest.version} readers say {self._open[0].state().refused}")

    def check(self, held: Held) -> None:
        """Check that open versions read as before; raises DifferenceError otherwise."""
        for number, follower in enumerate(self._open):
            shard, count = follower.current.value, len(follower.current.manifest.shards)
            version = shard.name.version
            mine = {p: c for p, c in held[version].items() if shard_of(p, count) == number}
            fetched = shard.fetch(self._pmids, None, None).value
            found = {one.citation.pmid: one.citation for one in fetched}
            if found != mine:
                raise DifferenceError(f"the open {version} reads otherwise now: {sorted(found)}")
            searched = set(_search(shard))
            if searched != {p for p, c in mine.items() if c.title or c.sections}:
                raise DifferenceError(f"a search of the open {version} finds {sorted(searched)}")


def _search(shard: ShardVersion) -> Sequence[int]:
    query = ShardQuery(bag_of_words(["aspirin trial"])[0], None, 100, 0, "citations", fetched=100)
    found = shard.find(query).value
    pmids: list[int] = found.candidates.pmids.tolist()
    return pmids


def refused(read: Callable[[], object]) -> str:
    """Return the error of `read`, or "" if it succeeds."""
    try:
        read()
    except CiteRayError as error:
        return f"{error}"
    return ""
