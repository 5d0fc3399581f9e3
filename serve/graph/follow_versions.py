"""Switch a running stage to each newly published version of the index.

Each replica polls for new versions itself, so no central list of replicas is needed. A lease lets
only one replica open a new version at a time, so at most one shard is open twice. A request that
has read `current` uses that version until it ends.
"""

from __future__ import annotations

import logging
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index.manifest import Manifest, current_pointer, read_manifest
from cluster.index.versions import analyser_of
from cluster.models.adapters import full_name
from cluster.settings.settings import Settings
from cluster.storage.locations import Location
from serve.graph.load_stages import (
    load_expander,
    load_recogniser,
    load_shard,
)
from serve.graph.version_lease import VersionLease, held
from serve.question.expand_question import Recogniser
from serve.question.understand_question import Expander
from serve.search.shard_stage import ShardVersion, VersionName

T = TypeVar("T")
log = logging.getLogger("citeray")

LEASE_POLL_S = 0.5
# Exponential back-off: a refused version is retried after 2 polls, then 4, up to this number.
MOST_LOOKS = 64


def check_follows(deployed: Manifest, published: Manifest) -> None:
    """Raise IndexFormatError if a graph started on `deployed` cannot serve `published`."""
    again = "start the graph again to serve it"
    if analyser_of(published) != analyser_of(deployed):
        raise IndexFormatError(
            f"its BM25 terms were made by {published.analyser}, the graph was started with "
            f"{deployed.analyser}; {again}"
        )
    shards, before = len(published.shards), len(deployed.shards)
    if shards != before:
        raise IndexFormatError(
            f"it has {shards} shards, the graph was started on {before}; {again}"
        )
    encoder, old = published.encoder, deployed.encoder
    if encoder.sha256 != old.sha256:
        raise IndexFormatError(
            f"its vectors are by {full_name(encoder)} ({encoder.sha256[:12]}), the graph was "
            f"started with {full_name(old)} ({old.sha256[:12]}); {again}"
        )
    missing = [over for over in deployed.bm25_over if over not in published.bm25_over]
    if missing:
        raise IndexFormatError(f"it has no BM25 over {' and '.join(missing)}; {again}")


@dataclass(frozen=True, slots=True)
class Opened(Generic[T]):
    """A version and the data that a stage has opened from it."""

    manifest: Manifest
    value: T


@dataclass(frozen=True, slots=True)
class StageVersion:
    """The version that a stage serves.

    `refused` says in one sentence why the published version is not served; "" if it is.
    """

    name: VersionName
    citations: int
    refused: str


