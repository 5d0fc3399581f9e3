"""Connects to Ray: the cluster that RAY_ADDRESS names, or one started here.

`ray job submit` sets RAY_ADDRESS for its driver, so the same command runs on a laptop
and on a cluster.
"""

from __future__ import annotations

import logging
import os
import re
import resource
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from tempfile import TemporaryFile
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from cluster.errors import NO_MEMORY, CiteRayError, RayStartError
from cluster.ray.ray_access import (
    check_guarded,
    exit_on_sigterm,
    keep_token_private,
    private_folder,
)
from cluster.settings.settings import RaySettings

LOGGER = logging.getLogger(__name__)
TOKEN_LOGGER = "ray._private.authentication.authentication_token_setup"
# With Ray's default niceness, its workers get 3% of a core that another program keeps busy, which
# delays requests. To lower the priority of the whole program, run `nice citeray ...`.
NICENESS = "RAY_worker_niceness"


# Timeouts of the first and the second attempt to connect to RAY_ADDRESS.
CONNECT_TIMEOUTS_S = (3, 20)


@contextmanager
def ray_session(settings: RaySettings) -> Iterator[str]:
    """Connect to Ray for the length of a `with` block; a local Ray stops at its end.

    Yields the address at which other processes join. Within the block `print` writes to
    standard error, because Ray prints its own messages and standard output is for results.
    A CiteRayError of a task is raised again without Ray's traceback; a permanent loss of a
    worker, node or object is raised as CiteRayError too. Raises RayStartError if Ray is not
    available, or if it accepts calls without a token and RAY_AUTH_MODE is not "disabled".
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray Data logs errors that it also raises; the command reports them in one line.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    # This logger only reports that a Ray started here requires a token, which is intended.
    # (Setting RAY_AUTH_MODE here would be too late, because Ray reads it at import.)
    logging.getLogger(TOKEN_LOGGER).setLevel(logging.ERROR)
    # The C++ core logs harmless notes of Ray Data as errors; real errors are exceptions.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # A thread of Ray prints the raylet's warnings until `shutdown` ends, so the block includes it.
    with redirect_stdout(sys.stderr):
        _connect(settings)
        try:
            address = str(ray.get_runtime_context().gcs_address)
            if warning := check_guarded(address):
                LOGGER.warning("citeray: %s", warning)
            yield address
        except RayError as error:
            if (plain := plain_error(error)) is None:
                raise
            raise plain from error
        finally:
            ray.shutdown()


def _connect(settings: RaySettings) -> None:
    address = os.environ.get("RAY_ADDRESS", "")
    started_here: dict[str, Any] = {} if address else _local_options(settings)
    if address:
        _await_address(address)
    try:
        with _without_lines(b"RAY_BACKEND_LOG_LEVEL"):
            ray.init(logging_level=logging.WARNING, log_to_driver=False, **started_here)
    except Exception as error:  # Ray raises a bare Exception if it starts too slowly.
        raise start_error(error, address) from error
    exit_on_sigterm()


def _await_address(address: str) -> None:
    """Raise RayStartError if the host of RAY_ADDRESS does not answer, for which Ray waits long.

    Names such as "auto", unknown hosts and refused connections are left to Ray.
    """
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if not port.isdecimal():
        return
    for timeout_s in CONNECT_TIMEOUTS_S:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s).close()
        except (ConnectionRefusedError, socket.gaierror, OverflowError):
            return
        except OSError as error:
            if timeout_s == CONNECT_TIMEOUTS_S[-1]:
                raise start_error(error, address) from error
            LOGGER.warning("citeray: waiting for an answer of RAY_ADDRESS=%s", address)
        else:
            return


@contextmanager
def _without_lines(words: bytes) -> Iterator[None]:
    """Delay standard error until the end of the block, and drop lines that contain `words`.

    Ray's core reports its log level directly to file descriptor 2, not through `sys.stderr`.
    """
    sys.stderr.flush()
    try:
        true_stderr = os.dup(2)
    except OSError:  # the parent process has closed standard error
        yield
        return
    with TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(true_stderr, 2)
            os.close(true_stderr)
            aside.seek(0)
            for line in aside:
                if words not in line:
                    os.write(2, line)


def _local_options(settings: RaySettings) -> dict[str, Any]:
    """Return the options of a Ray started here for this user only. Raises RayStartError."""
    _check_file_size(settings.object_store_mb)
    keep_token_private()
    os.environ.setdefault(NICENESS, "0")
    return {
        "address": "local",
        "num_cpus": settings.cpus or None,
        "object_store_memory": settings.object_store_mb << 20,
        "include_dashboard": False,
        "_temp_dir": private_folder(),
    }


def _check_file_size(object_store_mb: int) -> None:
    """Raise RayStartError if the process may not write a file of the object store's size.

    Ray's processes inherit the limit and would end without a message.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if allowed == resource.RLIM_INFINITY or allowed >> 20 > object_store_mb:
        return
    raise RayStartError(
        f"ulimit -f: this shell limits files to {allowed >> 20:,} MiB, and Ray's object store is a "
        f"file of {object_store_mb:,} MiB (ray.object_store_mb); lift the limit with `ulimit -f "
        "unlimited`, or lower ray.object_store_mb below it"
    )


def start_error(error: Exception, address: str) -> RayStartError:
    """Return an error with a fix for a failed `ray.init`; `address` is RAY_ADDRESS, or ""."""
    said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if address:
        return RayStartError(
            f"RAY_ADDRESS={address}: no Ray can be joined there ({said}); check that one with the "
            "same version and token runs there, or unset RAY_ADDRESS to start one here"
        )
    return RayStartError(
        f"Ray could not be started on this machine ({said}); if it is busy or short of memory, "
        "wait or lower ray.cpus and ray.object_store_mb; if Ray's folder is the cause, name "
        "another with a short path in RAY_TMPDIR; then run the same command again"
    )


def plain_error(error: Exception) -> CiteRayError | None:
    """Return a one-line error for a cause that a user can fix; None for other errors."""
    cause = error
    while isinstance(cause, RayTaskError):
        cause = cause.cause
    # The lines after the first are Ray's own advice.
    said = str(cause).partition("\n")[0]
    if isinstance(cause, ActorDiedError):
        said = _dead_actor(str(cause))
    if isinstance(cause, CiteRayError):
        return type(cause)(said)
    if isinstance(cause, MemoryError):
        return CiteRayError(NO_MEMORY)
    if cause is error:
        return CiteRayError(
            f"Ray lost a process or data that the command needs ({type(cause).__name__}: {said}); "
            "run the same command again"
        )
    return None


def _dead_actor(said: str) -> str:
    """Return the actor's class and Ray's reason, extracted from Ray's long message.

    "ProxyActor: The actor is dead because it was killed by `ray.kill`."
    """
    name = re.search(r"^\tclass_name: (.+)$", said, re.MULTILINE)
    reason = said.rpartition("\n")[2].partition(" Some common causes")[0]
    return f"{name[1]}: {reason}" if name else said.partition("\n")[0]
