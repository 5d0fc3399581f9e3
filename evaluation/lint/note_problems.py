"""What is wrong with a run, noted on one walk over it that also mends what is safe to mend.

A rule looks at a value, notes what it finds, and gives the value back as `--fix` would leave
it. So a check and a repair cannot drift apart: to lint is to forget the mended run.
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

# Marks that a program writes and a reader must not see: [12345678, 23456789], [PMID: 1], (PMID
# 1; 2), [3]. Bare numbers of four digits may be years, two of them an interval, and a bracket
# that goes on as a word is chemistry: all these stay.
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
    """`mend` is what `--fix` does about it, "" where nothing is safe to do."""

    place: str
    message: str
    mend: str = ""

    @property
    def mendable(self) -> bool:
        """Whether `--fix` does something about it."""
        return bool(self.mend)


@dataclass(frozen=True, slots=True)
class Checked:
    """`rows` are the run's as `--fix` would leave them."""

    rows: list[Any]
    problems: tuple[Problem, ...]

    @property
    def done(self) -> list[str]:
        """What was mended, in the order of the run."""
        return [f"{p.place}: {p.message}: {p.mend}" for p in self.problems if p.mendable]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the questions file. None: the file does not say it."""

    type: str | None = None
    answer_ready: bool | None = None


class Checker:
    """The rules that all run formats share, and the problems noted so far.

    With a `lookup` PMIDs must be live in the index; `drop_unknown` lets those go that are not.
    """

    def __init__(self, lookup: CitationLookup | None = None, *, drop_unknown: bool = False) -> None:
        self.lookup = lookup
        self.problems: list[Problem] = []
        self._drop_unknown = drop_unknown

    def note(self, place: str, message: str, mend: str = "") -> None:
        """Note a problem; place and message are cut to 300 characters each."""
        self.problems.append(Problem(cut(place, 300), cut(message, 300), mend))

    def items(self, row: Mapping[str, Any], field: str, place: str) -> list[Any] | None:
        """The list in `field`; None where it is absent, null, or (noted) no list."""
        value = row.get(field)
        if value is not None and not isinstance(value, list):
            self.note(f"{place}, {field}", f"must be a list, not {value!r:.40}")
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
        """The first `limit` distinct items as `check(item, place)` leaves them, one or none.

        What comes after the limit is not checked, since nobody will read it.
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
                    self.note(where, "comes twice", "drops the second")
                kept.setdefault(key(mended), mended)
        return list(kept.values())

    def distinct(
        self, items: Sequence[Item], key: Callable[[Item], Hashable], place: str
    ) -> list[Item]:
        """The items without those whose `key` came before."""
        kept: dict[Hashable, Item] = {}
        for item in items:
            if key(item) in kept:
                self.note(place, f"{item!r:.60} comes twice", "drops the second")
            kept.setdefault(key(item), item)
        return list(kept.values())

    def first(self, items: Sequence[Item], limit: int, place: str) -> list[Item]:
        """The first `limit` items; a problem is noted if there are more."""
        if len(items) > limit:
            self.note(place, f"{len(items)} items, at most {limit}", f"keeps the first {limit}")
        return list(items[:limit])

    def live(self, pmid: int, place: str) -> bool:
        """Whether the item that names `pmid` is kept; noted when the index has no live one."""
        if self.lookup is None:
            return True
        citation = self.lookup.find(pmid)
        if citation is not None and not citation.retracted:
            return True
        reason = "is retracted" if citation else "is not there, or was deleted,"
        mend = "drops it" if self._drop_unknown else ""
        self.note(place, f"PMID {pmid} {reason} in index version {self.lookup.version}", mend)
        return not self._drop_unknown

    def unmarked(self, text: str, place: str) -> str:
        """`text` without citations written into it."""
        mark = _MARK.search(text)
        if mark is None:
            return text
        self.note(place, f"has a citation in its text: {mark[0].strip()}", "takes citations out")
        # What is taken out may leave another mark; a text of thousands, one in the other, stays.
        for _ in range(MAX_NESTED_MARKS):
            text, found = _MARK.subn("", text)
            if not found:
                break
        return text.strip()

    def ids(self, ids: Sequence[str], asked: Mapping[str, Asked] | None) -> None:
        """Notes ids that come twice, and against `asked` those unknown and those missing."""
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
    """The PMID in a number, its digits, `PMID: 1`, or an address of PubMed; else None.

    A PMID has 1 to 8 digits (NLM, PubmedArticle DTD).
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    match = _PMID.fullmatch(str(value).strip())
    return int(match["pmid"]) if match else None


def count_words(text: str) -> int:
    """Words as runs of what is not white space."""
    return len(text.split())
