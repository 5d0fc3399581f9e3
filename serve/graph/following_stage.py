"""Stage that reads the index and switches to new index versions by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.settings.settings import Settings
from serve.contracts.backend import Handle
from serve.graph.call_handles import HandleLease
from serve.graph.follow_versions import Follower, StageVersion


class FollowingStage:
    """Deployment with the methods of the object that `follow(*arguments)` opens for each version.

    Ray Serve runs these methods in threads. This module does not import Ray.
    """

    def __init__(
        self,
        follow: Callable[..., Follower[Any]],
        settings: Settings,
        lease: Handle,
        *arguments: Any,
    ) -> None:
        self._follower = follow(settings, *arguments)
        self._follower.follow(settings.serve.follow_s, HandleLease(lease))

    def __getattr__(self, method: str) -> Callable[..., Any]:
        # Serve also looks for optional methods of its own, such as `check_health`.
        if method.startswith("_") or not hasattr(self._follower.current.value, method):
            raise AttributeError(f"the stage has no method {method}")

        # Serve caches this function, so each call has to read the current version.
        def call(*arguments: Any) -> Any:
            return getattr(self._follower.current.value, method)(*arguments)

        call.__name__ = method  # For Serve's logs.
        return call

    def version(self) -> StageVersion:
        """Return the version that is served, and why a newer one is refused."""
        return self._follower.state()

    def ready(self) -> str:
        """Return "ready": `__init__` has opened a version and verified its checksums."""
        return "ready"
