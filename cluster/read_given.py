"""The text of a file that a user names, refused in one sentence where it has none."""

from __future__ import annotations

from pathlib import Path

from cluster.errors import InputError

# BioASQ's training file, the largest of its kind, has some tens of MiB.
MAX_FILE_BYTES = 512 * 1024**2


def read_given(path: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a file in UTF-8, without a mark of its byte order.

    Raises InputError naming the file when it cannot be read, is empty, larger or not in UTF-8.
    """
    text = read_text(path, str(path), max_bytes, "split it")
    if not text.strip():
        raise InputError(f"{path}: is empty")
    return text


def read_text(path: Path, place: str, max_bytes: int, mend: str) -> str:
    """As `read_given`, but an empty file is "", and messages name `place`.

    `mend` says what to do about a file that is too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(f"{place}: cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise InputError(f"{place}: more than {max_bytes} bytes; {mend}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: not in UTF-8: {error}; save it as UTF-8") from None
