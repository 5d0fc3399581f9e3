"""Rounds of commands on one index, compared with a sequential reading of its sources.

Whatever fault hits a command, the published version is its own or the one before it, and has the
content of a sequential reading of its sources. Running the command again without a fault succeeds.
Every published version stays readable, also to readers that have opened it.

After a power cut on a disk that confirms writes too early, damaged data are refused and reported by
`verify`, never read. The index is then built again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from unittest.mock import patch

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index import copies, lease_record, put_segment
from cluster.index.lease import LEASE_S, LeaseHeldError
from cluster.index.manifest import current_version, read_manifest
from cluster.records import Citation
from cluster.storage.locations import Location, StoredLocation, remove
from pipelines.indexing.shards.compact_shard import prune
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
# Faults that readers meet: of the object store, or of the disk with its local copies.
READ_FAULTS = ("store down", "throttled", "cut reply", "store kill", "stale lists")
CACHE_FAULTS = ("disk full", "read-only", "failing disk", "kill", "power cut")
INDEX_FAULTS = (*FAULTS, *STORE_FAULTS)
# Approximate number of moments of an operation on a disk, and of its requests to a store.
MOMENTS = {
    "build": (148, 124), "update": (102, 79), "each": (192, 145), "compact": (82, 61),
    "prune": (34, 26), "unstage": (10, 8), "verify": (108, 83), "swap": (104, 18),
}  # fmt: skip
# During these faults, another process applies a file while the first is running.
OVERTAKEN = ("stop", "clock ahead", "slow disk", "store clock ahead", "slow store")
SLOW = ("slow disk", "slow store")
# With these faults, a command must still succeed.
HARMLESS = (*SLOW, "readers look")
CLOCK_BACK = ("clock back", "store clock back")
# Only one BM25 side, because it writes all kinds of files.
OVERRIDES = ("index.bm25_over=[citations]",)


def draw_index(dice: random.Random, turn: int, *, in_store: bool) -> tuple[Step, ...]:
    """Draw a build, then up to five more steps."""
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
    """Return the files that a step applies; `each` publishes two versions."""
    if step.operation == "each" and len(step.events) > 1:
        return [step.events[:1], step.events[1:]]
    return [step.events] if step.events else []


def resume(index: SmallIndex) -> None:
    """Find the published version and its number of files, as another process does."""
    published = current_version(index.path)
    index.manifest = read_manifest(index.path) if published else None
    index.applied = len(index.manifest.sources) if index.manifest else 0


class IndexRound:
    """Run steps on an index in `folder` or in an object store."""

    def __init__(self, folder: Path, seed: int, *, in_store: bool) -> None:
        self._cache = folder / "cache"
        self._cache.mkdir()
        index = folder / "index"
        self._clock = Clock(None if in_store else index)
        self._store = MemoryStore(self._clock) if in_store else None
        url = "s3://bucket/index"
        self._place: Location = StoredLocation.at(url, self._cache) if in_store else index
        self._index = SmallIndex(self._place, overrides=OVERRIDES)
        self._readers = Readers(self._index.settings, self._place, self._cache, PMIDS)
        self._dice = random.Random(seed)
        self._files: list[File] = []
        self._versions: dict[str, dict[int, Citation]] = {}
        # Versions that a step published and replaced; a reader may have opened them.
        self._passed: dict[str, dict[int, Citation]] = {}
        self._machine = "one"
        self.fired: list[str] = []

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps; raises DifferenceError or an unexpected error of a command."""
        with ExitStack() as stack:
            stack.enter_context(self._clock.in_place())
            if self._store:
                stack.enter_context(self._store.in_place())
            # Without parallelism, so that moment N is the same operation in each run.
            for module, name in ((copies, "_COPIED_AT_ONCE"), (put_segment, "_PARALLEL")):
                stack.enter_context(patch.object(module, name, 1))
            # Simulate the machine: a lease checks its holder's process only on the same one.
            stack.enter_context(patch.object(lease_record, "_boot_id", lambda: self._machine))
            for step in steps:
                if step.fault:
                    self._attempt(step)
                resume(self._index)
                files = [*self._files, *files_of(step)]
                self._do(step, files)
                self._files = files
                self._check(step, [files])
            self._finish()

    def _attempt(self, step: Step) -> None:
        """Run the step with its fault; a version of another process stays published."""
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
        """Check that damage is refused and reported by verify, then build again."""
        why = refused(lambda: self._check(step, self._allowed(step)))
        found = [] if why == "" else [refused(lambda: verify_index(self._place))]
        if why and not found[0] and not verify_index(self._place).findings:
            raise DifferenceError(f"after {step}: verify has no word of {why}")
        remove(self._place)
        self._readers.die()
        self._versions = {}
        resume(self._index)
        self._do(Step("build"), self._files)

    def _allowed(self, step: Step) -> list[list[File]]:
        mine = files_of(step)
        return [[*self._files, *mine[:count]] for count in range(len(mine) + 1)]

    def _with_fault(self, step: Step) -> None:
        files, overtake = [*self._files, *files_of(step)], partial(self._meanwhile, step)
        if self._store and step.fault in STORE_FAULTS:
            faulty = self._store.failing(step.fault, step.at, self.fired, overtake)
        else:
            root = self._cache if self._store else self._index.path
            assert isinstance(root, Path)
            injector = Injector(root, step.fault, step.at, overtake, self._clock)
            faulty = injector.watching(self.fired, self._dice)
        with faulty:
            self._do(step, files, faulty=True)

    def _meanwhile(self, step: Step) -> bool:
        """Let readers look or another process apply a file, unless the lease forbids it."""
        if step.fault == "readers look":
            if current_version(self._place):
                self._readers.look(read_manifest(self._place))
            self._check(step, self._allowed(step))
            return True
        other = SmallIndex(self._place, overrides=OVERRIDES)
        resume(other)
        if not step.others or other.applied > len(self._files):
            return True
        if step.operation == "build" and not lease_record.active_holders:
            # A build that starts after that of another process would replace its version.
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
        # A new process would not know the holders of a killed one.
        lease_record.active_holders.clear()
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
        """Check that verify finds no fault and that prune leaves nothing unneeded."""
        assert self._index.manifest is not None
        path = self._index.path
        for entry in self._index.manifest.history:
            with suppress(IndexFormatError):
                held = self._versions.get(entry.version)
                earlier = read_manifest(path, entry.version)
                found = self._index.citations(PMIDS, earlier)
                if held is not None and {p: f.citation for p, f in found.items()} != held:
                    raise DifferenceError(f"{entry.version} reads otherwise now")
        # Make temporary files old, as a command on the next day would find them.
        for aside in path.glob(".*") if isinstance(path, Path) else ():
            os.utime(aside, (0, 0))
        self._do(Step("prune"), self._files)
        self._readers.check(self._passed | self._versions)
        result = verify_index(path)
        if result.findings or result.leftovers:
            findings = "; ".join(map(str, (*result.findings, *result.leftovers)))
            raise DifferenceError(f"at the end verify says: {findings}")
