"""What is told where something that users keep is absent, too much or out of reach."""

from __future__ import annotations

from cluster.errors import CiteRayError


class SavedError(CiteRayError):
    """A request about what is kept that cannot be met; `status` is the reply's."""

    def __init__(self, message: str, status: int, retry_after_s: int = 0) -> None:
        super().__init__(message, status, retry_after_s)
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s
        self.exit_code = 2 if status in (404, 409, 422) else 1

    def __str__(self) -> str:
        return self.message


class UnreadableAnswerError(SavedError):
    """A stored answer in the form of another version of CiteRay."""