class Follower(Generic[T]):
    """Opens the published version, and later versions when `look` finds them.

    `deployed` is the version on which the graph was started; if `pinned`, it is always served.
    `open_version` receives a manifest and the value opened for the previous version,
    whose files it may share. A replica that starts while the published version cannot be served
    falls back to the version before it, then to `deployed`; if neither opens, the error of the
    published version is raised.
    """

    def __init__(
        self,
        index: Location,
        deployed: Manifest,
        open_version: Callable[[Manifest, T | None], T],
        *,
        pinned: bool = False,
    ) -> None:
        self._pinned = pinned
        self._index = index
        self._deployed = deployed
        self._open_version = open_version
        self._tried: dict[str, str] | None = None
        self._refused = ""
        self._failures = self._looks_to_skip = 0
        self.current: Opened[T] = self._open_first()

    def state(self) -> StageVersion:
        """Return the version in use, and why the published one is refused. Thread-safe."""
        manifest = self.current.manifest
        return StageVersion(VersionName.of(manifest), manifest.citations, self._refused)

    def look(self, lease: VersionLease, holder: str) -> bool:
        """Switch to the published version if it is new; return False if the lease is taken."""
        try:
            pointer = current_pointer(self._index)
        except (CiteRayError, OSError) as error:
            self._tried = None
            self._refuse(error)
            return True
        if pointer == self._tried and self._skips():
            return True
        if not lease.acquire(holder):
            return False
        with held(lease, holder):
            self._move(pointer)
        return True

    def follow(self, every_s: float, lease: VersionLease) -> None:
        """Call `look` every `every_s` seconds in a daemon thread; 0 disables polling."""
        if every_s and not self._pinned:
            threading.Thread(target=self._follow, args=(every_s, lease), daemon=True).start()

    def _follow(self, every_s: float, lease: VersionLease) -> None:
        holder = uuid.uuid4().hex
        stopped = threading.Event()  # Never set: its `wait` only sleeps.
        pause_s = every_s * random.random()
        while not stopped.wait(pause_s):
            pause_s = every_s
            try:
                if not self.look(lease, holder):
                    pause_s = min(LEASE_POLL_S, every_s)
            except Exception:
                # The deployment that grants the lease is down; Serve restarts it.
                log.warning("cannot check for a new index version", exc_info=True)

    def _skips(self) -> bool:
        """Return True if this poll can be skipped: the version is served, or not due for retry."""
        if not self._refused:
            return True
        self._looks_to_skip -= 1
        return self._looks_to_skip >= 0

    def _open_first(self) -> Opened[T]:
        if self._pinned:
            return self._open(self._deployed, None)
        try:
            self._tried = current_pointer(self._index)
            return self._open_published(None)
        except (CiteRayError, OSError) as error:
            self._refuse(error)
            for manifest in self._fallbacks():
                with suppress(CiteRayError, OSError):
                    return self._open(manifest, None)
            raise

    def _fallbacks(self) -> Iterator[Manifest]:
        before = None
        with suppress(CiteRayError, OSError):
            history = read_manifest(self._index).history
            before = read_manifest(self._index, history[-1].version) if history else None
        if before is not None:
            yield before
        yield self._deployed

    def _move(self, pointer: dict[str, str] | None) -> None:
        if pointer != self._tried:
            self._tried, self._failures = pointer, 0
        try:
            self.current = self._open_published(self.current.value)
        except Exception as error:  # Keep serving the old version after any failure.
            self._failures += 1
            self._looks_to_skip = min(2**self._failures, MOST_LOOKS) - 1
            self._refuse(error)
            return
        self._refused = ""
        log.info("serving %s now", self.current.manifest.version)

    def _open_published(self, before: T | None) -> Opened[T]:
        return self._open(read_manifest(self._index), before)

    def _open(self, manifest: Manifest, before: T | None) -> Opened[T]:
        check_follows(self._deployed, manifest)
        return Opened(manifest, self._open_version(manifest, before))

    def _refuse(self, error: Exception) -> None:
        version = self._tried["version"] if self._tried else "the published version"
        sentence = f"{version} is not served: {error}"
        if sentence != self._refused:
            log.warning("%s", sentence)
        self._refused = sentence


def _follower(
    settings: Settings, deployed: Manifest, open_version: Callable[[Manifest, T | None], T]
) -> Follower[T]:
    pinned = bool(settings.serve.as_of)
    return Follower(settings.index.location, deployed, open_version, pinned=pinned)


def follow_shard(settings: Settings, deployed: Manifest, number: int) -> Follower[ShardVersion]:
    """Return a Follower of shard `number`; segments of both versions are opened only once."""

    def open_version(manifest: Manifest, before: ShardVersion | None) -> ShardVersion:
        shared = before.reader if before else None
        return ShardVersion(load_shard(settings, manifest, number, shared), manifest)

    return _follower(settings, deployed, open_version)


def follow_vocabulary(settings: Settings, deployed: Manifest) -> Follower[Recogniser]:
    """Return a Follower that loads the recogniser of each version, but a transformer once."""
    return _follower(settings, deployed, partial(load_recogniser, settings))


def follow_expander(settings: Settings, deployed: Manifest) -> Follower[Expander]:
    """Return a Follower that loads the expander of each version, but a transformer once."""
    return _follower(settings, deployed, partial(load_expander, settings))
