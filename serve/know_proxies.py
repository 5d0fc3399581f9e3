"""Where Serve's proxies are, asked before a request of theirs needs it."""

from __future__ import annotations

from contextlib import suppress

import ray
from ray.serve._private.constants import SERVE_NAMESPACE, SERVE_PROXY_NAME
from ray.serve._private.utils import format_actor_name


def know_proxies() -> None:
    """Have this process know the proxy of every living node.

    At a proxy's first request Serve asks Ray's head for it, in the loop that all requests of the
    replica share, and Ray remembers. A head that is away then would hold all of them up until
    the call is given up, after a minute.
    """
    for node in ray.nodes():
        if node["Alive"]:
            with suppress(ValueError):
                ray.get_actor(format_actor_name(SERVE_PROXY_NAME, node["NodeID"]), SERVE_NAMESPACE)
