"""Rounds of commands on one index, against a sequential reading of its sources.

Whatever happens to a command, the published version is the one before it or its own, and holds
what a plain reading of its sources does. The same command, run again without a fault, ends well,
and every version that was published stays readable, to readers that have it open as well.

After a loss of power on a disk that had not kept what it said it had, nobody reads anything else
than what was published: it is refused, and `verify` says so. Then the index is built again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index import copies, lease_record, put_segment
from cluster.index.lease import LEASE_S, LeaseHeldError
from cluster.index.manifest import current_version, read_manifest
from cluster.records import Citation
from cluster.storage.places import Place, StoredPlace, remove
from pipelines.update.compact_index import prune
from pipelines.verify.verify_index import verify_index
from tests.faults.clock import JUMP_S, Clock
from tests.faults.inject import DEADLY, FAULTS, Injector, Killed
from tests.faults.memory_store import STORE_FAULTS, MemoryStore
from tests.faults.readers import Readers, refused
from tests.faults.steps import DifferenceError, Draw, Step
from tests.pipelines.histories import Event, File, SmallIndex, live

PMIDS = range(1, 9)
TEXTS = ("aspirin", "heparin again", "v2 iron", "v3 iron", "", None, "-v1", "-v2")
WRITES = ("build", "update", "each")
OPERATIONS = ("update", "update", "each", "compact", "prune", "unstage", "verify", "swap", "swap")
# What a reader meets: a store that fails, or, of its copies, a disk that does.
READ_FAULTS = ("store down", "throttled", "cut reply", "store kill", "stale lists")
CACHE_FAULTS = ("disk full", "read-only", "failing disk", "kill", "power cut")
INDEX_FAULTS = (*FAULTS, *STORE_FAULTS)
# How many moments an operation has on a disk, and how many requests of a store; about.
MOMENTS = {
    "build": (148, 124), "update": (102, 79), "each": (192, 145), "compact": (82, 61),
    "prune": (34, 26), "unstage": (10, 8), "verify": (108, 83), "swap": (104, 18),
}  # fmt: skip
# In these another process applies a file while the first is at work.
OVERTAKEN = ("stop", "clock ahead", "slow disk", "store clock ahead", "slow store")
SLOW = ("slow disk", "slow store")
# A command must end well all the same.
HARMLESS = (*SLOW, "readers look")
CLOCK_BACK = ("clock back", "store clock back")
# One BM25 side has all there is to write.
OVERRIDES = ("index.bm25_over=[citations]",)


def draw_index(dice: random.Random, turn: int, *, in_store: bool) -> tuple[Step, ...]:
    """A build first, then up to five more."""
    drawn = Draw(dice, turn, STORE_FAULTS if in_store else FAULTS, 0)

    def events() -> tuple[Event, ...]:
        count = dice.randint(1, 5)
        return tuple((dice.choice(PMIDS), dice.choice(TEXTS)) for _ in range(count))

    def step(operation: str) -> Step:
        if operation == "swap":
            fault = drawn.fault((*READ_FAULTS, *CACHE_FAULTS)) if in_store else ""
            return drawn.step(operation, (), fault, (), MOMENTS["swap"][fault in STORE_FAULTS])
        fault = drawn.fault()
        mine = events() if operation in WRITES else ()
        if operation == "build":
            mine = (*mine, (1, "aspirin"))
        alone = fault not in OVERTAKEN or (fault in SLOW and dice.random() < 0.5)
        others = () if alone else (*events(), (1, "aspirin"))
        return drawn.step(operation, mine, fault, others, MOMENTS[operation][in_store])

    rest = [step(dice.choice(OPERATIONS)) for _ in range(dice.randint(1, 5))]
    return (step("build"), *rest)


def files_of(step: Step) -> list[File]:
    """The files that a step applies: `each` publishes a version for every one of two."""
    if step.operation == "each" and len(step.events) > 1:
        return [step.events[:1], step.events[1:]]
    return [step.events] if step.events else []


class IndexRound:
    """Runs steps on an index in `folder`, or in an object store."""

    def __init__(self, folder: Path, seed: int, *, in_store: bool) -> None:
        self._cache = folder / "cache"
        self._cache.mkdir()
        index = folder / "index"
        self._clock = Clock(None if in_store else index)
        self._store = MemoryStore(self._clock) if in_store else None
        url = "s3://bucket/index"
        self._place: Place = StoredPlace.at(url, self._cache) if in_store else index
        self._index = SmallIndex(self._place, overrides=OVERRIDES)
        self._readers = Readers(self._index.settings, self._place, self._cache, PMIDS)
        self._dice = random.Random(seed)
        self._files: list[File] = []
        self._versions: dict[str, dict[int, Citation]] = {}
        # Those of a step that published several, which a reader may have opened.
        self._passed: dict[str, dict[int, Citation]] = {}
        self._machine = "one"
        self.fired: list[str] = []

    def run(self, steps: Sequence[Step]) -> None:
        """Raises DifferenceError, or whatever a command raised that it must not."""
        with ExitStack() as stack:
            stack.enter_context(self._clock.in_place())
            if self._store:
                stack.enter_context(self._store.in_place())
            # One thing after the other, or a moment were another one in each run.
            for module, name in ((copies, "_COPIED_AT_ONCE"), (put_segment, "_SENT_AT_ONCE")):
                stack.enter_context(patch.object(module, name, 1))
            # Nobody can tell of a process of another machine whether it lives.
            stack.enter_context(patch.object(lease_record, "_machine", lambda: self._machine))
            for step in steps:
                if step.fault:
                    self._attempt(step)
                self._resume()
                files = [*self._files, *files_of(step)]
                self._do(step, files)
                self._files = files
                self._check(step, [files])
            self._finish()

    def _attempt(self, step: Step) -> None:
        """Do the step with its fault; what another process published meanwhile stays."""
        endures = step.fault in HARMLESS and not step.others
        with suppress(Killed) if endures else suppress(Killed, CiteRayError, OSError, MemoryError):
            self._with_fault(step)
        if self.fired[-1:] == [step.fault]:
            self._aftermath(step)
        self._check(step, self._allowed(step))

    def _aftermath(self, step: Step) -> None:
        if step.fault in CLOCK_BACK:
            self._clock.set_by(-JUMP_S)
            self._clock.let_pass(LEASE_S + 1)
            self._machine = f"after {len(self.fired)} faults"
        if step.operation == "swap" and step.fault in (*DEADLY, "store kill"):
            self._readers.die()
        if step.fault == "lying disk":
            self._look_at_damage(step)

    def _look_at_damage(self, step: Step) -> None:
        """What was published is read or refused, and `verify` says so; then it is built again."""
        why = refused(lambda: self._check(step, self._allowed(step)))
        found = [] if why == "" else [refused(lambda: verify_index(self._place))]
        if why and not found[0] and not verify_index(self._place).findings:
            raise DifferenceError(f"after {step}: verify has no word of {why}")
        remove(self._place)
        self._readers.die()
        self._versions = {}
        self._resume()
        self._do(Step("build"), self._files)

    def _allowed(self, step: Step) -> list[list[File]]:
        mine = files_of(step)
        return [[*self._files, *mine[:count]] for count in range(len(mine) + 1)]

    def _with_fault(self, step: Step) -> None:
        files = [*self._files, *files_of(step)]
        if self._store and step.fault in STORE_FAULTS:
            self._store.fail(step.fault, step.at, lambda: self._meanwhile(step))
            try:
                self._do(step, files, faulty=True)
            finally:
                if self._store.fired:
                    self.fired.append(step.fault)
                self._store.fail("", 0)
            return
        root = self._cache if self._store else self._index.path
        assert isinstance(root, Path)
        injector = Injector(root, step.fault, step.at, lambda: self._meanwhile(step), self._clock)
        try:
            with injector.watching():
                self._do(step, files, faulty=True)
        finally:
            if injector.fired:
                self.fired.append(step.fault)
            injector.after(self._dice)

    def _meanwhile(self, step: Step) -> bool:
        """Readers look, or another process applies a file; False where the lease forbids it."""
        if step.fault == "readers look":
            if current_version(self._place):
                self._readers.look(read_manifest(self._place))
            self._check(step, self._allowed(step))
            return True
        other = SmallIndex(self._place, overrides=OVERRIDES)
        published = current_version(self._place)
        other.manifest = read_manifest(self._place) if published else None
        other.applied = len(other.manifest.sources) if other.manifest else 0
        if not step.others or other.applied > len(self._files):
            return True
        if step.operation == "build" and not lease_record.active_here:
            # A build that begins after another's is one in its place, of its own sources alone.
            return False
        files, machine, self._machine = [*self._files, step.others], self._machine, "another"
        lease_s = -1000.0 if step.fault == "stop" else LEASE_S
        try:
            with patch("cluster.index.lease.LEASE_S", lease_s):
                self._do(Step("update", step.others), files, other)
        except LeaseHeldError:
            return False
        finally:
            self._machine = machine
        self._files = files
        return True

    def _do(
        self,
        step: Step,
        files: Sequence[File],
        index: SmallIndex | None = None,
        *,
        faulty: bool = False,
    ) -> None:
        index = index or self._index
        path = index.path
        # Whoever was killed before is no holder any more, as with a process of its own.
        lease_record.active_here.clear()
        if step.operation in WRITES:
            for file in files[index.applied :]:
                now = index.build([file]) if index.manifest is None else index.update([file])
                self._passed[now.version] = live(files[: index.applied])
        elif index.manifest is None:
            return
        elif step.operation == "compact":
            index.compact()
        elif step.operation in ("prune", "unstage"):
            remove(path / "staging")
            if step.operation == "prune":
                prune(path, index.manifest)
        elif step.operation == "verify":
            verify_index(path)
        elif faulty:
            self._readers.look(index.manifest)
        else:
            self._readers.look_until_there(index.manifest)

    def _resume(self) -> None:
        """What another process finds: the published version, and how many files are in it."""
        path = self._index.path
        published = current_version(path)
        self._index.manifest = read_manifest(path) if published else None
        self._index.applied = len(self._index.manifest.sources) if self._index.manifest else 0

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
        self._readers.check(self._passed | self._versions)

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
        self._do(Step("prune"), self._files)
        self._readers.check(self._passed | self._versions)
        result = verify_index(path)
        if result.findings or result.leftovers:
            told = "; ".join(map(str, (*result.findings, *result.leftovers)))
            raise DifferenceError(f"at the end verify says: {told}")
