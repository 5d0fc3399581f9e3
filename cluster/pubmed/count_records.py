"""Count the records of a PubMed file by their tags, independently of the parser."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cluster.pubmed.read_chunks import open_decompressed, read_chunks, to_ascii_compatible
from cluster.storage.object_store import File

# Longer than any tag that is searched for, so that a tag across two chunks is found.
_OVERLAP = 64
_TAG = re.compile(
    rb"<(?P<end>/?)(?:Pubmed(?:Book)?Article|(?P<deletion>DeleteCitation))(?P<next>[ \t\r\n/>])"
)
_PMID = re.compile(rb"<PMID(?=[ \t\r\n/>])")


class RecordCounter:
    """Counts articles and book articles, and the PMIDs of deletions.

    An article counts if its start tag or its end tag is intact, even if its content is damaged.
    The PMIDs in it are not counted, because an article also contains those of other articles.
    """

    def __init__(self) -> None:
        self.count = 0
        self._is_open = self._is_deletion = False

    def add(self, data: bytes) -> None:
        """Count in `data`, which must not begin or end within a tag."""
        after = 0
        for tag in _TAG.finditer(data):
            self._count_deleted(data[after : tag.start()])
            after = tag.end()
            if tag["deletion"]:
                self._is_open, self._is_deletion = False, not tag["end"] and tag["next"] != b"/"
            elif tag["end"]:
                self.count += not self._is_open
                self._is_open = False
            else:
                self.count += 1
                self._is_open, self._is_deletion = tag["next"] != b"/", False
        self._count_deleted(data[after:])

    def _count_deleted(self, data: bytes) -> None:
        if self._is_deletion:
            self.count += len(_PMID.findall(data))


def count_records(chunks: Iterable[bytes]) -> int:
    """Count the records in the decompressed bytes of a file, in bounded memory."""
    counter, rest = RecordCounter(), b""
    for chunk in chunks:
        data = rest + chunk
        # Tags that are searched are short: cut before the last one that may be unfinished.
        cut = data.rfind(b"<", max(len(data) - _OVERLAP, 0))
        counter.add(data[:cut] if cut >= 0 else data)
        rest = data[cut:] if cut >= 0 else b""
    counter.add(rest)
    return counter.count


def count_file(path: File) -> int:
    """Count the records in a file, plain or gzip.

    Raises SourceError if the file cannot be read to its end.
    """
    with open_decompressed(path, path.name) as stream:
        chunks, _ = to_ascii_compatible(read_chunks(stream, path.name))
        return count_records(chunks)
