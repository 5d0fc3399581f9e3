"""What is told where something that users keep is absent, too much or out of reach."""

from __future__ import annotations

from cluster.errors import RefusedError


class SavedError(RefusedError):
    """A request about what is kept that cannot be met."""


class UnreadableAnswerError(SavedError):
    """A stored answer in the form of another version of CiteRay."""
