"""What is done to an answer last, and cannot change what it says: forms, caps, once each.

A yes needs evidence that affirms it. Paper 000 (section 5.1.1) lost its yes/no questions by
inferring yes from related findings; it asks for a direct quote or a clearly labelled
statement instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cluster.records import Evidence, ExactAnswer, QuestionType
from serve.attribute_sentences import split_sentences
from serve.compare_wording import numbers_agree, read_wording
from serve.extract_exact import (
    MAX_CHARS,
    MAX_FACTOIDS,
    MAX_LIST,
    STANCE_COVERAGE,
    distinct,
    stance,
)

# An affirming sentence holds this share of the question's words. On the train questions, gold
# passages given, a model that always says yes is right in 0.652; with 0.4, 0.5 and 0.6 in
# 0.710, 0.718 and 0.699.
AFFIRMING_COVERAGE = 0.5
# A shorter quote is a name, not a statement.
MIN_QUOTE_WORDS = 4

LIMITS = {"factoid": MAX_FACTOIDS, "list": MAX_LIST}

_PAIRS = (("'", "'"), ("\u2018", "\u2019"))
_LEADS = re.compile(r"^(?:[\s,;:\"\u201c\u201d]|\.(?!\d))+")
_TRAILS = re.compile(r"[\s,;:.\"\u201c\u201d]+$")


def settle_exact(
    kind: QuestionType,
    exact: ExactAnswer,
    body: str,
    evidence: Sequence[Evidence],
    quote: str | None = None,
) -> ExactAnswer:
    """`exact` in the form of `kind`: `yes` or `no`, or names trimmed, each once, few enough.

    `quote` is what a yes was asked to rest on, None where it was not asked to. Done twice it
    is as done once.
    """
    if kind == "yesno":
        word = trim_name(exact).casefold() if isinstance(exact, str) else ""
        return "yes" if word == "yes" and affirms(body, evidence, quote) else "no"
    if kind not in LIMITS:
        return None
    groups = exact if isinstance(exact, list) else []
    return settle_names(groups, limit=LIMITS[kind], max_chars=MAX_CHARS)


def settle_names(groups: Sequence[Sequence[str]], *, limit: int, max_chars: int) -> list[list[str]]:
    """The groups of synonyms in their order, each name once over all of them.

    Names of more than `max_chars` characters are left out, and so is a group whose first
    name an earlier group has.
    """
    kept: list[list[str]] = []
    seen: set[str] = set()
    for group in groups:
        names = [name for name in map(trim_name, group) if 0 < len(name) <= max_chars]
        fitting = distinct([name for name in names if re.search(r"\w", name)])
        if not fitting or fitting[0].casefold() in seen:
            continue
        kept.append([name for name in fitting if name.casefold() not in seen])
        seen.update(name.casefold() for name in fitting)
    return kept[:limit]


def trim_name(name: str) -> str:
    """`name` without white space, quotes and stops round it; ".05" and "5'" stay whole."""
    before = ""
    while name != before:
        before = name
        name = _TRAILS.sub("", _LEADS.sub("", " ".join(name.split())))
        for left, right in _PAIRS:
            if len(name) > 1 and name.startswith(left) and name.endswith(right):
                name = name[1:-1]
    return name


def affirms(body: str, evidence: Sequence[Evidence], quote: str | None = None) -> bool:
    """Whether a passage states that the answer to the yes/no question `body` is yes.

    A `quote` that was asked for must stand in a passage, word for word, and say so; else
    some sentence must speak of what was asked and deny none of it.
    """
    question = read_wording(body)
    if quote is not None:
        said = _plain(quote)
        there = any(said in _plain(item.passage.text) for item in evidence)
        long = len(said.split()) >= MIN_QUOTE_WORDS
        return there and long and stance(question, quote) >= STANCE_COVERAGE
    return any(
        stance(question, part) >= AFFIRMING_COVERAGE
        for item in evidence
        for part in split_sentences(item.passage.text)
    )


def keeps_numbers(sentence: str, premises: Sequence[str]) -> bool:
    """Whether each number of `sentence` stands, with its unit, in one of the `premises`.

    Paper 000 (section 5.1.4): an answer of 14% where the passages had 24%.
    """
    said = read_wording(sentence)
    return not said.numbers or any(numbers_agree(said, read_wording(text)) for text in premises)


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
