"""Every splitter returns exact spans that cover any text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import InputError
from cluster.records import NO_TITLE, Citation, Passage, Section
from pipelines.indexing.staging.split_passages import (
    Span,
    TokenOffsets,
    make_splitter,
    split_citation,
)

METHODS = ["characters", "sentences", "sections"]


def words(text: str) -> list[Span]:
    """Tokeniser without a model: a token is a word."""
    return [match.span() for match in re.finditer(r"\S+", text)]


def letters(text: str) -> Sequence[Span]:
    """Tokeniser with sub-word tokens, empty special tokens and skipped characters."""
    return [(0, 0), *(m.span() for m in re.finditer(r"[^\W_]", text)), (0, 0)]


def citation(title: str = "", *sections: tuple[str, str]) -> Citation:
    return Citation(7, title=title, sections=tuple(Section(*section) for section in sections))


def split(text: str, method: str, size: int, overlap: int) -> list[Passage]:
    return split_citation(citation("", ("", text)), make_splitter(method, size, overlap, words))


def texts(passages: list[Passage]) -> list[str]:
    return [passage.text for passage in passages]


texts_of_any_kind = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("ab. A\u2009\n\U0001f9ec")), max_size=300
)
citations = st.builds(
    lambda title, sections: citation(title, *sections),
    texts_of_any_kind,
    st.lists(st.tuples(st.sampled_from(["", "AIM", "METHODS"]), texts_of_any_kind), max_size=4),
)
sizes = st.integers(1, 60).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [words, letters])
@pytest.mark.parametrize("method", METHODS)
@given(citation=citations, bounds=sizes)
def test_passages_are_exact_spans_that_cover_the_text(
    method: str, tokens: TokenOffsets, citation: Citation, bounds: tuple[int, int]
) -> None:
    splitter = make_splitter(method, *bounds, tokens)
    passages = split_citation(citation, splitter)
    for name, text in (("title", citation.title), ("abstract", citation.abstract)):
        own = [p for p in passages if p.section == name]
        if name == "title" and not citation.has_title:
            assert own == []
            continue
        assert all(p.text == text[p.begin : p.end] for p in own)
        assert all(p.text and p.text == p.text.strip() for p in own)
        covered = {at for p in own for at in range(p.begin, p.end)}
        assert all(text[at].isspace() for at in range(len(text)) if at not in covered)
        assert [p.begin for p in own] == sorted({p.begin for p in own})
        assert [p.end for p in own] == sorted({p.end for p in own})
    assert passages == split_citation(citation, splitter)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "units"), [("characters", list), ("sentences", list), ("sections", words)]
)
@given(text=texts_of_any_kind, bounds=sizes)
def test_size_and_overlap_in_characters_or_tokens_are_respected(
    method: str, units: Callable[[str], list], text: str, bounds: tuple[int, int]
) -> None:
    size, overlap = bounds
    passages = split(text, method, size, overlap)
    assert all(len(units(text[p.begin : p.end])) <= size for p in passages)
    for before, after in pairwise(passages):
        assert len(units(text[after.begin : before.end])) <= overlap


@pytest.mark.parametrize("title", ["", NO_TITLE])
def test_empty_texts_yield_no_passage(title: str) -> None:
    for method in METHODS:
        assert split_citation(citation(title), make_splitter(method, 10, 1, words)) == []


FOUR = "One is here. Two is here. Three is here. Four is here."


@pytest.mark.parametrize(
    ("method", "size", "overlap", "text", "passages"),
    [
        # The cut may move back by 5; the next passage begins at the first word within 8.
        (
            "characters", 40, 8, "alpha beta gamma delta epsilon zeta eta theta iota kappa",
            ["alpha beta gamma delta epsilon zeta eta", "zeta eta theta iota kappa"],
        ),
        ("characters", 8, 2, "abcdefghij" * 2, ["abcdefgh", "ghijabcd", "cdefghij"]),
        (
            "sentences", 30, 0, FOUR,
            ["One is here. Two is here.", "Three is here. Four is here."],
        ),
        (
            "sentences", 42, 14, FOUR,
            ["One is here. Two is here. Three is here.", "Three is here. Four is here."],
        ),
        ("sections", 4, 1, "a b c d e f g", ["a b c d", "d e f g"]),
    ],
)  # fmt: skip
def test_each_method_splits_at_its_boundaries(
    method: str, size: int, overlap: int, text: str, passages: list[str]
) -> None:
    assert texts(split(text, method, size, overlap)) == passages
    assert texts(split("One short text.", method, 100, 10)) == ["One short text."]


def test_invalid_splitter_settings_are_refused(subtests: pytest.Subtests) -> None:
    for method, size, overlap, says in [
        ("paragraphs", 512, 64, "'paragraphs'.*characters, sentences, sections"),
        ("characters", 0, 0, "size is 0"),
        ("characters", 64, 64, "overlap is 64"),
        ("sentences", 64, 100, "overlap is 100"),
        ("characters", 64, -1, "overlap is -1"),
        ("sections", 512, 64, "tokeniser"),
    ]:
        with subtests.test(method=method, size=size), pytest.raises(InputError, match=says):
            make_splitter(method, size, overlap)
