"""Matches author names, as people write them, to the authors of records.

The index has no column of authors, so the records are read once per segment and filter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster.records import Author
from cluster.text.folding import fold_letters

_MARKS = re.compile(r"[.'\u2019`\u02bc]")
_BETWEEN = re.compile(r"[^\w]+")
_PARTS = ("last", "fore", "initials", "collective")


def plain(name: str) -> str:
    """Return the name without case, diacritics and punctuation, with single spaces."""
    return " ".join(_BETWEEN.sub(" ", _MARKS.sub("", fold_letters(name))).split())


def names_author(wanted: str, author: Author) -> bool:
    """Return whether `wanted`, in the form of `plain`, names the author.

    "smith", "smith j", "smith ja", "smith john" and "john smith" all name John A Smith; later
    initials and given names may be omitted, as in PubMed. A group matches only its full name.
    """
    if author.collective:
        return plain(author.collective) == wanted
    last = plain(author.last)
    if not last:
        return False
    if wanted == last:
        return True
    fore, initials = plain(author.fore), plain(author.initials).replace(" ", "")
    if wanted.startswith(f"{last} "):
        given = wanted[len(last) + 1 :]
        return initials.startswith(given.replace(" ", "")) or _begins(fore, given)
    return wanted.endswith(f" {last}") and _begins(fore, wanted[: -len(last) - 1])


def _begins(fore: str, given: str) -> bool:
    """Return whether the given names begin with the words of `given`."""
    return bool(given) and f"{fore} ".startswith(f"{given} ")


def rows_by(authors: pa.ChunkedArray, wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return, for each record, whether one of its `authors` is in `wanted` (see `plain`)."""
    names = sorted(set(wanted))
    parts = [_rows_of_chunk(chunk, names) for chunk in authors.chunks]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def _rows_of_chunk(lists: pa.ListArray, wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
    rows = np.zeros(len(lists), np.bool_)
    every = lists.flatten()
    if not len(every):
        return rows
    fields = dict(zip(_PARTS, every.flatten(), strict=True))
    near = np.flatnonzero(
        _preselect(fields["last"], wanted) | _preselect(fields["collective"], wanted)
    )
    parents = pc.list_parent_indices(lists).to_numpy()
    texts = (fields[part].take(pa.array(near)).to_pylist() for part in _PARTS)
    for at, parts in zip(near.tolist(), zip(*texts, strict=True), strict=True):
        author = Author(*(part or "" for part in parts))
        if not rows[parents[at]] and any(names_author(name, author) for name in wanted):
            rows[parents[at]] = True
    return rows


def _preselect(names: pa.StringArray, wanted: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Preselect names that could be part of a wanted one, so that few are compared in full."""
    coded = pc.utf8_lower(pc.fill_null(names, "")).dictionary_encode()
    parts = {part for name in wanted for part in _parts_of(name)}
    chosen = pc.is_in(coded.dictionary, pa.array(sorted(parts), pa.string())).to_numpy(False)
    # Names that `plain` may change are normalised before the comparison, unless the first letter
    # differs.
    firsts = "".join(sorted({part[0] for part in parts}))
    odd = pc.match_substring_regex(coded.dictionary, rf"^([{firsts}].*[^a-z ]|[^a-z])")
    for at in np.flatnonzero(odd.to_numpy(False)).tolist():
        chosen[at] = plain(coded.dictionary[at].as_py()) in parts
    return np.asarray(chosen[coded.indices.to_numpy()], np.bool_)


def _parts_of(name: str) -> set[str]:
    """Return every run of words at the beginning or end of the name."""
    words = name.split()
    return {" ".join(words[:n]) for n in range(1, len(words) + 1)} | {
        " ".join(words[n:]) for n in range(len(words))
    }
