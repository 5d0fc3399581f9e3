"""Write a search strategy for PubMed, for Ovid MEDLINE, as a PRISMA-S paragraph, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from cluster.errors import InputError
from cluster.index.boolean.expressions import TEXT_FIELDS, And, Expression, Not, Or, Term
from serve.question.field_tags.field_names import LANGUAGES
from serve.question.field_tags.parse_boolean import parse_boolean, write_pubmed
from serve.strategy.strategy_records import Strategy, StrategyBlock, StrategyTerm

StrategyFormat = Literal["text", "pubmed", "ovid", "prisma-s"]
STRATEGY_FORMATS = get_args(StrategyFormat)
_OVID_SUFFIXES = {
    "tiab": "ti,ab", "ti": "ti", "ab": "ab", "ta": "jn,ja", "pt": "pt", "au": "au",
}  # fmt: skip
# Words that Ovid reads as operators or as numbers of lines unless they are quoted.
_OVID_OPERATORS = ("and", "or", "not", "adj", "freq")
# The year of PubMed's oldest articles, for a range without a beginning.
_FIRST_YEAR = "1781"
_LANGUAGE_NAMES = {code: name for name, code in LANGUAGES.items() if len(name) > 3}


def export_strategy(strategy: Strategy, form: StrategyFormat) -> str:
    """Return the strategy as text that ends with a line feed."""
    match form:
        case "pubmed":
            return f"{strategy.pubmed}\n"
        case "ovid":
            return write_ovid(parse_boolean(strategy.pubmed))
        case "prisma-s":
            return prisma_paragraph(strategy)
        case "text":
            return strategy_report(strategy)


def write_ovid(expression: Expression) -> str:
    """Return numbered lines in Ovid MEDLINE's syntax; the last line is the whole search.

    Headings are not exploded and words of a phrase are adjacent (`adj`). Ovid limits years, not
    months and days: a range of dates covers the whole of its last year. Raises InputError for NOT
    without a term before it.
    """
    lines: list[str] = []

    def add(line: str) -> int:
        if line not in lines:
            lines.append(line)
        return lines.index(line) + 1

    def write(part: Expression) -> int:
        match part:
            case Term():
                return add(_ovid_term(part))
            case Not():
                raise InputError("Ovid: NOT needs a term before it; write x NOT y")
            case Or(parts):
                words = [p for p in parts if isinstance(p, Term) and p.field == "tiab"]
                numbers = [write(p) for p in parts if p not in words]
                if words:
                    numbers.append(add(f"({' or '.join(map(_ovid_words, words))}).ti,ab."))
                return _joined(numbers, "or")
            case And(parts):
                limits = [p for p in parts if isinstance(p, Term) and p.field == "dp"]
                kept = [p for p in parts if p not in limits and not isinstance(p, Not)]
                number = _joined([write(p) for p in kept], "and")
                for negated in (p.part for p in parts if isinstance(p, Not)):
                    number = add(f"{number} not {write(negated)}")
                for limit in limits:
                    number = add(f"limit {number} to {_ovid_years(limit.value)}")
                return number

    def _joined(numbers: Sequence[int], operator: str) -> int:
        unique = list(dict.fromkeys(numbers))
        return unique[0] if len(unique) == 1 else add(f" {operator} ".join(map(str, unique)))

    write(expression)
    return "".join(f"{number}. {line}\n" for number, line in enumerate(lines, 1))


def _ovid_term(term: Term) -> str:
    if term.field in ("mh", "majr"):
        return f"{'*' if term.field == 'majr' else ''}{_ovid_name(term.value)}/"
    if term.field == "la":
        return f"{_LANGUAGE_NAMES.get(term.value, term.value)}.lg."
    if term.field == "dp":
        return _ovid_years(term.value)
    words = _ovid_words(term) if term.field in TEXT_FIELDS else _ovid_name(term.value)
    if term.field == "au" and " " in words:
        # As in PubMed, further initials may follow.
        words += "*"
    return f"({words}).{_OVID_SUFFIXES[term.field]}."


def _ovid_name(name: str) -> str:
    """Return a name, in quotes if it has a word that Ovid reads as an operator."""
    is_quoted = any(word in _OVID_OPERATORS for word in name.casefold().split())
    return f'"{name}"' if is_quoted else name


def _ovid_words(term: Term) -> str:
    """Return a word, or the words of a phrase joined by `adj`."""
    words = term.value.replace("/", " ").replace("(", " ").replace(")", " ").split()
    return " adj ".join(
        f'"{word}"' if word.casefold() in _OVID_OPERATORS or word.isdigit() else word
        for word in (word.strip(",;:.") for word in words)
        if word
    )


def _ovid_years(dates: str) -> str:
    first, _, last = dates.partition(":")
    begin, end = max(first[:4], _FIRST_YEAR), (last or first)[:4]
    return f'yr="{begin} -Current"' if end >= "3000" else f'yr="{begin} -{end}"'


def prisma_paragraph(strategy: Strategy) -> str:
    """Return a paragraph for a methods section, with the items of PRISMA-S that apply."""
    dates = strategy.index_date or "an unknown day"
    limits = "; ".join(strategy.limits) or "none"
    has_headings = any(term.field == "mh" for block in strategy.blocks for term in block.terms)
    headings = "MeSH headings, which were not exploded, and " if has_headings else ""
    return (
        f"We searched a local index of {strategy.citations:,} PubMed citations (files of NLM up to "
        f"{strategy.last_source}; CiteRay, index version {strategy.index_version} of {dates}). The "
        f"search is as of {dates}. Limits: {limits}. The "
        f"strategy was derived from the question with {headings}words of titles and abstracts. "
        "It was checked against "
        f"{len(strategy.reference)} citations of a semantic search for the question, of which it "
        f"retrieved {strategy.found} ({strategy.recall:.0%}). It retrieved "
        f"{_counted(strategy.hits, 'record')} in total. "
        f"The complete strategy was: {strategy.pubmed}\n"
    )


def strategy_report(strategy: Strategy) -> str:
    """Return the strategy, what each block finds, and what dropping its terms loses."""
    wanted = len(strategy.reference)
    lines = [
        strategy.pubmed,
        "",
        f"{_counted(strategy.hits)}. Finds {strategy.found} of the {wanted} best citations of the "
        f"semantic search (recall {strategy.recall:.2f}, precision {strategy.precision:.2f}).",
    ]
    for number, block in enumerate(strategy.blocks, 1):
        lines += ["", f"Block {number}: {block.name} ({_alone(block, wanted)})"]
        lines += [f"  {_term_line(term, wanted)}" for term in block.terms]
        lines += [f"  {line}" for line in losses(block, strategy.found)]
    if strategy.left_out:
        lines += ["", "Left out:"]
    lines += [
        f"  {block.name}: would exclude {block.excludes} of the {strategy.found} found "
        f"({_alone(block, wanted)})"
        for block in strategy.left_out
    ]
    lines += ["", f"Limits: {'; '.join(strategy.limits)}"] if strategy.limits else []
    lines += ["", *(f"Note: {note}." for note in strategy.notes)] if strategy.notes else []
    lines += ["", f"Searched index {strategy.index_version} of {strategy.index_date}, with "
              f"{strategy.citations:,} citations."]  # fmt: skip
    lines += [f"Incomplete: {loss}." for loss in strategy.degraded]
    return "\n".join(lines) + "\n"


def losses(block: StrategyBlock, found: int) -> list[str]:
    """Return what a strategy that finds `found` loses without parts of the block, in words."""
    said = []
    if block.without_mh is not None:
        said.append(f"dropping the MeSH heading loses {block.without_mh} of {found}")
    if block.without_tiab is not None:
        said.append(f"dropping the [tiab] words loses {block.without_tiab} of {found}")
    if block.without_hits is not None:
        said.append(
            f"without this block: {_counted(block.without_hits)}, {block.excludes} more found"
        )
    return said


def _counted(count: int, noun: str = "hit") -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _alone(block: StrategyBlock, wanted: int) -> str:
    about = "" if block.exact else "about "
    return f"{about}{_counted(block.hits)}, finds {block.found} of {wanted}"


def _term_line(term: StrategyTerm, wanted: int) -> str:
    about = "" if term.exact else "about "
    loses = f", alone in finding {term.loses}" if term.loses else ""
    return (
        f"{write_pubmed(term.term)}: {about}{_counted(term.hits)}, finds {term.found} of {wanted}"
        f"{loses}"
    )
