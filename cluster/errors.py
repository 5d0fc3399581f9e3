"""Errors a user can mend. Each carries one sentence that names the place and the mend."""

import re

BRIEF_CHARACTERS = 15
_CREDENTIALS = re.compile(r"(?<=//)[^/?#\s]*@")


def without_credentials(text: str) -> str:
    """Return `text` without the user names and passwords of the URLs in it."""
    return _CREDENTIALS.sub("", text)


class CiteRayError(Exception):
    """Something failed that is not the user's input; exit code 1.

    All arguments go to ``Exception.__init__`` so that the error survives a process boundary. Text
    among them loses the credentials of its URLs: errors are printed, logged and sent to callers.
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
    """An index that this code does not know how to read, or that is damaged; exit code 2.

    To the commands whose exit code 1 is a verdict on what they were given it is bad input.
    """

    exit_code = 2


class StorageError(CiteRayError, OSError):
    """A place that cannot be written to: its disk is full, or it is read-only.

    An OSError too, for those who can do without what they wanted to write.
    """


class RefusedError(CiteRayError):
    """A request that cannot be met; `status` is the HTTP reply's.

    `message` is what to say: Ray makes a trace of `str()` on its way.
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
    """No Ray can be started on this machine, or none can be joined at RAY_ADDRESS."""


class HeadLostError(CiteRayError):
    """The head of the Ray that a command runs on is gone, and with it all that it started."""


class LLMError(CiteRayError):
    """The language model is unreachable or answered with an error."""


class PubMedError(CiteRayError):
    """PubMed's E-utilities are unreachable, at fault, too slow, or refuse the caller."""


# What is said of a MemoryError.
NO_MEMORY = (
    "memory ran out; nothing published is lost: free some, or take a machine with more, and "
    "run the same command again"
)


def one_line(text: str) -> str:
    """`text` in one line, with escapes for what would steer a terminal or cannot be encoded."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in " ".join(text.split())
    )


def brief(text: object) -> str:
    """`text` in quotes where it is too short to repeat a question, else its length.

    For what a model or another server said, as errors are logged and questions are not.
    """
    said = str(text)
    return repr(said) if len(said) <= BRIEF_CHARACTERS else f"{len(said):,} characters"


def cut(text: str, length: int = 200) -> str:
    """`text` as `one_line` of at most `length` characters, to stand in a sentence."""
    line = one_line(text[: length + 1])
    return line if len(line) <= length else f"{line[: length - 3]}..."
