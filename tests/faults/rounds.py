"""One round: operations drawn by a seed, some with a fault, against a sequential reading.

Whatever happens to a command, the published version is the one before it or its own, and holds
what a plain reading of its sources does. The same command, run again without a fault, ends well,
and every version that was published stays readable.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index import lease_record
from cluster.index.manifest import Manifest, current_version, read_manifest
from cluster.records import Citation
from cluster.storage.places import Place, StoredPlace, remove
from pipelines.update.compact_index import prune
from pipelines.verify.verify_index import verify_index
from tests.faults.inject import FAULTS, Injector, Killed
from tests.faults.memory_store import STORE_FAULTS, MemoryStore
from tests.pipelines.histories import Event, File, SmallIndex, live

PMIDS = range(1, 9)
TEXTS = ("aspirin", "heparin again", "v2 iron", "v3 iron", "", None, "-v1", "-v2")
OPERATIONS = ("update", "update", "update", "compact", "prune", "unstage", "verify")
MOST_MOMENTS, MOST_REQUESTS = 90, 120
# One BM25 side has all there is to write.
OVERRIDES = ("index.bm25_over=[citations]",)


@dataclass(frozen=True)
class Step:
    """An operation with the events of its file, if it has one, and a fault at a moment.

    `others` are the events of what another process applies while this one is stopped.
    """

    operation: str
    events: tuple[Event, ...] = ()
    fault: str = ""
    at: int = 0
    others: tuple[Event, ...] = ()

    def __str__(self) -> str:
        told = f" of {list(self.events)}" if self.events else ""
        return f"{self.operation}{told}" + (f", {self.fault} at {self.at}" if self.fault else "")


def in_store(seed: int) -> bool:
    """Whether the index of the round of `seed` lies in an object store."""
    return seed % 3 == 2


def draw(seed: int) -> tuple[Step, ...]:
    """The steps of the round of `seed`: a build first, then up to five more."""
    dice = random.Random(seed)
    faults = STORE_FAULTS if in_store(seed) else FAULTS
    most = MOST_REQUESTS if in_store(seed) else MOST_MOMENTS

    def events() -> tuple[Event, ...]:
        count = dice.randint(1, 5)
        return tuple((dice.choice(PMIDS), dice.choice(TEXTS)) for _ in range(count))

    def step(operation: str) -> Step:
        fault = dice.choice(faults) if dice.random() < 0.6 else ""
        mine = events() if operation in ("build", "update") else ()
        if operation == "build":
            mine = (*mine, (1, "aspirin"))
        others = (*events(), (1, "aspirin")) if fault == "stop" else ()
        return Step(operation, mine, fault, dice.randint(1, most), others)

    rest = [step(dice.choice(OPERATIONS)) for _ in range(dice.randint(1, 5))]
    return (step("build"), *rest)


class DifferenceError(AssertionError):
    """What the index holds is not what it should."""


class Round:
    """Runs steps on an index in `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._store = MemoryStore() if in_store(seed) else None
        url = "s3://bucket/index"
        self._place: Place = (
            StoredPlace.at(url, folder / "cache") if self._store else folder / "index"
        )
        self._index = SmallIndex(self._place, overrides=OVERRIDES)
        self._dice = random.Random(seed)
        self._files: list[File] = []
        self._versions: dict[str, dict[int, Citation]] = {}
        self.fired: list[str] = []

    def run(self, steps: Sequence[Step]) -> None:
        """Raises DifferenceError, or whatever a command raised that it must not."""
        with self._store.in_place() if self._store else nullcontext():
            for step in steps:
                if step.fault:
                    self._attempt(step)
                self._resume()
                files = [*self._files, step.events] if step.events else self._files
                if not step.events or self._index.applied < len(files):
                    self._do(step)
                self._files = files
                self._check(step, [files])
            self._finish()

    def _attempt(self, step: Step) -> None:
        """Do the step with its fault; what another process published meanwhile stays."""
        mine = [step.events] if step.events else []
        with suppress(Killed, CiteRayError, OSError):
            self._store_fault(step) if self._store else self._disk_fault(step)
        self._check(step, [self._files, [*self._files, *mine]])

    def _store_fault(self, step: Step) -> None:
        assert self._store is not None
        self._store.fail(step.fault, step.at)
        try:
            self._do(step)
        finally:
            if self._store.fired:
                self.fired.append(step.fault)
            self._store.fail("", 0)

    def _disk_fault(self, step: Step) -> None:
        assert isinstance(self._place, Path)
        injector = Injector(self._place, step.fault, step.at, lambda: self._overtake(step))
        try:
            with injector.watching():
                self._do(step)
        finally:
            if injector.fired:
                self.fired.append(step.fault)
            injector.after(self._dice)

    def _overtake(self, step: Step) -> None:
        """While this process is stopped, its lease expires and another applies a file."""
        other = SmallIndex(self._place, overrides=OVERRIDES)
        published = current_version(self._place)
        other.manifest = read_manifest(self._place) if published else None
        other.applied = len(other.manifest.sources) if other.manifest else 0
        if other.applied > len(self._files):
            return
        with patch("cluster.index.lease.LEASE_S", -1000.0):
            self._do(Step("update", step.others), other)
        self._files = [*self._files, step.others]

    def _do(self, step: Step, index: SmallIndex | None = None) -> None:
        index = index or self._index
        path = index.path
        # Whoever was killed before is no holder any more, as with a process of its own.
        lease_record.active_here.clear()
        if step.operation in ("build", "update") and index.manifest is None:
            index.build([step.events])
        elif step.operation in ("build", "update"):
            index.update([step.events])
        elif index.manifest is None:
            return
        elif step.operation == "compact":
            index.compact()
        elif step.operation in ("prune", "unstage"):
            remove(path / "staging")
            if step.operation == "prune":
                prune(path, index.manifest)
        else:
            verify_index(path)

    def _resume(self) -> None:
        """What another process finds: the published version, and how many files are in it."""
        path = self._index.path
        published = current_version(path)
        manifest = read_manifest(path) if published else None
        self._index.manifest = manifest
        self._index.applied = len(self._files_of(manifest))

    def _files_of(self, manifest: Manifest | None) -> tuple:
        return manifest.sources if manifest else ()

    def _check(self, step: Step, allowed: list[list[File]]) -> None:
        published = current_version(self._index.path)
        if published is None:
            if [] not in allowed:
                raise DifferenceError(f"after {step}: nothing is published")
            return
        manifest = read_manifest(self._index.path)
        count = len(manifest.sources)
        if count not in {len(files) for files in allowed}:
            raise DifferenceError(f"after {step}: {published} is of {count} files")
        held = live(next(files for files in allowed if len(files) == count))
        found = self._index.citations(PMIDS, manifest)
        if {pmid: f.citation for pmid, f in found.items()} != held:
            raise DifferenceError(f"after {step}: {published} holds {sorted(found)}")
        if self._versions.setdefault(published, held) != held:
            raise DifferenceError(f"after {step}: {published} was used twice")
        if published != max(self._versions):
            raise DifferenceError(f"after {step}: {published} after {max(self._versions)}")

    def _finish(self) -> None:
        """At the end verify finds nothing wrong, and a prune leaves nothing over."""
        assert self._index.manifest is not None
        path = self._index.path
        for entry in self._index.manifest.history:
            with suppress(IndexFormatError):
                held = self._versions.get(entry.version)
                earlier = read_manifest(path, entry.version)
                found = self._index.citations(PMIDS, earlier)
                if held is not None and {p: f.citation for p, f in found.items()} != held:
                    raise DifferenceError(f"{entry.version} reads otherwise now")
        # As a command of tomorrow finds them, the files that were being written are old.
        for aside in path.glob(".*") if isinstance(path, Path) else ():
            os.utime(aside, (0, 0))
        self._do(Step("prune"))
        result = verify_index(path)
        if result.findings or result.leftovers:
            told = "; ".join(map(str, (*result.findings, *result.leftovers)))
            raise DifferenceError(f"at the end verify says: {told}")


def failure_of(seed: int, steps: Sequence[Step]) -> tuple[str, list[str]]:
    """How the round fails, "" if it does not, and the faults that happened."""
    # In memory: what a disk may lose is cut by the rounds themselves.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=memory))
    try:
        played = Round(folder, seed)
        try:
            with patch.object(tempfile, "tempdir", str(folder)):
                played.run(steps)
        except Exception as error:
            return f"{type(error).__name__}: {error}", played.fired
        return "", played.fired
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shrink(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool]) -> tuple[Step, ...]:
    """Fewer steps, faults and events that fail as well."""
    steps = tuple(steps)
    while True:
        for smaller in _smaller(steps):
            if fails(smaller):
                steps = smaller
                break
        else:
            return steps


def _smaller(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for place in range(len(steps) - 1, 0, -1):
        yield steps[:place] + steps[place + 1 :]
    for place, step in enumerate(steps):
        if step.fault:
            yield (*steps[:place], replace(step, fault="", at=0), *steps[place + 1 :])
        for event in range(len(step.events)):
            fewer = step.events[:event] + step.events[event + 1 :]
            if fewer:
                yield (*steps[:place], replace(step, events=fewer), *steps[place + 1 :])
