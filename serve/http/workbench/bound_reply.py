"""Limit MCP responses to a number of characters by leaving out whole citations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter

from cluster.answers import Answer, SearchResult
from cluster.errors import InputError
from cluster.records import Citation
from serve.http.answer_words import answer_words, search_words
from serve.references.describe_citation import one_line
from serve.references.documents.number_answer import cited_pmids
from serve.references.style_references import style_references

DEFAULT_CHARACTERS = 40_000
MaxChars = Annotated[
    int,
    Field(
        ge=1000,
        le=1_000_000,
        strict=True,
        description="Maximum length of the response in characters, about four per token. Whole "
        "citations are left out to fit, the last ones first.",
    ),
]
UNREAD = "the record is not in this index, or could not be read"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReply(SearchResult):
    """Search result; `left_out` is the number of citations that did not fit."""

    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerReply(Answer):
    """Answer with a reference list.

    `references` are the cited PMIDs that fit, in the order in which they are first cited.
    `left_out` is the number of citations that did not fit.
    """

    references: tuple[str, ...]
    left_out: int


SEARCH: TypeAdapter[SearchReply] = TypeAdapter(SearchReply)
ANSWER: TypeAdapter[AnswerReply] = TypeAdapter(AnswerReply)


def fit_reply(
    count: int, make: Callable[[int], tuple[T, str]], form: TypeAdapter[T], limit: int
) -> tuple[T, str]:
    """Return `make(n)` for the largest n up to `count` that fits.

    `make(n)` returns a record with n citations, and its text. The record as JSON and the text may
    each have up to `limit` characters. Raise InputError if `make(0)` is already longer.
    """

    def size(reply: tuple[T, str]) -> int:
        return max(len(reply[1]), len(form.dump_json(reply[0]).decode()))

    if size(whole := make(count)) <= limit:
        return whole
    if (least := size(make(0))) > limit:
        raise InputError(
            f"max_chars: {limit:,} is too small; the shortest reply has {least:,} characters"
        )
    fits, too_many = 0, count
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if size(make(middle)) <= limit:
            fits = middle
        else:
            too_many = middle
    return make(fits)


def left_words(count: int) -> list[str]:
    """Return a line with the number of citations left out, or [] if there are none."""
    if not count:
        return []
    more = "1 more citation was" if count == 1 else f"{count:,} more citations were"
    return [f"{more} left out because of max_chars."]


def fit_search(found: SearchResult, limit: int) -> tuple[SearchReply, str]:
    """Return the search result with as many citations as fit, and its text."""
    order = _once(_found_pmids(found))

    def make(count: int) -> tuple[SearchReply, str]:
        left = len(order) - count
        reply = SearchReply(
            **{**_fields(found, SearchResult), **_kept(found, order[:count])}, left_out=left
        )
        return reply, "\n".join([search_words(reply), *left_words(left)])

    return fit_reply(len(order), make, SEARCH, limit)


def fit_answer(
    answer: Answer, citations: Sequence[Citation], limit: int
) -> tuple[AnswerReply, str]:
    """Return the answer with as many citations as fit, cited ones first, and its text.

    `citations` are the records of the cited PMIDs for the reference list, which marks PMIDs
    without a record.
    """
    cited = cited_pmids(answer)
    order = _once([*cited, *_found_pmids(answer)])
    styled = dict.fromkeys(cited, UNREAD)
    styled |= {r.pmid: one_line(r.text) for r in style_references(citations, "vancouver")}

    def make(count: int) -> tuple[AnswerReply, str]:
        kept, left = order[:count], len(order) - count
        listed = [pmid for pmid in cited if pmid in kept]
        changed: dict[str, Any] = {
            **_fields(answer, Answer),
            **_kept(answer, kept),
            **_shown(answer, kept),
            "parts": tuple(
                replace(part, **_kept(part, kept), **_shown(part, kept)) for part in answer.parts
            ),
        }
        references = tuple(styled[pmid] for pmid in listed)
        reply = AnswerReply(**changed, references=references, left_out=left)
        lines = [f"PMID {pmid}: {styled[pmid]}" for pmid in listed]
        head = ["References:"] if lines else []
        return reply, "\n".join([answer_words(reply), *head, *lines, *left_words(left)])

    return fit_reply(len(order), make, ANSWER, limit)


def _once(pmids: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(pmids))


def _found_pmids(found: SearchResult) -> list[int]:
    passages = [*(item.passage for item in found.evidence), *found.snippets]
    return [c.pmid for c in found.citations] + [passage.pmid for passage in passages]


def _fields(found: SearchResult, form: type[SearchResult]) -> dict[str, Any]:
    return {field.name: getattr(found, field.name) for field in fields(form)}


def _kept(found: SearchResult, pmids: Sequence[int]) -> dict[str, Any]:
    held = set(pmids)
    return {
        "citations": tuple(c for c in found.citations if c.pmid in held),
        "evidence": tuple(e for e in found.evidence if e.passage.pmid in held),
        "snippets": tuple(s for s in found.snippets if s.pmid in held),
    }


def _shown(answer: Answer, pmids: Sequence[int]) -> dict[str, Any]:
    """Return the field `shown`, renumbered by position in the evidence that was not left out."""
    if answer.shown is None:
        return {}
    held = set(pmids)
    places = [n for n, item in enumerate(answer.evidence) if item.passage.pmid in held]
    moved = {old: new for new, old in enumerate(places)}
    return {"shown": tuple(moved[position] for position in answer.shown if position in moved)}
