"""Boolean search of an index: the same citations as a comparison of every citation's text."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from cluster.errors import InputError
from cluster.index.boolean import match_segment
from cluster.index.boolean.expressions import EVERYTHING, And, Expression, Field, Not, Or, Term
from cluster.index.boolean.match_segment import SegmentMatcher
from cluster.index.boolean.words import STOP_WORDS, shorter_stems
from cluster.index.filters.match_authors import names_author, plain
from cluster.index.read_segment import SegmentReader
from cluster.index.read_shard import ShardReader
from cluster.records import NO_TITLE, Author, Citation, MeshHeading, Section
from cluster.text.analysis import ANALYSER, Analyser
from cluster.text.folding import fold_letters
from tests.cluster.test_index import open_shards
from tests.small_index import shared_index

pytestmark = pytest.mark.slow

FEVER, ASPIRIN = (MeshHeading("D005334", "Fever", False), MeshHeading("D001241", "Aspirin", True))
AUTHORS = (Author("Müller", "Karl", "KA"), Author("Smith", "Jo", "J"))
PHRASES = """
diabetes diabetic Diabetics insulin-resistant insulin resistance resistant IL-6 IL6 of the quality
life qualities na\u00efve naive TNF-\u03b1 tnf therapies therapy therapeutic CANCER cancers,
(cancer) mouse/mice \u03b2-cell this. thisness running run ran quality_of_life
"""
WORDS = [phrase.replace("_", " ") for phrase in PHRASES.split()]
VALUES = (
    "diabetes", "diabetic", "diabet*", "insulin resistance", "insulin-resistant", "il 6", "IL6",
    "quality of life", "the", "na\u00efve", "tnf-\u03b1", "therap*", "this*", "cancer",
    "cancer*", "mice", "insulin resist*", "runn*", "resistances",
)  # fmt: skip


def random_corpus(count: int, seed: int) -> list[Citation]:
    chance = random.Random(seed)

    def words(most: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(0, most)))

    return [
        Citation(
            pmid,
            title=chance.choice([words(6), NO_TITLE]),
            sections=tuple(Section(chance.choice(["", "CANCER"]), words(8)) for _ in range(2)),
            year=chance.choice([None, 1999, 2010, 2024]),
            month=chance.choice([None, 2, 11]),
            journal=chance.choice(["The Lancet", "BMJ"]),
            languages=(chance.choice(["eng", "fre"]),),
            publication_types=(chance.choice(["Review", "Letter"]),),
            mesh=tuple(
                replace(heading, major=chance.random() < 0.5)
                for heading in (FEVER, ASPIRIN)
                if chance.random() < 0.5
            ),
            authors=tuple(author for author in AUTHORS if chance.random() < 0.4),
        )
        for pmid in range(1, count + 1)
    ]


def random_expression(chance: random.Random, depth: int = 3) -> Expression:
    kind = chance.choice(["term", "and", "or", "not"]) if depth else "term"
    if kind == "not":
        return Not(random_expression(chance, depth - 1))
    if kind != "term":
        parts = tuple(random_expression(chance, depth - 1) for _ in range(chance.randint(1, 3)))
        return And(parts) if kind == "and" else Or(parts)
    words: Field = chance.choice(["tiab", "ti", "ab"])
    return chance.choice(
        [
            Term(words, chance.choice(VALUES)),
            Term(words, chance.choice(VALUES)),
            Term(chance.choice(["mh", "majr"]), chance.choice(["D005334", "d001241", "D999999"])),
            Term("au", chance.choice(["Muller K", "Smith", "Smith J", "Nobody"])),
            Term("dp", chance.choice(["2010", "2000:2024", "2010:3000", "1999:2010/03"])),
            Term("ta", chance.choice(["the lancet", "BMJ"])),
            Term("pt", "Review"),
            Term("la", "fre"),
        ]
    )


def has_phrase(value: str, text: str) -> bool:
    """Compare word by word, without the code under test."""
    held, wanted = (re.findall(r"[^\W_]+", fold_letters(part)) for part in (text, value))
    for at in range(len(held) - len(wanted) + 1):
        *first, last = held[at : at + len(wanted)]
        ends = last.startswith(wanted[-1]) if value.endswith("*") else last == wanted[-1]
        if first == wanted[:-1] and ends:
            return True
    return False


def has_term(term: Term, c: Citation) -> bool:
    title = "" if c.title == NO_TITLE else c.title
    texts = {"ti": [title], "ab": [c.abstract], "tiab": [title, c.abstract]}
    if term.field in texts:
        return any(has_phrase(term.value, text) for text in texts[term.field])
    if term.field in ("mh", "majr"):
        major = (True,) if term.field == "majr" else (True, False)
        return any(h.ui == term.value.upper() and h.major in major for h in c.mesh)
    if term.field == "au":
        return any(names_author(plain(term.value), author) for author in c.authors)
    if term.field == "dp":
        published = (c.year or 0) * 100 + (c.month or 12)
        begin, _, end = term.value.partition(":")
        last = end or begin
        return int(begin) * 100 <= published <= int(last[:4]) * 100 + int(last[5:] or 12)
    fields = {"ta": (c.journal,), "pt": c.publication_types, "la": c.languages}
    return term.value.casefold() in map(str.casefold, fields[term.field])


def holds(expression: Expression, c: Citation) -> bool:
    match expression:
        case Term():
            return has_term(expression, c)
        case Not(part):
            return not holds(part, c)
        case And(parts):
            return all(holds(part, c) for part in parts)
        case Or(parts):
            return any(holds(part, c) for part in parts)


def expected(expression: Expression, corpus: Sequence[Citation]) -> list[int]:
    return sorted(c.pmid for c in corpus if holds(expression, c))


def shards_of(corpus: Sequence[Citation], shards: int = 1) -> list[ShardReader]:
    return open_shards(*shared_index(corpus, shards=shards))


def match_in(shards: Sequence[ShardReader], expression: Expression) -> list[int]:
    return sorted(pmid for shard in shards for pmid in shard.match(expression).tolist())


@pytest.mark.parametrize("shards", [1, 3])
def test_random_expressions_match_the_same_citations_as_a_full_comparison(shards: int) -> None:
    corpus = random_corpus(120, seed=1)
    readers = shards_of(corpus, shards)
    chance, matching = random.Random(2), 0
    for _ in range(150):
        expression = random_expression(chance)
        found = match_in(readers, expression)
        assert found == expected(expression, corpus), expression
        matching += 0 < len(found) < len(corpus)
    assert matching > 60


def test_each_value_matches_the_same_citations_as_a_full_comparison() -> None:
    corpus = random_corpus(120, seed=1)
    readers = shards_of(corpus)
    for field, value in product(("tiab", "ti", "ab"), VALUES):
        term = Term(field, value)
        assert match_in(readers, term) == expected(term, corpus), term
    for value in VALUES:
        assert value == "resistances" or expected(Term("tiab", value), corpus)


def test_replaced_and_removed_citations_are_left_out() -> None:
    older, newer = random_corpus(80, seed=1), random_corpus(40, seed=3)
    [old], [new] = (shards_of(corpus)[0].segments for corpus in (older, newer))
    removed = np.append(new.pmids, [70, 71])
    matchers = [SegmentMatcher(SegmentReader(old.opened, removed)), SegmentMatcher(new)]
    live = newer + [c for c in older if c.pmid not in removed]
    chance = random.Random(4)
    for expression in [EVERYTHING, *(random_expression(chance) for _ in range(100))]:
        rows = [matcher.match(expression, ANALYSER) for matcher in matchers]
        found = np.concatenate([old.pmids[rows[0]], new.pmids[rows[1]]])
        assert sorted(found.tolist()) == expected(expression, live), expression


def test_indexes_of_older_analysers_match_words_as_they_index_them() -> None:
    older = Analyser("simple-lower-english-stop-stem-1")
    corpus = [Citation(1, title="Naïve cells"), Citation(2, title="naive cells")]
    [shard] = open_shards(*shared_index(corpus, shards=1, analyser=older))
    assert shard.match(Term("ti", "naïve"), older).tolist() == [1]
    assert shard.match(Term("ti", "naiv*"), older).tolist() == [2]


def test_queries_that_would_read_too_many_citations_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corpus = random_corpus(120, seed=1)
    [shard] = shards_of(corpus)
    monkeypatch.setattr(match_segment, "MOST_READ", 5)
    # Headings need no texts.
    assert match_in([shard], Term("mh", "D005334")) == expected(Term("mh", "D005334"), corpus)
    with pytest.raises(InputError, match="limit is 5"):
        shard.match(Term("tiab", "cancer"))
    rare = And((Term("tiab", "cancer"), Term("mh", "D999999")))
    assert shard.match(rare).tolist() == []


def test_texts_are_read_once_per_term(monkeypatch: pytest.MonkeyPatch) -> None:
    [shard] = shards_of(random_corpus(121, seed=1))
    term = Term("tiab", "cancer")
    first = match_in([shard], term)
    monkeypatch.setattr(match_segment, "MOST_READ", 0)
    assert match_in([shard], And((term, EVERYTHING))) == first


def test_months_are_those_of_the_matching_citations() -> None:
    corpus = random_corpus(120, seed=1)
    pmids, months = shards_of(corpus)[0].match_dated(Term("pt", "Review"), ANALYSER)
    expected = {c.pmid: 12 * (c.year or 0) + (c.month or 0) for c in corpus}
    assert months.tolist() == [expected[pmid] for pmid in pmids.tolist()]


SUFFIXES = (
    "", "s", "es", "ed", "ing", "ings", "edly", "ingly", "y", "ies", "ied", "e", "er", "ers",
    "ation", "ational", "ization", "izations", "ability", "ibility", "ance", "ence", "ly", "ness",
    "fulness", "ousness", "iveness", "ivity", "ality", "alism", "ative", "icate", "icity", "ical",
    "ment", "ements", "ism", "ous", "ology", "ologically", "ful", "fully", "lessly", "tional",
)  # fmt: skip
BASES = """
diabet neuropath agre fre us bed see hop hopp plan plann tri cr fl d ly sk gener commun arsen
occurr formal oper possib relat activ vit anal rapid able mobil luxuri vac ear on ug singl proc exc
succ inn out cann herr di ti li st str argu sky new queu ye y v
"""


def test_stems_of_truncated_words_are_complete() -> None:
    """Every stem of a word that begins with the letters is among the terms looked up."""
    ends = [first + second for first, second in product(SUFFIXES, ("", "s", "ed", "ingly", "ness"))]
    words = [base + end for base, end in product(BASES.split(), ends)]
    shorter = cache(shorter_stems)
    checked = 0
    for word in words:
        for stem in ANALYSER.terms(word):
            for length in range(4, len(word) + 1):
                begin = word[:length]
                checked += 1
                assert stem.startswith(begin) or stem in shorter(begin), (word, begin, stem)
    assert checked > 50_000


def test_stop_words_for_truncation_are_those_of_the_analyser() -> None:
    assert [word for word in STOP_WORDS if ANALYSER.terms(word)] == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tiab", "dia*", "at least 4 characters"),
        ("tiab", "gene* therapy", "only end a word"),
        ("au", "Smit*", "only end a word"),
        ("tiab", "--", "no letter or digit"),
        ("dp", "soon", "not a date"),
        ("ad", "Boston", "not a searchable field"),
    ],
)
def test_terms_that_cannot_be_searched_are_refused(field: Field, value: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Term(field, value)
