"""Content of the file `LEASE`: the holder of an index's lease, and whether it still runs."""

from __future__ import annotations

import getpass
import os
import re
import socket
import uuid
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from cluster.errors import IndexFormatError
from cluster.index.layout import LEASE
from cluster.index.manifest import current_pointer
from cluster.storage.conditional_store import Stamped
from cluster.storage.locations import Location, file_names
from cluster.storage.sealed_text import unseal

_VERSION = re.compile(r"v(\d{6,})\.")
# Active holders in this process; a lease of this process with another holder can be replaced.
active_holders: set[str] = set()


class LeaseRecord(BaseModel):
    """Content of `LEASE`. `holder` is empty after a release.

    `version` is the highest version number ever reserved. `machine`, `pid` and `started`
    show whether the holder's process is alive; they mean nothing on another machine.
    """

    model_config = ConfigDict(extra="forbid")

    token: int
    version: int
    holder: str = ""
    command: str = ""
    user: str = ""
    host: str = ""
    machine: str = ""
    pid: int = 0
    started: str = ""
    since: str = ""
    renewals: int = 0

    def __str__(self) -> str:
        by = f"{self.user}@{self.host}, process {self.pid}"
        return f"{self.command} runs, since {self.since}, by {by}"


def may_be_replaced(record: LeaseRecord, age_s: float, lease_s: float) -> bool:
    """Return whether the lease has expired, or its holder's process on this machine has ended.

    A lease dated more than `lease_s` seconds in the future has also expired: the clock of the
    storage was set back after the last renewal, and the index would otherwise stay blocked.
    """
    if abs(age_s) > lease_s:
        return True
    if record.machine != _boot_id():
        return False
    if record.pid == os.getpid():
        return record.holder not in active_holders
    return _start_of(record.pid) != record.started


def new_record(index: Location, before: LeaseRecord | None, command: str) -> LeaseRecord:
    """Return the record of this process as the holder that follows `before`."""
    return LeaseRecord(
        token=before.token + 1 if before else 1,
        version=_highest_version(index, before),
        holder=uuid.uuid4().hex,
        command=command,
        user=_user(),
        host=socket.gethostname(),
        machine=_boot_id(),
        pid=os.getpid(),
        started=_start_of(os.getpid()),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _highest_version(index: Location, before: LeaseRecord | None) -> int:
    """Return the highest version number; without an earlier lease, also read the file names."""
    numbers = [before.version if before else 0]
    if pointer := current_pointer(index):
        numbers.append(int(pointer["version"][1:]))
    if before is None:
        found = map(_VERSION.match, file_names(index / "versions"))
        numbers += [int(match[1]) for match in found if match]
    return max(numbers)


def record_of(stamped: Stamped, index: Location) -> LeaseRecord:
    """Parse the content of `LEASE`. Raises IndexFormatError if it is damaged."""
    try:
        return LeaseRecord.model_validate(unseal(stamped.data))
    except ValueError as error:
        raise IndexFormatError(
            f"{index / LEASE}: damaged; remove it if no command is changing the index"
        ) from error


@lru_cache(maxsize=1)
def _boot_id() -> str:
    """Return an id of this boot and its PID namespace; a random id if they are unknown."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return f"unknown/{uuid.uuid4().hex}"


def _start_of(pid: int) -> str:
    """Return a process's start time in clock ticks since boot; empty if it has ended."""
    try:
        state, *facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if state in "ZX" else facts[18]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
