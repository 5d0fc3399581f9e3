"""Record the problems of a run in one pass that also repairs what can be repaired safely.

A rule checks a value, records problems, and returns the value as `--fix` would write it. Check and
repair therefore cannot diverge: linting discards the repaired run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from cluster.errors import cut

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup

Item = TypeVar("Item")

# Citation marks that must not appear in the text: [12345678, 23456789], [PMID: 1], (PMID 1; 2),
# [3]. Not matched: numbers of four digits, which may be years; pairs of small numbers, which may
# be an interval; and brackets followed by a word character, which may be part of a chemical name.
_MARK = re.compile(
    r"(?<!\s)\s*(?:[\[(]\s*PMIDs?\s*:?\s*\d+(?:\s*[,;]\s*(?:PMID\s*:?\s*)?\d+)*\s*[\])]"
    r"|\[\s*\d{5,8}(?:\s*[,;]\s*\d{5,8})*\s*\](?![\w-])"
    r"|\[\d{1,3}\](?![\w-]))",
    re.IGNORECASE,
)
_PMID = re.compile(
    r"(?:(?:https?://)?(?:www\.)?(?:ncbi\.nlm\.nih\.gov/pubmed|pubmed\.ncbi\.nlm\.nih\.gov)/"
    r"|PMID:?\s*)?0*(?P<pmid>[1-9][0-9]{0,7})/?",
    re.IGNORECASE,
)

MAX_NESTED_MARKS = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a run. `mend` is what `--fix` does about it, or "" if no repair is safe."""

    place: str
    message: str
    mend: str = ""

    @property
    def mendable(self) -> bool:
        """Whether `--fix` can repair the problem."""
        return bool(self.mend)


@dataclass(frozen=True, slots=True)
class Checked:
    """The problems of a run, and its `rows` as `--fix` would write them."""

    rows: list[Any]
    problems: tuple[Problem, ...]

    @property
    def done(self) -> list[str]:
        """Return the repairs in the order of the run."""
        return [f"{p.place}: {p.message}: {p.mend}" for p in self.problems if p.mendable]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the questions file; a field is None if the file does not state it."""

    type: str | None = None
    answer_ready: bool | None = None


class Checker:
    """Rules shared by all run formats, and the problems recorded so far.

    With a `lookup`, PMIDs must be in the index and not retracted; `drop_unknown` removes others.
    """

    def __init__(self, lookup: CitationLookup | None = None, *, drop_unknown: bool = False) -> None:
        self.lookup = lookup
        self.problems: list[Problem] = []
        self._drop_unknown = drop_unknown

    def note(self, where: str, message: str, mend: str = "") -> None:
        """Record a problem; place and message are shortened to 300 characters each."""
        self.problems.append(Problem(cut(where, 300), cut(message, 300), mend))

    def items(self, row: Mapping[str, Any], field: str, where: str) -> list[Any] | None:
        """Return the list in `field`, or None; record a problem for a value of another type."""
        value = row.get(field)
        if value is not None and not isinstance(value, list):
            self.note(f"{where}, {field}", f"must be a list, not {value!r:.40}")
            return None
        return value

    def select(
        self,
        items: Sequence[Any],
        check: Callable[[Any, str], Sequence[Any]],
        key: Callable[[Any], Hashable],
        limit: int,
        place: str,
        kind: str,
    ) -> list[Any]:
        """Return the first `limit` distinct items, each as repaired by `check(item, place)`.

        `check` returns one item or none. Items beyond the limit are not checked, since they are
        dropped.
        """
        kept: dict[Hashable, Any] = {}
        for number, item in enumerate(items):
            if len(kept) == limit:
                message = f"{len(items)} items, at most {limit}"
                self.note(f"{place}, {kind}s", message, f"keeps the first {limit}")
                break
            where = f"{place}, {kind} {number}"
            for mended in check(item, where):
                if key(mended) in kept:
                    self.note(where, "occurs twice", "drops the second")
                kept.setdefault(key(mended), mended)
        return list(kept.values())

    def distinct(
        self, items: Sequence[Item], key: Callable[[Item], Hashable], where: str
    ) -> list[Item]:
        """Return the items without those whose `key` occurred before."""
        kept: dict[Hashable, Item] = {}
        for item in items:
            if key(item) in kept:
                self.note(where, f"{item!r:.60} occurs twice", "drops the second")
            kept.setdefault(key(item), item)
        return list(kept.values())

    def first(self, items: Sequence[Item], limit: int, where: str) -> list[Item]:
        """Return the first `limit` items; record a problem if there are more."""
        if len(items) > limit:
            self.note(where, f"{len(items)} items, at most {limit}", f"keeps the first {limit}")
        return list(items[:limit])

    def live(self, pmid: int, where: str) -> bool:
        """Return whether to keep the item; record a problem if `pmid` is absent or retracted."""
        if self.lookup is None:
            return True
        citation = self.lookup.find(pmid)
        if citation is not None and not citation.retracted:
            return True
        reason = "is retracted" if citation else "is missing or deleted"
        mend = "drops it" if self._drop_unknown else ""
        self.note(where, f"PMID {pmid} {reason} in index version {self.lookup.version}", mend)
        return not self._drop_unknown

    def unmarked(self, text: str, where: str) -> str:
        """Return `text` without citation marks."""
        mark = _MARK.search(text)
        if mark is None:
            return text
        self.note(
            where, f"has a citation mark in its text: {mark[0].strip()}", "removes citation marks"
        )
        # Removing a mark may create another one; the limit bounds the work on nested marks.
        for _ in range(MAX_NESTED_MARKS):
            text, found = _MARK.subn("", text)
            if not found:
                break
        return text.strip()

    def ids(self, ids: Sequence[str], asked: Mapping[str, Asked] | None) -> None:
        """Record duplicate ids and, if `asked` is given, unknown and missing ids."""
        for id_, count in Counter(ids).items():
            if count > 1:
                self.note(f"id {id_}", f"has {count} answers; keep one")
        if asked is None:
            return
        for id_ in dict.fromkeys(ids):
            if id_ not in asked:
                self.note(f"id {id_}", "is not in the questions file")
        given = set(ids)
        missing = [id_ for id_ in asked if id_ not in given]
        if missing:
            some = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            self.note("run", f"{len(missing)} of {len(asked)} questions have no answer: {some}")


def read_pmid(value: Any) -> int | None:
    """Return the PMID in a number, digits, `PMID: 1` or a PubMed address; else None.

    A PMID has 1 to 8 digits (NLM, PubmedArticle DTD).
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    match = _PMID.fullmatch(str(value).strip())
    return int(match["pmid"]) if match else None


def count_words(text: str) -> int:
    """Return the number of words, which are separated by white space."""
    return len(text.split())
