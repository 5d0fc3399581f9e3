"""The lease that lets one writer at a time change an index."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.errors import CiteRayError, IndexFormatError
from cluster.index import lease as leases
from cluster.index import lease_record
from cluster.index.layout import CURRENT, LEASE
from cluster.index.lease import LeaseHeldError, LeaseLostError, hold_lease
from cluster.index.lease_record import LeaseRecord
from cluster.index.manifest import current_pointer
from cluster.storage.locations import Location, put

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
SHA256 = "0" * 64
HOLD = """
import sys
from pathlib import Path
from cluster.index.lease import hold_lease
with hold_lease(Path(sys.argv[1]), "build") as lease:
    print(lease.reserve_version(), flush=True)
    sys.stdin.read(1)
    lease.switch(sys.argv[2], "0" * 64)
"""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases that expire at once and are not renewed automatically."""
    monkeypatch.setattr(leases, "LEASE_S", -1000.0)


def publish_with(lease: leases.Lease) -> str:
    version = lease.reserve_version()
    lease.switch(version, SHA256)
    return version


def published(index: Location) -> str | None:
    pointer = current_pointer(index)
    return pointer["version"] if pointer else None


def test_second_writer_is_refused_until_release(index: Location) -> None:
    with hold_lease(index, "build"):
        said = rf"index.*: another build runs, since 20.*, by .*, process {os.getpid()}; wait"
        with pytest.raises(LeaseHeldError, match=said), hold_lease(index, "update"):
            pass
    with pytest.raises(ZeroDivisionError), hold_lease(index, "build"):
        _ = 1 / 0
    with hold_lease(index, "update") as lease:
        assert lease.token == 3


def test_version_numbers_are_never_reused(index: Location) -> None:
    with hold_lease(index, "build") as lease:
        assert [publish_with(lease), publish_with(lease)] == ["v000001", "v000002"]
        assert lease.reserve_version() == "v000003"  # and never publishes it
    with hold_lease(index, "update") as lease:
        assert lease.version == "v000002"
        assert publish_with(lease) == "v000004"
    assert current_pointer(index) == {"version": "v000004", "sha256": SHA256}


@pytest.mark.usefixtures("brief")
def test_paused_update_cannot_publish(index: Location) -> None:
    with hold_lease(index, "build") as lease:
        publish_with(lease)
    with hold_lease(index, "update") as paused:
        mine = paused.reserve_version()
        with hold_lease(index, "update") as other:
            assert publish_with(other) == "v000003"
        with pytest.raises(LeaseLostError, match=r"this update was paused.*lost its lease"):
            paused.switch(mine, SHA256)
    assert published(index) == "v000003"


@pytest.mark.usefixtures("brief")
def test_fencing_token_stops_a_stale_switch(
    index: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is paused between checking the lease and writing CURRENT."""
    with hold_lease(index, "build") as lease:
        publish_with(lease)
    with hold_lease(index, "update") as paused:
        mine = paused.reserve_version()
        with hold_lease(index, "update") as other:
            theirs = other.reserve_version()
            with monkeypatch.context() as unchecked:
                unchecked.setattr(paused, "renew", lambda: None)
                with pytest.raises(CiteRayError, match="v000001 was changed while this ran"):
                    paused.switch(mine, SHA256)
            other.switch(theirs, SHA256)
    assert published(index) == theirs


@pytest.mark.usefixtures("brief")
def test_stale_writer_cannot_fence_its_successor(index: Location) -> None:
    with hold_lease(index, "build") as lease:
        publish_with(lease)
    stopped = leases._acquire(index, "update")
    with hold_lease(index, "update") as other:
        with pytest.raises(LeaseLostError):
            stopped.fence()
        assert publish_with(other) == "v000002"


@pytest.mark.usefixtures("brief")
def test_error_after_a_lost_lease_is_lease_lost(index: Location) -> None:
    with pytest.raises(LeaseLostError, match="build was paused"):
        fail_beside_another(index)


def fail_beside_another(index: Location) -> None:
    with hold_lease(index, "build"):
        with hold_lease(index, "update"):
            pass
        raise FileNotFoundError("removed by the other writer")


@pytest.mark.usefixtures("brief")
def test_progress_after_a_lost_lease_raises(index: Location) -> None:
    steps: list[str] = []
    with hold_lease(index, "build") as lease:
        report = lease.checking(steps.append)
        report("1 of 2")
        with hold_lease(index, "update"):
            pass
        with pytest.raises(LeaseLostError):
            report("2 of 2")
    assert steps == ["1 of 2"]


def test_renewed_lease_is_not_taken(index: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    with hold_lease(index, "build") as lease:
        monkeypatch.setattr(lease_record, "_boot_id", lambda: "another machine")
        lease.renew()
        with pytest.raises(LeaseHeldError), hold_lease(index, "update"):
            pass


def test_index_without_lease_continues_its_numbers(tmp_path: Path) -> None:
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions/v000007.json").touch()
    (tmp_path / CURRENT).write_text(f'{{"version": "v000004", "sha256": "{SHA256}"}}')
    with hold_lease(tmp_path, "update") as lease:
        assert lease.reserve_version() == "v000008"


def test_damaged_lease_is_named(index: Location) -> None:
    if isinstance(index, Path):
        index.mkdir()
        (index / LEASE).write_bytes(b"?")
    else:
        put(index / LEASE, b"?")
    with (
        pytest.raises(IndexFormatError, match=r"LEASE.*: damaged; remove it if no command"),
        hold_lease(index, "update"),
    ):
        pass


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen]:
    """A process that holds the lease of the index at `tmp_path` until it may publish."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), "v000001"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"v000001\n"
        yield process
        process.kill()


def test_lease_of_a_killed_process_is_taken(tmp_path: Path, holder: subprocess.Popen) -> None:
    with pytest.raises(LeaseHeldError), hold_lease(tmp_path, "update"):
        pass
    holder.kill()
    holder.wait()
    with hold_lease(tmp_path, "update") as lease:
        assert lease.token == 2


def test_stopped_process_with_expired_lease_publishes_nothing(
    tmp_path: Path, holder: subprocess.Popen
) -> None:
    holder.send_signal(signal.SIGSTOP)
    with pytest.raises(LeaseHeldError), hold_lease(tmp_path, "update"):
        pass
    age(tmp_path / LEASE, leases.LEASE_S + 1)
    with hold_lease(tmp_path, "update") as lease:
        theirs = publish_with(lease)
    assert holder.stdin is not None
    assert holder.stderr is not None
    holder.stdin.write(b"\n")
    holder.stdin.flush()
    holder.send_signal(signal.SIGCONT)
    assert holder.wait() == 1
    assert b"LeaseLostError" in holder.stderr.read()
    assert published(tmp_path) == theirs == "v000002"


def age(path: Path, seconds: float) -> None:
    """Set the modification time of `path` back by `seconds`."""
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_lease_of_another_machine_expires(tmp_path: Path) -> None:
    record = LeaseRecord(token=5, version=3, holder="a", command="build", machine="elsewhere")
    (tmp_path / LEASE).write_text(record.model_dump_json())
    with pytest.raises(LeaseHeldError), hold_lease(tmp_path, "update"):
        pass
    age(tmp_path / LEASE, leases.LEASE_S + 1)
    with hold_lease(tmp_path, "update") as lease:
        assert (lease.token, lease.reserve_version()) == (6, "v000004")
