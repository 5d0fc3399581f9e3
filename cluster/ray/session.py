"""Connects to Ray: the cluster that RAY_ADDRESS names, or one started here.

`ray job submit` sets RAY_ADDRESS for its driver, so the same command runs on a laptop
and on a cluster.
"""

from __future__ import annotations

import logging
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from tempfile import TemporaryFile
from typing import Any

import ray
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from cluster.errors import NO_MEMORY, CiteRayError, RayStartError
from cluster.ray.ray_access import check_guarded, keep_token_private, private_folder
from cluster.settings.settings import RaySettings

LOGGER = logging.getLogger(__name__)
TOKEN_LOGGER = "ray._private.authentication.authentication_token_setup"
# By default Ray's workers get 3% of a core that any other program is busy on, and are late for
# whoever waits for them. `nice citeray ...` stands back as a whole.
NICENESS = "RAY_worker_niceness"


@contextmanager
def ray_session(settings: RaySettings) -> Iterator[str]:
    """A connection to Ray for the length of a `with` block; a local Ray stops with it.

    Gives the address at which other processes join. Within the block `print` goes to
    standard error: Ray prints its own messages, and standard output is for results.
    A CiteRayError of a task is raised as it was there, without Ray's traceback; what Ray
    lost for good (a worker, a node, an object) is a CiteRayError too. Raises RayStartError
    where there is no Ray to be had, or one that is open to all and not said to be meant so.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # What it logs of an error it also raises, and the command says that in a line.
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    # It only says that a Ray started here asks for a token, which is what we want.
    # (Setting RAY_AUTH_MODE here would come too late: Ray reads it when it is imported.)
    logging.getLogger(TOKEN_LOGGER).setLevel(logging.ERROR)
    # The C++ core logs harmless notes of Ray Data as errors; real ones are exceptions.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # A thread of Ray prints the raylet's warnings from within `init` until `shutdown` ended it.
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
    try:
        with _unheard(b"RAY_BACKEND_LOG_LEVEL"):
            ray.init(logging_level=logging.WARNING, log_to_driver=False, **started_here)
    except Exception as error:  # Ray raises a bare Exception where it starts too slowly.
        raise start_error(error, address) from error


@contextmanager
def _unheard(words: bytes) -> Iterator[None]:
    """What the process writes to standard error in the block comes after it, but lines of `words`.

    Ray's core writes by itself, past `sys.stderr`, that it heeds its log level.
    """
    sys.stderr.flush()
    try:
        true_stderr = os.dup(2)
    except OSError:  # it was closed by who started the process
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
    """Of a Ray that is started here, for this user alone. Raises RayStartError."""
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
    """Raise RayStartError where the process may write no file of the object store's size.

    Ray's processes inherit the limit and end by it without a word.
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
    """What a user can do where `ray.init` failed; `address` is RAY_ADDRESS, or ""."""
    said = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    if address:
        return RayStartError(
            f"RAY_ADDRESS={address}: no Ray can be joined there ({said}); check that one runs "
            "there, of this version and with this token, or unset RAY_ADDRESS to start one here"
        )
    return RayStartError(
        f"Ray could not be started on this machine ({said}); if it is busy or short of memory, "
        "wait or lower ray.cpus and ray.object_store_mb, if its folder is at fault, name another "
        "with a short path in RAY_TMPDIR, and run the same command again"
    )


def plain_error(error: Exception) -> CiteRayError | None:
    """What a user can mend, said in a line; None for an error that nobody foresaw."""
    cause = error
    while isinstance(cause, RayTaskError):
        cause = cause.cause
    # Ray adds advice of its own below.
    said = str(cause).partition("\n")[0]
    if isinstance(cause, ActorDiedError):
        said = _who_died(str(cause))
    if isinstance(cause, CiteRayError):
        return type(cause)(said)
    if isinstance(cause, MemoryError):
        return CiteRayError(NO_MEMORY)
    if cause is error:
        return CiteRayError(
            f"Ray lost what the command needs ({type(cause).__name__}: {said}); run the same "
            "command again"
        )
    return None


def _who_died(said: str) -> str:
    """The actor and Ray's reason, of Ray's many lines on it.

    "ProxyActor: The actor is dead because it was killed by `ray.kill`."
    """
    name = re.search(r"^\tclass_name: (.+)$", said, re.MULTILINE)
    reason = said.rpartition("\n")[2].partition(" Some common causes")[0]
    return f"{name[1]}: {reason}" if name else said.partition("\n")[0]
