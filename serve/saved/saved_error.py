"""Errors of the stores: something is missing, a limit is reached, or the database is down."""

from __future__ import annotations

from cluster.errors import RefusedError


class SavedError(RefusedError):
    """Request to a store that cannot be fulfilled."""


class UnreadableAnswerError(SavedError):
    """Stored answer in the format of another CiteRay version."""
