"""Boolean searches in PubMed's syntax, read and written."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime

import pytest

from cluster.errors import InputError
from cluster.index.boolean.expressions import EVERYTHING, And, Expression, Not, Or, Term
from serve.question.field_tags.parse_boolean import (
    EXACT_HEADINGS,
    EXACT_MAJOR_HEADINGS,
    EXACT_TYPES,
    LOWER_CASE,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_TERMS,
    TEXT_WORDS,
    UNTAGGED,
    parse_boolean,
    read_boolean,
    write_pubmed,
)

A, B, C = Term("ti", "a"), Term("ab", "b"), Term("tiab", "c")
YEAR = datetime.now(UTC).year
READ = [
    ("a[ti] AND b[ab] AND c[tiab]", And((A, B, C))),
    ("a[ti] b[ab]", And((A, B))),
    ("a[ti] AND b[ab] OR c[tiab]", Or((And((A, B)), C))),
    ("a[ti] OR b[ab] AND c[tiab]", And((Or((A, B)), C))),
    ("a[ti] OR (b[ab] AND c[tiab])", Or((A, And((B, C))))),
    ("((a[ti]))", A),
    ("a[ti] NOT b[ab] NOT c[tiab]", And((A, Not(B), Not(C)))),
    ("a[ti] NOT (b[ab] NOT c[tiab])", And((A, Not(And((B, Not(C))))))),
    ("all[sb]", EVERYTHING),
    ("all[sb] NOT a[ti]", Not(A)),
    ("heart failure[Title/Abstract]", Term("tiab", "heart failure")),
    ('"heart failure"[tiab]', Term("tiab", "heart failure")),
    ("\u201cheart failure\u201d[tiab]", Term("tiab", "heart failure")),
    ("gene therap*[Title]", Term("ti", "gene therap*")),
    ('"Diabetes Mellitus, Type 2"[MeSH Terms]', Term("mh", "Diabetes Mellitus, Type 2")),
    ("Fever[Majr:NoExp]", Term("majr", "Fever")),
    ("Smith J[Author]", Term("au", "Smith J")),
    ('"N Engl J Med"[jour]', Term("ta", "N Engl J Med")),
    ("english[la]", Term("la", "eng")),
    ("fre[Language]", Term("la", "fre")),
    ("english[filter]", Term("la", "eng")),
    ("randomizedcontrolledtrial[Filter]", Term("pt", "Randomized Controlled Trial")),
    ("humans[Filter]", Term("mh", "Humans")),
    ("2015:2024[dp]", Term("dp", "2015:2024")),
    ("2015:[dp]", Term("dp", "2015:3000")),
    (
        '"2015/01/01"[Date - Publication] : "3000"[Date - Publication]',
        Term("dp", "2015/01/01:3000"),
    ),
    ("y_5[filter]", Term("dp", f"{YEAR - 5}:3000")),
    ('"last 10 years"[dp]', Term("dp", f"{YEAR - 10}:3000")),
    ("effect of metformin", And((Term("tiab", "effect"), Term("tiab", "metformin")))),
    ("a[ti] OR effect metformin", Or((A, parse_boolean("effect metformin")))),
    ('"to be"', Term("tiab", "to be")),
]


@pytest.mark.parametrize(("query", "expression"), READ)
def test_queries_are_read_as_pubmed_reads_them(query: str, expression: Expression) -> None:
    assert parse_boolean(query) == expression


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Boston[ad]", "[ad] cannot be applied here; the supported tags are [tiab]"),
        ("Boston[Affiliation]", "[Affiliation] cannot be applied"),
        ("benzo[a]pyrene", "[a] is not a field tag of PubMed"),
        ("1[pmid]", "[pmid] cannot be applied"),
        ("asthma[ot]", "[ot] cannot be applied"),
        ("a b[tiab:~2]", "leave out :~2"),
        ("essay[pt]", "not a publication type"),
        ("klingon[la]", "not a language"),
        ("free full text[sb]", "not a filter here"),
        ("[tiab]", "no value before it"),
        ("a[ti] AND", "AND has no term after it"),
        ("OR a[ti]", "OR has no term before it"),
        ("NOT a[ti]", "NOT has no term before it"),
        ("(a[ti] OR (b[ti])", "( at character 1 without its counterpart"),
        ("a[ti]  OR ((b[ti]))) c", ") at character 20 without its counterpart"),
        ('(a[ti] OR "b c"[ti]) AND "d[ti]', '" at character 26 without its counterpart'),
        ("(a[ti", "[ at character 3 without its counterpart"),
        ("", "nothing to search for"),
        ("()", "nothing to search for"),
        ("dia*[ti]", "at least 4 characters"),
        ('fever[ti] AND exp "Heart Failure"/', 'exp "Heart Failure"/ at character 15 is Ovid'),
        ("exp Heart Failure/ or fever", "Failure/ at character 11 is Ovid's syntax"),
        ("(*Fever/)", 'use PubMed\'s: "Heart Failure"[mh]'),
        ("heart failure.ti,ab. and fever", ".ti,ab. at character 14 is Ovid's syntax"),
        ("\u201cheart failure\u201d.mp.", ".mp. at character 16 is Ovid's syntax"),
        ("metformin adj3 ampk", "adj3 at character 11 is Ovid's syntax"),
        ('"HLA-B*57:01"[tiab]', 'a space for an asterisk within a name, as in "HLA-B 57 01"[tiab]'),
        ("2024:2015[dp]", "2024:2015[dp]: 2024 is after 2015; swap the two dates"),
        ("2024:2023/05[dp]", "2024 is after 2023/05; swap the two dates"),
        ("a" * (MAX_CHARACTERS + 1), "20,001 characters"),
        (" OR ".join(["a[ti]"] * (MAX_TERMS + 1)), "201 terms"),
        (f"{'(' * (MAX_DEPTH + 1)}a{')' * (MAX_DEPTH + 1)}", "nested over 20 deep"),
    ],
)
def test_queries_that_cannot_be_applied_are_refused_with_one_sentence(
    query: str, words: str
) -> None:
    with pytest.raises(InputError) as refused:
        parse_boolean(query)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "query",
    [
        "TNF/IL-6", "TNF / IL-6", "and/or", '"TNF"/"IL-6"', '"TNF/"[tiab]', "2020:2024/05/31[dp]",
        "adj", "adj therapy", "x[ti] AND adj3[tiab]", "adj3", '"a adj3 b"[tiab]', "exp[tiab]",
        "J Exp Med[ta]", "Smith et.al.", "Ph.D. i.e. U.S.", '"x.ti,ab."[tiab]', "vitamin D.",
    ],
)  # fmt: skip
def test_words_that_resemble_ovids_syntax_are_searched(query: str) -> None:
    assert parse_boolean(query)


def test_a_long_word_is_read_in_linear_time() -> None:
    begun = time.process_time()
    read_boolean("a" * MAX_CHARACTERS)
    assert time.process_time() - begun < 2


def test_differences_from_pubmed_are_noted() -> None:
    noted = {
        "metformin": UNTAGGED,
        "metformin[tw]": TEXT_WORDS,
        "Fever[mh]": EXACT_HEADINGS,
        "Fever[majr]": EXACT_MAJOR_HEADINGS,
        "Review[pt]": EXACT_TYPES,
        "fever[ti] and cough[ti]": LOWER_CASE,
    }
    for query, note in noted.items():
        assert read_boolean(query).notes == (note,)
    assert read_boolean("Fever[mh:noexp] AND metformin[tiab] AND Review[pt:noexp]").notes == ()


VALUES = [
    Term("tiab", "heart failure"),
    Term("ti", "insulin-resistant"),
    Term("ab", "AND"),
    Term("tiab", "IFN\u03b3 [low] (high)"),
    Term("tiab", "gene therap*"),
    Term("mh", "Diabetes Mellitus, Type 2"),
    Term("majr", "Fever"),
    Term("au", "Smith J"),
    Term("au", "O'Neil JA"),
    Term("ta", "N Engl J Med"),
    Term("dp", "2015:2024/05"),
    Term("pt", "Clinical Trial, Phase II"),
    Term("la", "eng"),
]


def random_expression(chance: random.Random, depth: int) -> Expression:
    kind = chance.choice(["term", "and", "or", "not"]) if depth else "term"
    if kind == "term":
        return chance.choice(VALUES)
    if kind == "not":
        return Not(random_expression(chance, depth - 1))
    parts = tuple(random_expression(chance, depth - 1) for _ in range(chance.randint(2, 4)))
    return And(parts) if kind == "and" else Or(parts)


def test_written_queries_are_read_as_the_same_expression() -> None:
    chance = random.Random(1)
    for _ in range(300):
        expression = random_expression(chance, 4)
        assert parse_boolean(write_pubmed(expression)) == expression
    assert parse_boolean(write_pubmed(And((Or((A,)),)))) == A


def test_queries_are_written_in_pubmeds_syntax() -> None:
    query = And((Or((VALUES[0], VALUES[5])), VALUES[7], Not(VALUES[11])))
    assert write_pubmed(query) == (
        '("heart failure"[tiab] OR "Diabetes Mellitus, Type 2"[mh:noexp]) AND Smith J[au] '
        'NOT "Clinical Trial, Phase II"[pt]'
    )
