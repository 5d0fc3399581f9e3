"""Errors that a user can fix. Each message names what failed, where, and how to fix it."""

import re

BRIEF_CHARACTERS = 15
_CREDENTIALS = re.compile(r"(?<=//)[^/?#\s]*@")


def without_credentials(text: str) -> str:
    """Return `text` without the user names and passwords of the URLs in it."""
    return _CREDENTIALS.sub("", text)


class CiteRayError(Exception):
    """Base class of CiteRay's errors; exit code 1 unless a subclass sets another.

    All arguments are passed to ``Exception.__init__``, so that the error can be pickled. URL
    credentials are removed from them, since errors are printed, logged and sent to callers.
    """

    exit_code = 1

    def __init__(self, *arguments: object) -> None:
        plain = (without_credentials(a) if isinstance(a, str) else a for a in arguments)
        super().__init__(*plain)


class InputError(CiteRayError):
    """Bad input or wrong usage; exit code 2, HTTP status 422."""

    exit_code = 2


class SourceError(CiteRayError):
    """One source file cannot be read to its end (not gzip, truncated, not XML)."""


class IndexFormatError(CiteRayError):
    """An index that is damaged or in an unknown format; exit code 2.

    The exit code is that of bad input, since some commands use exit code 1 to report a result.
    """

    exit_code = 2


class StorageError(CiteRayError, OSError):
    """A storage location that cannot be written to: the disk is full, or it is read-only.

    Also an OSError, for callers that can continue without the write.
    """


class RefusedError(CiteRayError):
    """A request that is refused; `status` is the HTTP status of the response.

    Report `message`, not `str()`, which Ray replaces by a traceback.
    """

    def __init__(self, message: str, status: int, retry_after_s: int = 0) -> None:
        super().__init__(message, status, retry_after_s)
        self.message = without_credentials(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.exit_code = 2 if status in (404, 409, 422) else 1

    def __str__(self) -> str:
        return self.message


class RayStartError(CiteRayError):
    """Ray cannot be started on this machine, or RAY_ADDRESS cannot be reached."""


class HeadLostError(CiteRayError):
    """The Ray head node of a command was lost, and with it all its tasks."""


class LLMError(CiteRayError):
    """The language model is unreachable or answered with an error."""


class PubMedError(CiteRayError):
    """PubMed's E-utilities are unreachable, return errors, are too slow, or refuse the caller."""


# Message for a MemoryError.
NO_MEMORY = (
    "memory ran out; published versions are unaffected: free some memory, or use a machine with "
    "more, and run the same command again"
)


def one_line(text: str) -> str:
    """Return `text` in one line, with escapes for control and unencodable characters."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in " ".join(text.split())
    )


def brief(text: object) -> str:
    """Return `text` in quotes if it is too short to contain a question; otherwise its length.

    For replies of models and servers in error messages, because logs must not contain questions.
    """
    said = str(text)
    return repr(said) if len(said) <= BRIEF_CHARACTERS else f"{len(said):,} characters"


def cut(text: str, length: int = 200) -> str:
    """Return `one_line(text)`, cut to at most `length` characters."""
    line = one_line(text[: length + 1])
    return line if len(line) <= length else f"{line[: length - 3]}..."
