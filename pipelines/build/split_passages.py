"""Cut a citation's title and abstract into passages: by characters, sentences or sections.

All bounds are code points, end exclusive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from cluster.errors import InputError
from cluster.records import ABSTRACT, TITLE, Citation, Passage, Section, SectionName, abstract_text
from cluster.text.sentences import sentence_spans

Span: TypeAlias = tuple[int, int]
TokenOffsets: TypeAlias = Callable[[str], Sequence[Span]]

_NON_SPACE = re.compile(r"\S")


class Splitter(Protocol):
    """Spans of a text that hold all of it but white space, in order, none empty.

    A splitter `within_sections` is given one section of an abstract at a time.
    """

    within_sections: ClassVar[bool]

    def __call__(self, text: str) -> list[Span]:
        """Spans of `text` as (begin, end) in code points, end exclusive."""
        ...


def make_splitter(
    method: str, size: int, overlap: int, token_offsets: TokenOffsets | None = None
) -> Splitter:
    """The splitter of a name, with size and overlap in its unit (characters or tokens).

    Raises InputError on an unknown name, on sizes that cannot work, and for `sections`
    without a tokeniser.
    """
    if method not in METHODS:
        raise InputError(f"splitter method is {method!r}; choose one of {', '.join(METHODS)}")
    if size < 1:
        raise InputError(f"splitter size is {size}; it must be at least 1")
    if not 0 <= overlap < size:
        raise InputError(
            f"splitter overlap is {overlap}; it must be from 0 to size - 1, {size - 1}"
        )
    if method == "characters":
        return Characters(size, overlap)
    if method == "sentences":
        return Sentences(size, overlap)
    if token_offsets is None:
        raise InputError("splitter method is 'sections', which needs the encoder's tokeniser")
    return Sections(size, overlap, token_offsets)


def split_citation(citation: Citation, splitter: Splitter) -> list[Passage]:
    """The title's passages, then the abstract's; a missing or blank text gives none."""
    abstract = citation.abstract
    areas = section_spans(citation.sections) if splitter.within_sections else [(0, len(abstract))]
    passages = _passages(citation.pmid, ABSTRACT, abstract, areas, splitter)
    if citation.has_title:
        title = citation.title
        passages = _passages(citation.pmid, TITLE, title, [(0, len(title))], splitter) + passages
    return passages


def section_spans(sections: Sequence[Section]) -> list[Span]:
    """Where each section, its label included, stands in the canonical abstract."""
    spans = []
    begin = 0
    for section in sections:
        end = begin + len(abstract_text((section,)))
        spans.append((begin, end))
        begin = end + 1
    return spans


def _passages(
    pmid: int, section: SectionName, text: str, areas: Sequence[Span], splitter: Splitter
) -> list[Passage]:
    return [
        Passage(pmid, section, area + begin, area + end, text[area + begin : area + end])
        for area, area_end in areas
        for begin, end in splitter(text[area:area_end])
    ]


@dataclass(frozen=True)
class Characters:
    """At most `size` characters, `overlap` or fewer shared with the passage before.

    Paper 000, section 3.1.2 (512 / 64). Cuts at white space where there is some within the
    last eighth of a passage, so that words stay whole.
    """

    size: int = 512
    overlap: int = 64
    within_sections: ClassVar[bool] = False

    def __call__(self, text: str) -> list[Span]:
        """See `Splitter.__call__`; no span for a text of white space alone."""
        spans = []
        begin = _first_non_space(text, 0)
        while begin < len(text):
            end = self._end(text, begin)
            spans.append((begin, end))
            begin = self._next_begin(text, end)
        return spans

    @property
    def _slack(self) -> int:
        """How far a cut may move back; kept small enough that each passage adds new text."""
        return min(self.size // 8, self.size - self.overlap - 1)

    def _end(self, text: str, begin: int) -> int:
        limit = begin + self.size
        if limit < len(text):
            near = range(limit, limit - self._slack - 1, -1)
            limit = next((at for at in near if text[at].isspace()), limit)
        return begin + len(text[begin:limit].rstrip())

    def _next_begin(self, text: str, end: int) -> int:
        fresh = _first_non_space(text, end)
        if fresh >= len(text):
            return fresh
        begin = end - self.overlap
        begin = next((at for at in range(begin, end) if text[at - 1].isspace()), begin)
        begin = _first_non_space(text, begin)
        reaches_fresh_text = begin + self.size - self._slack > fresh
        return begin if reaches_fresh_text else fresh


@dataclass(frozen=True)
class Sentences:
    """Whole sentences up to `size` characters; the last ones, if `overlap` holds them, again.

    Paper 004 (about 500 / 50). A sentence longer than `size` is cut by characters.
    """

    size: int = 500
    overlap: int = 50
    within_sections: ClassVar[bool] = False

    def __call__(self, text: str) -> list[Span]:
        """See `Splitter.__call__`; no span for a text of white space alone."""
        spans: list[Span] = []
        group: list[Span] = []
        for unit in self._units(text):
            if group and unit[1] - group[0][0] > self.size:
                spans.append((group[0][0], group[-1][1]))
                group = self._carried(group, unit)
            group.append(unit)
        if group:
            spans.append((group[0][0], group[-1][1]))
        return spans

    def _units(self, text: str) -> list[Span]:
        by_characters = Characters(self.size, self.overlap)
        return [
            (begin + first, begin + last)
            for begin, end in sentence_spans(text)
            for first, last in by_characters(text[begin:end])
        ]

    def _carried(self, group: list[Span], unit: Span) -> list[Span]:
        earliest = max(group[-1][1] - self.overlap, unit[1] - self.size, group[0][0] + 1)
        return [span for span in group if span[0] >= earliest]


@dataclass(frozen=True)
class Sections:
    """At most `size` tokens of one section, `overlap` of them shared with the passage before.

    Paper 002 (512 / 64). `token_offsets` gives the bounds of a text's tokens in order;
    empty ones, as tokenisers give for their special tokens, are left out.
    """

    size: int
    overlap: int
    token_offsets: TokenOffsets
    within_sections: ClassVar[bool] = True

    def __call__(self, text: str) -> list[Span]:
        """See `Splitter.__call__`; no span for a text of white space alone."""
        # What no token holds goes with the token before it, so that no text is lost.
        starts = [begin for begin, end in self.token_offsets(text) if begin < end]
        bounds = [0, *starts[1:], len(text)]
        last = len(bounds) - 1
        windows = []
        for first in range(0, max(last - self.overlap, 1), self.size - self.overlap):
            windows.append((bounds[first], bounds[min(first + self.size, last)]))
        return [span for window in windows if (span := _stripped(text, *window))[0] < span[1]]


METHODS = ("characters", "sentences", "sections")


def _first_non_space(text: str, begin: int) -> int:
    match = _NON_SPACE.search(text, begin)
    return match.start() if match else len(text)


def _stripped(text: str, begin: int, end: int) -> Span:
    part = text[begin:end]
    return end - len(part.lstrip()), begin + len(part.rstrip())
