"""The simulator detects each disabled guard of the product, and reports no other failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import ANY

import pytest

from cluster.index import copies, lease, lease_record, put_segment
from cluster.index.lease import Lease, LeaseLostError
from cluster.storage import whole_files
from cluster.storage.compare_and_swap import read_stamped, swap
from cluster.storage.conditional_store import Stamped
from pipelines.download import download_files, keep_files
from serve.batches.work_on_job import JobAtWork
from serve.graph import follow_versions
from serve.saved.watches import watch_store
from tests.faults.rounds import failure_of
from tests.faults.steps import Step

NEAR = (0, -1, 1, -2, 2)
FIRST = Step("build", ((1, "aspirin"), (2, "iron")))
SECOND = ((3, "heparin"), (2, "iron again"))
OTHERS = ((4, "v2 iron"),)


@dataclass(frozen=True)
class Guard:
    """A round that passes, and fails with `words` once the attributes in `broken` are replaced."""

    kind: str
    steps: tuple[Step, ...]
    broken: Mapping[tuple[Any, str], Any]
    words: str
    seed: int = 0


def nothing(*_: Any, **__: Any) -> None:
    """Replacement of a guard."""


def blind_swap(place: Any, _: Stamped | None, data: bytes) -> Stamped:
    return swap(place, read_stamped(place), data)


def check_late(held: Lease) -> None:
    if lease.time.monotonic() - held._renewed > lease.LEASE_S:
        raise LeaseLostError("it is overdue")


def held_for_ever(record: Any, age_s: float, lease_s: float) -> bool:
    return lease_record.may_be_replaced(record, max(age_s, 0.0), lease_s)


def never_move(_: Any, manifest: Any, number: int, before: Any = None) -> Any:
    return before or load_shard(_, manifest, number)


load_shard = follow_versions.load_shard
AND_IT_READ = lambda watch: watch_store._own(watch.id)  # noqa: E731
FOLDER, STORE = "index in a folder", "index in a store"

GUARDS = {
    "the compare-and-swap": Guard(
        FOLDER,
        (FIRST, Step("update", SECOND, "stop", 60, OTHERS)),
        {(lease, "swap"): blind_swap},
        "DifferenceError",
    ),
    "the renewal of a lease that is overdue": Guard(
        FOLDER,
        (FIRST, Step("update", SECOND, "slow disk", 20)),
        {(Lease, "check"): check_late},
        "it is overdue",
    ),
    "the renewal of the lease before a prune removes": Guard(
        STORE,
        (FIRST, Step("prune", (), "store clock ahead", 15, OTHERS)),
        {(Lease, "renew"): nothing},
        "missing",
    ),
    "the end of a lease from the future": Guard(
        FOLDER,
        (FIRST, Step("update", SECOND, "clock back", 20)),
        {(lease, "may_be_replaced"): held_for_ever},
        "LeaseHeldError",
    ),
    "the checksums of what is read": Guard(
        FOLDER,
        (FIRST, Step("update", SECOND, "lying disk", 127)),
        {(copies, "check_artefact"): nothing},
        "ArrowInvalid",
        seed=4,
    ),
    "the move to the next version": Guard(
        FOLDER,
        (FIRST, Step("swap"), Step("update", SECOND), Step("swap")),
        {(follow_versions, "load_shard"): never_move},
        "the open v000002 reads otherwise",
    ),
    "the md5 of what was downloaded": Guard(
        "downloads",
        (Step("download", (), "wrong bytes", 4),),
        {(download_files, "md5_of"): lambda _: ANY},
        "are no files that the server had",
    ),
    "the end of what a killed download left": Guard(
        "downloads",
        (Step("download", (), "kill", 12),),
        {(keep_files, "discard"): nothing},
        "has left",
    ),
    "what a killed batch had counted": Guard(
        "batches",
        (Step("batch", ("answered", "answered")), Step("work", (), "kill", 6)),
        {(JobAtWork, "_count_again"): nothing},
        "counts",
    ),
    "the version that a saved question was read at": Guard(
        "watches",
        (
            Step("publish", ((1, "for"),)),
            Step("save", ((1, ""),)),
            Step("watch"),
            Step("publish", ((1, "against"),)),
            Step("watch", (), "stop", 3, ((4, "for"),)),
        ),
        {(watch_store, "_unasked_since"): AND_IT_READ},
        "tells",
    ),
    "the message in the transaction of its check": Guard(
        "watches",
        (
            Step("publish", ((1, "for"),)),
            Step("save", ((1, "https://example.org/hook"),)),
            Step("watch"),
            Step("publish", ((1, "against"),)),
            Step("watch", (), "kill", 25),
        ),
        {(watch_store, "queue_delivery"): nothing},
        "webhooks received",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARDS)
def test_simulator_detects_a_disabled_guard(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = GUARDS[name]
    faults = [step.fault for step in guard.steps if step.fault]
    assert failure_of(guard.seed, guard.steps, guard.kind) == ("", faults)
    for (place, attribute), instead in guard.broken.items():
        monkeypatch.setattr(place, attribute, instead)
    # Caches that are shared by rounds may shift the moment by one or two.
    tried = ([replace(s, at=s.at + by) if s.fault else s for s in guard.steps] for by in NEAR)
    assert any(guard.words in failure_of(guard.seed, steps, guard.kind)[0] for steps in tried)


def test_simulator_detects_missing_fsync_at_a_power_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (whole_files, put_segment):
        monkeypatch.setattr(module, "sync", nothing)
    steps = (FIRST, Step("update", SECOND, "power cut", 41))
    assert "CURRENT: damaged" in failure_of(0, steps)[0]
