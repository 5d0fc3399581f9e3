"""A question with field tags as parts that must all hold.

As in PubMed, AND, OR and NOT in capitals are operators, read from left to right, parentheses group,
and parts side by side are joined by AND.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.errors import InputError, cut
from serve.question.typed.field_names import PUBLICATION_TYPES, READ, Field, tags_in

MAX_TAGS = 50
MAX_DEPTH = 10
_QUOTES = str.maketrans("\u201c\u201d\u201e\u00ab\u00bb", '"""""')
_TOKEN = re.compile(r'"[^"]*"|\b(?:AND|OR|NOT)\b|[()]|[^\s()"]+|"')
_OPERATORS = ("AND", "OR", "NOT")
_DATE = r"\d{4}(?:/\d{1,2}){0,2}"
_DATES = re.compile(rf"(?:^|\s)({_DATE}(?:\s*:\s*(?:{_DATE})?)?)$")
_TWO_DATES = re.compile(
    rf'"?({_DATE})"?\s*(\[[^\]]*\])\s*:\s*"?({_DATE})"?\s*\[[^\]]*\]', re.IGNORECASE
)
_SURNAME = r"(?:(?:van|von|der|den|de|del|della|da|di|dos|du|la|le|el|al|bin|ten|ter)\s+)*[^\s]+"
_NAME = re.compile(rf"(?:^|\s)({_SURNAME}\s+[A-Z]{{1,3}})$|(?:^|\s)({_SURNAME}\s+[a-z])$")
_MOST_NAME_WORDS = 3


@dataclass(frozen=True, slots=True)
class Tagged:
    """A value and the field that it is looked for in."""

    field: Field
    value: str


@dataclass(frozen=True, slots=True)
class Parts:
    """What a citation must be: of each group of `tagged` one is enough. `words` are the rest.

    `operators` are those between words, which a search that ranks does not obey.
    """

    words: str = ""
    tagged: tuple[tuple[Tagged, ...], ...] = ()
    operators: tuple[str, ...] = ()


@dataclass(slots=True)
class _Node:
    """Operands that `operator` joins; one operand alone is under "AND"."""

    operator: str
    operands: list[_Node | Tagged | str] = field(default_factory=list)
    said: bool = False


def heading_candidates(body: str) -> list[str]:
    """What of `body` may be a MeSH heading: each value of [mh], and the ends of unquoted ones."""
    found: dict[str, None] = {}
    for words, quoted, kind in _values(_tokens(body)):
        if kind == "mh":
            for candidate in [" ".join(words)] if quoted else _ends(words):
                found[candidate] = None
    return list(found)


def parse_tags(body: str, headings: Mapping[str, str]) -> Parts | None:
    """The parts of a question with field tags; None for one without any.

    `headings` has the UI of each of `heading_candidates` that is one. Raises InputError for what
    filters cannot hold.
    """
    text = " ".join(body.translate(_QUOTES).split())
    if not tags_in(text):
        return None
    tree = _Parser(_tokens(text), headings).parse()
    return _flattened(tree)


def _tokens(body: str) -> list[str]:
    """Words and operators as texts; a tag is "[" and its field."""
    text = " ".join(body.translate(_QUOTES).split())
    text = _TWO_DATES.sub(r"\1:\3\2", text)
    tokens: list[str] = []
    at = 0
    tags = tags_in(text)
    if len(tags) > MAX_TAGS:
        raise InputError(f"question: {len(tags)} field tags; give at most {MAX_TAGS}")
    for begin, end, kind in tags:
        tokens += [*_plain_tokens(text[at:begin]), f"[{kind}"]
        at = end
    return _only_grouping([*tokens, *_plain_tokens(text[at:])])


def _plain_tokens(text: str) -> list[str]:
    """What is in brackets and no tag is a word, which "\\0" says until it is put back."""
    return [f"\0{t}" if t[0] == "[" else t for t in _TOKEN.findall(text)]


def _only_grouping(tokens: Sequence[str]) -> list[str]:
    """Parentheses without a tag or an operator between them are words, as are lone ones."""
    made, opened = list(tokens), []
    grouping: set[int] = set()
    for at, token in enumerate(tokens):
        if token == "(":
            opened.append(at)
        elif token == ")" and opened:
            begin = opened.pop()
            if any(t in _OPERATORS or t[0] == "[" for t in tokens[begin:at]):
                grouping |= {begin, at}
                if len(opened) > MAX_DEPTH:
                    raise InputError(
                        f"question: parentheses within parentheses, over {MAX_DEPTH} deep; write "
                        "it with fewer"
                    )
    for at, token in enumerate(tokens):
        if token in ("(", ")") and at not in grouping:
            made[at] = f"\0{token}"
    return made


def _values(tokens: Sequence[str]) -> Iterator[tuple[list[str], bool, str]]:
    """Of each tag the words before it, whether they are quoted, and its field."""
    words: list[str] = []
    for token in tokens:
        if token[0] == "[":
            quoted = bool(words) and _is_quoted(words[-1])
            yield ([words[-1].strip('" ')] if quoted else words), quoted, token[1:]
            words = []
        elif token in _OPERATORS or token in ("(", ")"):
            words = []
        else:
            words = [*words, token] if not token.endswith(("?", ";")) else []


def _is_quoted(word: str) -> bool:
    return len(word) > 2 and word[0] == word[-1] == '"'


