"""Split a question with field tags or operators into tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cluster.errors import InputError
from serve.question.typed.find_operators import end_of_prose, operators_in
from serve.question.typed.find_tags import Tag, tags_in

MAX_TAGS = 50
MAX_DEPTH = 10
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')
_TOKEN = re.compile(r'"[^"]*"|[()]|[^\s()"]+|"')
DATE = r"\d{4}(?:/\d{1,2}){0,2}"
_TWO_DATES = re.compile(
    rf'"?({DATE})"?\s*(\[[^\]]*\])\s*:\s*"?({DATE})"?\s*\[[^\]]*\]', re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mark:
    """An operator, or a grouping parenthesis."""

    text: str

    @property
    def is_operator(self) -> bool:
        """True for an operator, False for a parenthesis."""
        return self.text not in ("(", ")")


# Words are plain strings.
Token = Tag | Mark | str


def split_tokens(body: str) -> list[Token]:
    """Return the tokens of `body`.

    Raises InputError for too many tags or too deeply nested parentheses.
    """
    text = " ".join(body.translate(_QUOTES).split())
    text = _TWO_DATES.sub(r"\1:\3\2", text)
    tags = tags_in(text)
    if len(tags) > MAX_TAGS:
        raise InputError(f"question: {len(tags)} field tags; give at most {MAX_TAGS}")
    first_tag = tags[0].begin if tags else None
    operators = frozenset(operators_in(text, end_of_prose(text, first_tag)))
    tokens: list[Token] = []
    at = 0
    for tag in tags:
        tokens += [*_plain_tokens(text, at, tag.begin, operators), tag]
        at = tag.end
    return _grouped([*tokens, *_plain_tokens(text, at, len(text), operators)])


def _plain_tokens(text: str, begin: int, end: int, operators: frozenset[int]) -> list[Token]:
    return [
        Mark(m[0]) if m[0] in ("(", ")") or m.start() in operators else m[0]
        for m in _TOKEN.finditer(text, begin, end)
    ]


def _grouped(tokens: Sequence[Token]) -> list[Token]:
    """Turn parentheses into words if they are unbalanced or enclose no tag or operator."""
    opened: list[int] = []
    grouping: set[int] = set()
    for at, token in enumerate(tokens):
        if token == Mark("("):
            opened.append(at)
        elif token == Mark(")") and opened:
            begin = opened.pop()
            if any(_joins(inside) for inside in tokens[begin:at]):
                grouping |= {begin, at}
                if len(opened) > MAX_DEPTH:
                    raise InputError(
                        f"question: parentheses are nested over {MAX_DEPTH} deep; use fewer levels"
                    )
    return [
        token.text
        if isinstance(token, Mark) and not token.is_operator and at not in grouping
        else token
        for at, token in enumerate(tokens)
    ]


def _joins(token: Token) -> bool:
    return isinstance(token, Tag) or (isinstance(token, Mark) and token.is_operator)
