"""Read text files that a user names, with a size limit."""

from __future__ import annotations

from pathlib import Path

from cluster.errors import InputError

# The largest expected file, BioASQ's training set, has a few tens of MiB.
MAX_FILE_BYTES = 512 * 1024**2


def read_given(path: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Raises InputError that names the file if it is unreadable, empty, too large or not UTF-8.
    """
    text = read_text(path, str(path), max_bytes, "split it")
    if not text.strip():
        raise InputError(f"{path}: is empty")
    return text


def read_text(path: Path, where: str, max_bytes: int, mend: str) -> str:
    """Like `read_given`, but return "" for an empty file, and name `where` in messages.

    `mend` is the fix that the message about a file that is too large suggests.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise InputError(f"{where}: more than {max_bytes} bytes; {mend}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not in UTF-8: {error}; save it as UTF-8") from None
