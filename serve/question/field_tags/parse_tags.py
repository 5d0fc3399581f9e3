"""Parse a question with field tags into clauses that must all hold.

As in PubMed, AND, OR and NOT in capitals are operators, evaluated from left to right; parentheses
group, and adjacent parts are joined by AND.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cluster.errors import InputError, cut
from cluster.index.filters.read_dates import DATE
from serve.question.field_tags.field_names import REFUSED, publication_type
from serve.question.field_tags.find_tags import Tag, operators_in, tags_in

MAX_TAGS = 50
MAX_DEPTH = 10
# Typographic quotes and their plain form.
QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')
_TOKEN = re.compile(r'"[^"]*"|[()]|[^\s()"]+|"')
_TWO_DATES = re.compile(
    rf'"?({DATE})"?\s*(\[[^\]]*\])\s*:\s*"?({DATE})"?\s*\[[^\]]*\]', re.IGNORECASE
)
_DATES = re.compile(rf"{DATE}(?:\s*:\s*(?:{DATE})?)?|last \d{{1,3}} years?", re.IGNORECASE)
_SURNAME = r"(?:(?:van|von|der|den|de|del|della|da|di|dos|du|la|le|el|al|bin|ten|ter)\s+)*[^\s]+"
_NAME = re.compile(rf"{_SURNAME}\s+(?:[A-Z]{{1,3}}|[a-z])")
_MOST_NAME_WORDS = 3
DANGLING = (
    "question: {0} has no term {1} it; write one, leave {0} out, or write it in small letters if "
    "it is an ordinary word"
)
NOT_APPLIED = (
    "question: NOT cannot be applied, because CiteRay cannot exclude articles by a term; leave it "
    "out, or write it in small letters if it is an ordinary word"
)


class Mark(str):
    """Operator, or parenthesis that groups tags or operators."""

    __slots__ = ()


# Words are plain strings.
Token = Tag | Mark | str


@dataclass(frozen=True, slots=True)
class Tagged:
    """A value and the field in which it is searched."""

    field: str
    value: str


# Alternatives, of which one must hold. Words without a tag are strings.
Clause = list[Tagged | str]
# Function that returns a true value if its argument is the name of a MeSH heading.
IsHeading = Callable[[str], object]


def heading_candidates(body: str) -> list[str]:
    """Return each text in `body` that may be the value of [mh]: all words before it, or fewer."""
    asked: list[str] = []
    # Ignored here, because `read_tags` raises the same error.
    with suppress(InputError):
        parse_tags(body, asked.append)
    return list(dict.fromkeys(asked))


def parse_tags(body: str, is_heading: IsHeading) -> tuple[list[Clause], bool] | None:
    """Return the clauses of a question with field tags; None if it has none.

    The second value is True if the question contains AND. Raises InputError for conditions that
    filters cannot express.
    """
    tokens = _split_tokens(body)
    marks = [token for token in tokens if isinstance(token, Mark)]
    if any(isinstance(token, Tag) for token in tokens):
        return _parse(iter(tokens), is_heading), "AND" in marks
    has_terms = any(re.search(r"\w", token) for token in tokens if type(token) is str)
    if has_terms and "NOT" in marks:
        raise InputError(NOT_APPLIED)
    return None


def plain_query(body: str) -> str:
    """Return `body` with plain quotes, single spaces, and each range of dates under one tag."""
    return _TWO_DATES.sub(r"\1:\3\2", " ".join(body.translate(QUOTES).split()))


def _split_tokens(body: str) -> list[Token]:
    """Return the tokens of `body`.

    Raises InputError for too many tags or too deeply nested parentheses.
    """
    text = plain_query(body)
    tags = tags_in(text)
    if len(tags) > MAX_TAGS:
        raise InputError(f"question: {len(tags)} field tags; give at most {MAX_TAGS}")
    operators = operators_in(text, tags[0].begin if tags else None)
    tokens: list[Token] = []
    at = 0
    for tag in [*tags, None]:
        for word in _TOKEN.finditer(text, at, tag.begin if tag else len(text)):
            tokens.append(Mark(word[0]) if word.start() in operators else word[0])
        if tag:
            tokens.append(tag)
            at = tag.end
    _mark_groups(tokens)
    return tokens


def _mark_groups(tokens: list[Token]) -> None:
    """Mark balanced parentheses that enclose a tag or an operator; the others are words."""
    opened: list[int] = []
    for at, token in enumerate(tokens):
        if token == "(":
            opened.append(at)
        elif token == ")" and opened:
            begin = opened.pop()
            if any(isinstance(inside, Tag | Mark) for inside in tokens[begin:at]):
                tokens[begin], tokens[at] = Mark("("), Mark(")")
                if len(opened) > MAX_DEPTH:
                    raise InputError(
                        f"question: parentheses are nested over {MAX_DEPTH} deep; use fewer levels"
                    )


def _parse(tokens: Iterator[Token], is_heading: IsHeading) -> list[Clause]:
    """Return the clauses of the tokens up to the closing parenthesis or the end."""
    level = _Level()
    for token in tokens:
        if isinstance(token, Tag):
            value = _take_value(level.words, token, is_heading)
            level.join_words()
            level.join([[Tagged(token.kind, value)]])
        elif not isinstance(token, Mark):
            level.words.append(token)
        elif token == "(":
            level.join_words()
            level.join(_parse(tokens, is_heading))
        elif token == ")":
            break
        else:
            level.operate(token)
    level.join_words()
    if level.operator:
        raise InputError(DANGLING.format(level.operator, "after"))
    return level.clauses


@dataclass(slots=True)
class _Level:
    """The clauses read so far within one pair of parentheses, and the words after them."""

    clauses: list[Clause] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    operator: str = ""

    def join(self, clauses: list[Clause]) -> None:
        """Join `clauses` to the previous ones with the last operator (default AND)."""
        if self.operator != "OR":
            self.clauses += clauses
        elif len(self.clauses) == len(clauses) == 1:
            self.clauses[0] += clauses[0]
        else:
            raise InputError(
                "question: AND within OR cannot be applied; ask two questions, or use OR only "
                "between values of one field, in parentheses"
            )
        self.operator = ""

    def join_words(self) -> None:
        """Join the words since the last clause as one clause."""
        if self.words:
            self.join([[join_words(self.words)]])
            self.words = []

    def operate(self, operator: str) -> None:
        """Set the operator. Raises InputError for NOT, and if there is no term before it."""
        self.join_words()
        if operator == "NOT":
            raise InputError(NOT_APPLIED)
        if not self.clauses or self.operator:
            raise InputError(DANGLING.format(operator, "before"))
        self.operator = operator


def join_words(words: Sequence[str]) -> str:
    """Join words by spaces, without spaces inside parentheses and before punctuation."""
    return re.sub(r" (?=[?;,.)])", "", " ".join(words).replace("( ", "("))


def _take_value(words: list[str], tag: Tag, is_heading: IsHeading) -> str:
    """Remove the value of `tag` from the end of `words`, and return it."""
    if tag.kind in REFUSED:
        where = cut(" ".join(words[-3:]) + tag.written)
        raise InputError(f"question, {where}: {tag.written} {REFUSED[tag.kind]}")
    if not words:
        raise InputError(
            f"question: the field tag {tag.written} has no value before it; write one, as in "
            "Smith J[au] or 2015:2024[dp]"
        )
    is_quoted = re.fullmatch('"[^"]+"', words[-1])
    first = len(words) - 1
    # An unquoted value can extend back to the previous "?" or ";".
    while first and not is_quoted and not words[first - 1].endswith(("?", ";")):
        first -= 1
    trimmed = '" ' if is_quoted else " ,;"
    values = [join_words(words[at:]).strip(trimmed) for at in range(first, len(words))]
    is_value: dict[str, Callable[[str], object]] = {
        "dp": _DATES.fullmatch,
        "au": _NAME.fullmatch,
        "mh": is_heading,
        "pt": publication_type,
        "filter": publication_type,
    }
    known = [at for at, value in enumerate(values) if is_value.get(tag.kind, bool)(value)]
    if tag.kind == "au" and not known and len(values) > _MOST_NAME_WORDS:
        raise InputError(
            f"question, {cut(values[0])}[au]: where does the name begin? Put AND before it, or "
            "quotes around it"
        )
    # Languages and other filters are single words.
    is_word = tag.kind == "la" or (tag.kind == "filter" and not known)
    at = len(values) - 1 if is_word else known[0] if known else 0
    del words[first + at :]
    return values[at]