def _ends(words: Sequence[str]) -> list[str]:
    return [" ".join(words[first:]) for first in range(len(words))]


class _Parser:
    """Reads one question's tokens from left to right."""

    def __init__(self, tokens: Sequence[str], headings: Mapping[str, str]) -> None:
        self._tokens = list(tokens)
        self._headings = headings
        self._at = 0

    def parse(self) -> _Node:
        tree = _Node("AND")
        operator, said = "AND", False
        words: list[str] = []

        def add(operand: _Node | Tagged | str) -> None:
            nonlocal tree, operator, said
            if tree.operator == operator or len(tree.operands) < 2:
                tree.operator = operator if tree.operands else tree.operator
                tree.operands.append(operand)
                tree.said |= said
            else:
                tree = _Node(operator, [tree, operand], said)
            operator, said = "AND", False

        def add_words() -> None:
            if words:
                add(_joined(words))
                words.clear()

        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token[0] == "[":
                before, tagged = self._tag(words, token[1:])
                words[:] = before
                add_words()
                add(tagged)
            elif token in _OPERATORS:
                add_words()
                if token == "NOT":
                    raise InputError(
                        "question: NOT cannot be applied, as filters only admit; leave it out, or "
                        "ask in words what you do not want"
                    )
                operator, said = token, True
            elif token == "(":
                add_words()
                add(self.parse())
            elif token == ")":
                break
            else:
                words.append(token.removeprefix("\0"))
        add_words()
        return tree

    def _tag(self, words: list[str], kind: str) -> tuple[list[str], Tagged]:
        """(words before the value, the tagged value)."""
        if kind == "unsupported":
            raise InputError(
                f"question, {cut(' '.join(words[-3:]))!r}: this field tag cannot be applied here; "
                f"the tags that can are {READ}"
            )
        if not words:
            raise InputError("question: a field tag has no value before it; write one")
        last = max((n + 1 for n, w in enumerate(words[:-1]) if w.endswith(("?", ";"))), default=0)
        before, value = words[:last], words[last:]
        if _is_quoted(value[-1]):
            return [*before, *value[:-1]], Tagged(_as_field(kind), value[-1].strip('" '))
        count = self._count(value, kind)
        text = _joined(value[len(value) - count :]).strip(" ,;")
        return [*before, *value[: len(value) - count]], Tagged(_as_field(kind), text)

    def _count(self, words: Sequence[str], kind: str) -> int:
        """How many of the last `words` are the value of the field."""
        text = " ".join(words)
        if kind == "dp":
            found = _DATES.search(text)
            return len(found[1].split()) if found else len(words)
        if kind == "au" and (found := _NAME.search(text)):
            return len((found[1] or found[2]).split())
        if kind == "au" and len(words) > _MOST_NAME_WORDS:
            raise InputError(
                f"question, {cut(text)}[au]: where does the name begin? Put AND before it, or "
                "quotes around it"
            )
        if kind == "la" or (kind == "filter" and len(words) > 1):
            return 1
        known: Mapping[str, str] = {"mh": self._headings, "pt": PUBLICATION_TYPES}.get(kind, {})
        ends = enumerate(_ends(words))
        of = (n for n, end in ends if (end if kind == "mh" else end.casefold()) in known)
        return len(words) - next(of, 0)


def _as_field(kind: str) -> Field:
    found: Field = kind  # type: ignore[assignment]
    return found


def _joined(words: Sequence[str]) -> str:
    """Words as they stood, without the space that parentheses would get."""
    text = " ".join(word.removeprefix("\0") for word in words)
    return re.sub(r" (?=[?;,.)])", "", text.replace("( ", "("))


def _flattened(tree: _Node) -> Parts:
    words: list[str] = []
    tagged: list[tuple[Tagged, ...]] = []
    operators: dict[str, None] = {}
    for part in _conjuncts(tree):
        if isinstance(part, str):
            words.append(part)
        elif isinstance(part, Tagged):
            tagged.append((part,))
        else:
            some = list(_alternatives(part))
            texts = [one for one in some if isinstance(one, str)]
            tags = [one for one in some if isinstance(one, Tagged)]
            if len(texts) == len(some):
                words += texts
                operators["OR"] = None
            elif texts or len({tag.field for tag in tags}) > 1:
                raise InputError(
                    "question: OR between different fields, or between a field and words, cannot "
                    "be applied; use it between values of one field, in parentheses"
                )
            else:
                tagged.append(tuple(tags))
    if len(words) > 1 and tree.said and "OR" not in operators:
        operators["AND"] = None
    return Parts(_joined(words), tuple(tagged), tuple(operators))


def _conjuncts(node: _Node) -> Iterator[_Node | Tagged | str]:
    if node.operator == "OR" and len(node.operands) > 1:
        yield node
        return
    for operand in node.operands:
        if isinstance(operand, _Node):
            yield from _conjuncts(operand)
        else:
            yield operand


def _alternatives(node: _Node) -> Iterator[Tagged | str]:
    for operand in node.operands:
        if not isinstance(operand, _Node):
            yield operand
        elif operand.operator == "OR" or len(operand.operands) == 1:
            yield from _alternatives(operand)
        else:
            raise InputError(
                "question: AND within OR cannot be applied; ask two questions, or use OR only "
                "between values of one field, in parentheses"
            )
