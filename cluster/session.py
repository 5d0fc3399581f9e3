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


@contextmanager
def ray_session(settings: RaySettings) -> Iterator[None]:
    """A connection to Ray for the length of a `with` block; a local Ray stops with it."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if os.environ.get("RAY_ADDRESS"):
        ray.init(logging_level=logging.WARNING, log_to_driver=False)
    else:
        # Said outright, as Ray's default changes between releases; it makes the token itself.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
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
