"""Parse a question with field tags into conditions that must all hold.

As in PubMed, AND, OR and NOT in capitals are operators, evaluated from left to right; parentheses
group, and adjacent parts are joined by AND.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cluster.errors import InputError, cut
from serve.question.typed.field_names import READ, Field, publication_type
from serve.question.typed.find_tags import Tag
from serve.question.typed.split_tokens import DATE, Mark, Token, split_tokens

_DATES = re.compile(
    rf"(?:^|\s)({DATE}(?:\s*:\s*(?:{DATE})?)?|\"?last \d{{1,3}} years?\"?)$", re.IGNORECASE
)
_SURNAME = r"(?:(?:van|von|der|den|de|del|della|da|di|dos|du|la|le|el|al|bin|ten|ter)\s+)*[^\s]+"
_NAME = re.compile(rf"(?:^|\s)({_SURNAME}\s+[A-Z]{{1,3}})$|(?:^|\s)({_SURNAME}\s+[a-z])$")
_MOST_NAME_WORDS = 3
DANGLING = (
    "question: {0} has no term {1} it; write one, leave {0} out, or write it in small letters if "
    "it is an ordinary word"
)


@dataclass(frozen=True, slots=True)
class Tagged:
    """A value and the field in which it is searched."""

    field: Field
    value: str


@dataclass(frozen=True, slots=True)
class Parts:
    """Parsed question: a citation must match at least one item of each group of `tagged`.

    `words` is the remaining text. `operators` are those between words, which a ranked search does
    not apply.
    """

    words: str = ""
    tagged: tuple[tuple[Tagged, ...], ...] = ()
    operators: tuple[str, ...] = ()


@dataclass(slots=True)
class _Node:
    """Operands joined by `operator`; a single operand has the operator "AND"."""

    operator: str
    operands: list[_Node | Tagged | str] = field(default_factory=list)
    said: bool = False


def heading_candidates(body: str) -> list[str]:
    """Return each value of [mh] in `body`, and for unquoted values also their last words."""
    found: dict[str, None] = {}
    for words, quoted, tag in _values(split_tokens(body)):
        if tag.kind == "mh":
            for candidate in [" ".join(words)] if quoted else _ends(words):
                found[candidate] = None
    return list(found)


def parse_tags(body: str, headings: Mapping[str, str]) -> Parts | None:
    """Return the parts of a question with field tags or operators; None if it has neither.

    `headings` has the UI of each of `heading_candidates` that is a MeSH heading. Raises InputError
    for conditions that filters cannot express.
    """
    tokens = split_tokens(body)
    if all(isinstance(token, str) for token in tokens):
        return None
    return _flattened(_Parser(tokens, headings).parse())


def _values(tokens: Sequence[Token]) -> Iterator[tuple[list[str], bool, Tag]]:
    """Yield for each tag the words before it, whether they are quoted, and the tag."""
    words: list[str] = []
    for token in tokens:
        if isinstance(token, Tag):
            quoted = bool(words) and _is_quoted(words[-1])
            yield ([words[-1].strip('" ')] if quoted else words), quoted, token
            words = []
        elif isinstance(token, Mark):
            words = []
        else:
            words = [*words, token] if not token.endswith(("?", ";")) else []


def _is_quoted(word: str) -> bool:
    return len(word) > 2 and word[0] == word[-1] == '"'


def _ends(words: Sequence[str]) -> list[str]:
    return [" ".join(words[first:]) for first in range(len(words))]


class _Level:
    """The operands read so far within one pair of parentheses, joined from left to right."""

    def __init__(self) -> None:
        self.tree = _Node("AND")
        self.words: list[str] = []
        self._operator = ""

    def add(self, operand: _Node | Tagged | str) -> None:
        """Join `operand` to the previous ones with the last operator (default AND)."""
        operator, said = self._operator or "AND", bool(self._operator)
        if self.tree.operator == operator or len(self.tree.operands) < 2:
            self.tree.operator = operator if self.tree.operands else self.tree.operator
            self.tree.operands.append(operand)
            self.tree.said |= said
        else:
            self.tree = _Node(operator, [self.tree, operand], said)
        self._operator = ""

    def add_words(self) -> None:
        """Add the words since the last operand as one operand."""
        if self.words:
            self.add(_joined(self.words))
            self.words = []

    def operate(self, operator: str) -> None:
        """Set the operator. Raises InputError for NOT, and if there is no term before it."""
        self.add_words()
        if operator == "NOT":
            raise InputError(
                "question: NOT cannot be applied, because CiteRay cannot exclude articles by a "
                "term; leave it out, or write it in small letters if it is an ordinary word"
            )
        if not self.tree.operands or self._operator:
            raise InputError(DANGLING.format(operator, "before"))
        self._operator = operator

    def end(self) -> _Node:
        """Return the tree. Raises InputError for an operator without a term after it."""
        self.add_words()
        if self._operator:
            raise InputError(DANGLING.format(self._operator, "after"))
        return self.tree


class _Parser:
    """Parses the tokens of a question from left to right."""

    def __init__(self, tokens: Sequence[Token], headings: Mapping[str, str]) -> None:
        self._tokens = iter(tokens)
        self._headings = headings

    def parse(self) -> _Node:
        """Return the tree of the tokens up to the closing parenthesis or the end."""
        level = _Level()
        for token in self._tokens:
            if isinstance(token, Tag):
                level.words, tagged = self._tag(level.words, token)
                level.add_words()
                level.add(tagged)
            elif isinstance(token, str):
                level.words.append(token)
            elif token.is_operator:
                level.operate(token.text)
            elif token.text == "(":
                level.add_words()
                level.add(self.parse())
            else:
                break
        return level.end()

    def _tag(self, words: list[str], tag: Tag) -> tuple[list[str], Tagged]:
        """Return the words before the value, and the tagged value."""
        kind = tag.field
        if kind is None:
            raise InputError(_refusal(words, tag))
        if not words:
            raise InputError(
                f"question: the field tag {tag.written} has no value before it; write one, as in "
                "Smith J[au] or 2015:2024[dp]"
            )
        last = max((n + 1 for n, w in enumerate(words[:-1]) if w.endswith(("?", ";"))), default=0)
        before, value = words[:last], words[last:]
        if _is_quoted(value[-1]):
            return [*before, *value[:-1]], Tagged(kind, value[-1].strip('" '))
        count = self._count(value, kind)
        text = _joined(value[len(value) - count :]).strip(" ,;")
        return [*before, *value[: len(value) - count]], Tagged(kind, text)

    def _count(self, words: Sequence[str], kind: str) -> int:
        """Return how many of the last `words` belong to the value of the field."""
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
        if kind == "la":
            return 1
        known = self._headings.get if kind == "mh" else publication_type
        if kind in ("mh", "pt", "filter"):
            for first, end in enumerate(_ends(words)):
                if known(end):
                    return len(words) - first
        return 1 if kind == "filter" else len(words)


def _refusal(words: Sequence[str], tag: Tag) -> str:
    """Return a message that says why a tag cannot be applied, and what to do instead."""
    where = f"question, {cut(' '.join(words[-3:]) + tag.written)}"
    if tag.kind == "unknown":
        return (
            f"{where}: {tag.written} is not a field tag of PubMed; use one of {READ}, or write it "
            "in parentheses if it is ordinary text"
        )
    if tag.kind == "unsupported":
        return (
            f"{where}: the field tag {tag.written} cannot be applied here; the tags that can are "
            f"{READ}"
        )
    what = "a distance between words" if tag.kind == "proximity" else "this qualifier"
    return (
        f"{where}: {tag.written} cannot be applied, because {what} is not supported; leave out "
        "what follows the colon"
    )


def _joined(words: Sequence[str]) -> str:
    """Join words by spaces, without spaces inside parentheses and before punctuation."""
    text = " ".join(words)
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
