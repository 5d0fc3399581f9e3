"""Parse Boolean searches in PubMed's syntax, and write them.

As in PubMed, AND, OR and NOT in capitals are evaluated from left to right, adjacent terms are
joined by AND, a tag applies to all words since the last operator, and such words are a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cluster.errors import InputError, cut
from cluster.index.boolean.expressions import (
    EVERYTHING,
    And,
    Expression,
    Field,
    Not,
    Or,
    Term,
    terms_of,
)
from cluster.text.analysis import analyse
from serve.question.field_tags.field_names import (
    LANGUAGES,
    boolean_field_of,
    publication_type,
)
from serve.question.field_tags.parse_tags import QUOTES, plain_query
from serve.question.field_tags.read_tags import LAST_YEARS

MAX_CHARACTERS = 20_000
# Each term needs a byte for each citation of a shard while it is evaluated.
MAX_TERMS = 200
MAX_DEPTH = 20
UNTAGGED = (
    "words without a field tag are searched in titles and abstracts; PubMed would also look them "
    "up among MeSH headings"
)
TEXT_WORDS = "[tw] and [all] are searched in titles and abstracts only, as [tiab]"
EXACT_HEADINGS = "[mh] is read as [mh:noexp]: narrower headings are not included"
EXACT_MAJOR_HEADINGS = EXACT_HEADINGS.replace("[mh", "[majr")
EXACT_TYPES = "[pt] is read as [pt:noexp]: narrower publication types are not included"
LOWER_CASE = "and, or and not are operators only in capitals: write AND, OR or NOT to combine terms"
_TAGS = "[tiab], [ti], [ab], [mh], [majr], [au], [ta], [dp], [pt], [la] and [filter]"
_TOKEN = re.compile(r'"[^"]*"|\[[^\[\]]*\]|[()]|[^\s()\[\]"]+|\S')
_OPERATORS = ("AND", "OR", "NOT")
_BARE = re.compile(r"[^\W_][\w-]*\*?")
# A heading with a slash after it, field codes between full stops, and words at a distance.
_OVID_FIELD = "(?:ab|af|hw|kf|kw|mp|nm|ot|pt|rn|sh|ti|tw)"
_OVID = re.compile(
    rf"""(?:\bexp\s+)?(?:"[^"]*"|(?<![^\s()"])[^\s()"]*\w)/(?=\s*(?:$|\))|\s+(?:and|or|not)\b)
    |(?<=[\w")*$?])\.{_OVID_FIELD}(?:,{_OVID_FIELD})*\.(?=\s|\)|$)
    |(?<=\s)adj\d{{1,2}}(?=\s+[\w"(])""",
    re.IGNORECASE | re.VERBOSE,
)
_WHY = {
    "unsupported": f"cannot be applied here; the supported tags are {_TAGS}",
    "ot": "cannot be applied here, because the index has no column of keywords; use [tiab]",
    "pt": "not a publication type of PubMed; give one such as Review or Randomized Controlled "
    "Trial",
    "la": "not a language of PubMed; give one such as english or eng",
    "filter": "not a filter here; the supported ones are all, humans, y_1, y_5, y_10, languages "
    "and publication types",
}
_WHY |= dict.fromkeys(("pmid", "doi", "pmc"), _WHY["unsupported"])


@dataclass(frozen=True, slots=True)
class BooleanQuery:
    """A parsed query, with notes on how it differs from PubMed's reading of it."""

    expression: Expression
    notes: tuple[str, ...] = ()


def parse_boolean(text: str) -> Expression:
    """Return the expression of a query in PubMed's syntax, as `read_boolean` does."""
    return read_boolean(text).expression


def read_boolean(text: str) -> BooleanQuery:
    """Parse a query in PubMed's syntax.

    Raises InputError, which names the part and the fix, for tags and values that cannot be
    searched, unbalanced quotes or parentheses, and queries that are too long.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"query: {len(text):,} characters; give at most {MAX_CHARACTERS:,}")
    _check_pairs(text.translate(QUOTES))
    _check_ovid(text.translate(QUOTES))
    parser = _Parser(_TOKEN.findall(plain_query(text)))
    expression = parser.parse()
    count = sum(1 for _ in terms_of(expression))
    if count > MAX_TERMS:
        raise InputError(f"query: {count} terms; give at most {MAX_TERMS}")
    return BooleanQuery(expression, tuple(parser.notes))


def _check_pairs(text: str) -> None:
    """Raise InputError for a quote, a bracket or a parenthesis without its counterpart."""
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token[0] == "(":
            opened.append(token.start())
        elif token[0] == ")" and opened:
            opened.pop()
        elif token[0] in ')"[]':
            opened.append(token.start())
            break
    if opened:
        at = opened[-1]
        raise InputError(
            f"query: {text[at]} at character {at + 1} without its counterpart; close it or "
            "remove it"
        )


def _check_ovid(text: str) -> None:
    """Raise InputError for Ovid's syntax outside quotes, which would be searched as words."""
    unquoted = re.sub('"[^"]*"', lambda quoted: f'"{"_" * (len(quoted[0]) - 2)}"', text)
    if found := _OVID.search(unquoted):
        part = text[found.start() : found.end()]
        raise InputError(
            f"query: {cut(part)} at character {found.start() + 1} is Ovid's syntax; use PubMed's: "
            '"Heart Failure"[mh] for a heading, heart failure[tiab] for words, and AND instead of '
            "adj"
        )


@dataclass(slots=True)
class _Level:
    """The expression so far within one pair of parentheses.

    `chain` is AND or OR while more parts can be added to the expression, otherwise "".
    """

    expression: Expression | None = None
    operator: str = ""
    chain: str = ""
    words: list[str] = field(default_factory=list)

    def join(self, item: Expression) -> None:
        """Join `item` with the last operator (default AND)."""
        operator, self.operator = self.operator or "AND", ""
        item = Not(item) if operator == "NOT" else item
        chain = "OR" if operator == "OR" else "AND"
        known = self.expression
        if known is None:
            self.expression = item
        elif known == EVERYTHING and operator == "NOT" and not self.chain:
            # PubMed's only form of a negation without a term before it: all[sb] NOT x.
            self.expression = item
        else:
            parts = known.parts if self.chain == chain and isinstance(known, And | Or) else (known,)
            self.expression = (Or if chain == "OR" else And)((*parts, item))
            self.chain = chain


class _Parser:
    """Recursive-descent parser of one query."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens: Iterator[str] = iter(tokens)
        self._open = 0
        # A dictionary removes duplicate notes and preserves their order.
        self.notes: dict[str, None] = {}

    def parse(self) -> Expression:
        """Return the expression up to the closing parenthesis or the end."""
        level = _Level()
        for token in self._tokens:
            if token == "(":
                self._join_words(level)
                self._open += 1
                if self._open > MAX_DEPTH:
                    raise InputError(
                        f"query: parentheses are nested over {MAX_DEPTH} deep; use fewer levels"
                    )
                level.join(self.parse())
            elif token == ")":
                self._open -= 1
                break
            elif token in _OPERATORS:
                self._join_words(level)
                if level.expression is None or level.operator:
                    raise InputError(_dangling(token, "before"))
                level.operator = token
            elif token[0] == "[":
                level.join(self._tagged(level.words, token))
                level.words = []
            else:
                if token[0] == '"' or (level.words[-1:] and level.words[-1][0] == '"'):
                    self._join_words(level)
                if token.upper() in _OPERATORS:
                    self.notes[LOWER_CASE] = None
                level.words.append(token)
        self._join_words(level)
        if level.operator:
            raise InputError(_dangling(level.operator, "after"))
        if level.expression is None:
            raise InputError("query: nothing to search for; write terms as in metformin[tiab]")
        return level.expression

    def _join_words(self, level: _Level) -> None:
        """Join the words since the last term, which have no tag, as words of title or abstract."""
        words, level.words = level.words, []
        if words and words[0][0] != '"':
            # As in PubMed, stop words without a tag are ignored.
            kept = [word for word in words if analyse(word)]
            words = kept or [word for word in words if any(map(str.isalnum, word))]
        if not words:
            return
        self.notes[UNTAGGED] = None
        parts = tuple(Term("tiab", _unquoted(word)) for word in words)
        level.join(parts[0] if len(parts) == 1 else And(parts))

    def _tagged(self, words: list[str], tag: str) -> Expression:
        """Return the term of a tag and the words before it."""
        value = _unquoted(" ".join(words))
        if not value:
            raise InputError(
                f"query: the field tag {tag} has no value before it; write one, as in "
                "Smith J[au] or 2015:2024[dp]"
            )
        name, colon, qualifier = re.sub("[\u2010-\u2014]", "-", tag[1:-1]).partition(":")
        kind = boolean_field_of(name)
        exact = qualifier.strip().casefold() == "noexp" and kind in ("mh", "majr", "pt")
        where = f"query, {cut(value)}{tag}"
        if kind is None:
            raise InputError(
                f"{where}: {tag} is not a field tag of PubMed; use one of {_TAGS}, or put the text "
                "in quotes"
            )
        if colon and not exact:
            raise InputError(f"{where}: {tag} cannot be applied; leave out :{qualifier.strip()}")
        if kind in ("mh", "majr") and not exact:
            self.notes[EXACT_HEADINGS if kind == "mh" else EXACT_MAJOR_HEADINGS] = None
        return self._term(kind, value, where, tag)

    def _term(self, kind: str, value: str, where: str, tag: str) -> Expression:
        folded = value.casefold()
        last = LAST_YEARS.fullmatch(value)
        match kind:
            case "tw":
                self.notes[TEXT_WORDS] = None
                return Term("tiab", value)
            case "tiab" | "ti" | "ab" | "mh" | "majr" | "au" | "ta":
                return Term(_FIELDS[kind], value)
            case "filter" if folded == "all":
                return EVERYTHING
            case "filter" if folded in ("human", "humans"):
                return Term("mh", "Humans")
            case "dp" | "filter" if last:
                return Term("dp", f"{datetime.now(UTC).year - int(last[1])}:3000")
            case "dp":
                return Term("dp", f"{value}3000" if value.endswith(":") else value)
            case "pt" | "filter" if known := publication_type(value):
                if ":" not in tag:
                    self.notes[EXACT_TYPES] = None
                return Term("pt", known)
            case "la" | "filter" if code := LANGUAGES.get(folded):
                return Term("la", code)
            case "la" if re.fullmatch("[a-z]{3}", folded):
                return Term("la", folded)
        why = _WHY[kind]
        raise InputError(f"{where}: {f'{tag} {why}' if why.startswith('cannot') else why}")


_FIELDS: dict[str, Field] = {
    "tiab": "tiab", "ti": "ti", "ab": "ab", "mh": "mh", "majr": "majr", "au": "au", "ta": "ta",
}  # fmt: skip


def _dangling(operator: str, side: str) -> str:
    return (
        f"query: {operator} has no term {side} it; write one, leave {operator} out, or put it in "
        "quotes if it is an ordinary word"
    )


def _unquoted(words: str) -> str:
    return words.strip('" ').strip(",; ")


def write_pubmed(expression: Expression) -> str:
    """Return the query in PubMed's syntax; `parse_boolean` reads it as an equal expression.

    And and Or with a single part are written, and read, as this part.
    """
    match expression:
        case Term(field_, value):
            return _written_term(field_, value)
        case Not(part):
            return f"all[sb] NOT {_grouped(part)}"
        case And(()):
            return "all[sb]"
        case Or(()):
            return "all[sb] NOT all[sb]"
        case And((part,)) | Or((part,)):
            return write_pubmed(part)
        case And(parts):
            joined = [
                f"NOT {_grouped(part.part)}" if isinstance(part, Not) else f"AND {_grouped(part)}"
                for part in parts[1:]
            ]
            return " ".join([_grouped(parts[0]), *joined])
        case Or(parts):
            return " OR ".join(map(_grouped, parts))


def _grouped(expression: Expression) -> str:
    """Return the query in parentheses, unless it is a single term."""
    written = write_pubmed(expression)
    is_term = isinstance(expression, Term) or expression == EVERYTHING
    return written if is_term else f"({written})"


def _written_term(field_: Field, value: str) -> str:
    plain = value.replace('"', " ")
    # In quotes, PubMed would not look for further initials of an author.
    is_name = field_ == "au" and all(map(_BARE.fullmatch, plain.split()))
    is_date = field_ == "dp"
    is_word = _BARE.fullmatch(plain) and plain not in _OPERATORS
    quoted = plain if is_name or is_date or is_word else f'"{plain}"'
    qualifier = ":noexp" if field_ in ("mh", "majr") else ""
    return f"{quoted}[{field_}{qualifier}]"
