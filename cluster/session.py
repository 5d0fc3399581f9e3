"""Connects to Ray: the cluster that RAY_ADDRESS names, or one started here.

`ray job submit` sets RAY_ADDRESS for its driver, so the same command runs on a laptop
and on a cluster.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from cluster.settings import RaySettings

TOKEN_LOGGER = "ray._private.authentication.authentication_token_setup"


@contextmanager
def ray_session(settings: RaySettings) -> Iterator[None]:
    """A connection to Ray for the length of a `with` block; a local Ray stops with it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    # It only says that a Ray started here asks for a token, which is what we want.
    # (Setting RAY_AUTH_MODE here would come too late: Ray reads it when it is imported.)
    logging.getLogger(TOKEN_LOGGER).setLevel(logging.ERROR)
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level=logging.WARNING, log_to_driver=False)
    else:
        # The C++ core logs harmless notes of Ray Data as errors; real ones are exceptions.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        ray.init(
            address="local",
            num_cpus=settings.cpus or None,
            object_store_memory=settings.object_store_mb << 20,
            include_dashboard=False,
            logging_level=logging.WARNING,
            log_to_driver=False,
        )
    try:
        yield
    finally:
        ray.shutdown()
