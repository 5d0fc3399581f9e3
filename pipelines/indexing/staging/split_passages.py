"""Split a citation's title and abstract into passages: by characters, sentences or sections.

All offsets are code points, end exclusive.
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
    """Splits a text into non-empty spans, in order, that cover everything but white space.

    A text of only white space has no span. A splitter with `within_sections` gets one section of an
    abstract at a time.
    """

    within_sections: ClassVar[bool]

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of `text` as (begin, end) in code points, end exclusive."""
        ...


def make_splitter(
    method: str, size: int, overlap: int, token_offsets: TokenOffsets | None = None
) -> Splitter:
    """Return the splitter `method`; `size` and `overlap` are in its unit, characters or tokens.

    Raises InputError for an unknown method, for an invalid size or overlap, and for `sections`
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
    """Return the passages of the title, then of the abstract; a missing or blank text has none."""
    abstract = citation.abstract
    areas = section_spans(citation.sections) if splitter.within_sections else [(0, len(abstract))]
    passages = _passages(citation.pmid, ABSTRACT, abstract, areas, splitter)
    if citation.has_title:
        title = citation.title
        passages = _passages(citation.pmid, TITLE, title, [(0, len(title))], splitter) + passages
    return passages


def section_spans(sections: Sequence[Section]) -> list[Span]:
    """Return the span of each section, including its label, in the canonical abstract."""
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
    """Passages of at most `size` characters that overlap by at most `overlap`.

    Paper 000, section 3.1.2 (512 / 64). A passage ends at white space if there is any within its
    last eighth, so that words stay whole.
    """

    size: int = 512
    overlap: int = 64
    within_sections: ClassVar[bool] = False

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of `text`."""
        spans = []
        begin = _first_non_space(text, 0)
        while begin < len(text):
            end = self._end(text, begin)
            spans.append((begin, end))
            begin = self._next_begin(text, end)
        return spans

    @property
    def _slack(self) -> int:
        """How far the end may move back; small enough that each passage adds new text."""
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
    """Passages of whole sentences, with at most `size` characters.

    The last sentences of a passage are repeated in the next one if they fit into `overlap`
    characters. Paper 004 (about 500 / 50). A sentence longer than `size` is split by characters.
    """

    size: int = 500
    overlap: int = 50
    within_sections: ClassVar[bool] = False

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of `text`."""
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
    """Passages of at most `size` tokens of one section that overlap by `overlap` tokens.

    Paper 002 (512 / 64). `token_offsets` returns the spans of a text's tokens in order; empty
    spans, which tokenisers return for special tokens, are ignored.
    """

    size: int
    overlap: int
    token_offsets: TokenOffsets
    within_sections: ClassVar[bool] = True

    def __call__(self, text: str) -> list[Span]:
        """Return the spans of `text`."""
        # Text outside all tokens is added to the token before it, so that no text is lost.
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
