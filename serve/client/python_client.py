"""Python client of a running endpoint, with typed records as results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from cluster.answers import Answer, Check, ExactAnswer, QuestionType, SearchResult
from cluster.appraisal import Sort, WeighedCitation
from cluster.index.filters.filters import FlagOptions
from cluster.problem_words import problem_words
from cluster.records import Passage
from cluster.study_design.designs import Design
from serve.client.call_endpoint import API_KEY_ENV, Endpoint, EndpointError
from serve.contracts.answer_events import Drafted, Event, Finished, Found, PartAnswered, StageDone
from serve.http.workbench.answer_forms import (
    AnswerList,
    FeedbackList,
    GivenFeedback,
    KeptAnswer,
    Replay,
)
from serve.http.workbench.watch_forms import OneWatch, WatchList, WatchSummary
from serve.references.export_citations import FormatName
from serve.saved.opinion import Rating, ReviewDecision, ReviewState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """Error event, which replaces the answer in a stream."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class StyledReference:
    """Styled reference. `html` uses only `i` and `b`; `retracted` is a notice, or ""."""

    number: int
    pmid: int
    text: str
    html: str
    retracted: str


@dataclass(frozen=True, slots=True)
class StyledReferences:
    """References in the requested order, numbered from 1."""

    style: str
    references: tuple[StyledReference, ...]


ReferenceFormat = FormatName
ReferenceStyle = Literal["vancouver", "apa", "ama"]
DocumentForm = Literal["markdown", "docx", "pdf"]


class FilterOptions(FlagOptions, total=False):
    """Filters on citations: the fields of `cluster.index.filters.filters.Filters`."""

    year_from: int
    year_to: int
    until: str
    journals: Sequence[str]
    publication_types: Sequence[str]
    languages: Sequence[str]
    mesh: Sequence[str]
    authors: Sequence[str]
    design: Sequence[Design]
    all_of: Sequence[str]


class TurnOptions(TypedDict, total=False):
    """Earlier question of the conversation (`question` is required) and its answer."""

    question: str
    answer: str


class SearchOptions(TypedDict, total=False):
    """Options of a search; defaults and limits are those of the endpoint (see its /docs)."""

    system: str
    type: QuestionType
    k: int
    id: str
    snippets: bool
    exclude: Sequence[int]
    budget_ms: int
    filters: FilterOptions
    sort: Sort
    turns: Sequence[TurnOptions]


class AnswerOptions(SearchOptions, total=False):
    """Options of an answer, in addition to those of a search.

    With `evidence` the answer uses only these passages. With `guess` it also has the best guess,
    which does not change the verdict. `check` determines whether sentences of the language model
    without supporting evidence are dropped or marked. `max_wrong` is the largest acceptable share
    of wrong answers among those stated. With `store` the endpoint stores the answer under its
    `answer_id`.
    """

    evidence: Sequence[Passage]
    guess: bool
    check: Check
    max_wrong: float
    store: bool


class WatchOptions(SearchOptions, total=False):
    """Options of a saved question. Changes are posted to `webhook` if its host is allowed."""

    check: Check
    webhook: str


class FeedbackOptions(TypedDict, total=False):
    """Corrected text and exact answer, the PMIDs that support them, and a note."""

    ideal: str
    exact: ExactAnswer
    pmids: Sequence[int]
    note: str


class CiteRay:
    """Client of the endpoint at `url`, for use in a `with` block.

    A call may take `timeout_s` seconds, including retries after a lost connection or while the
    endpoint is busy. Methods raise EndpointError with the endpoint's message and HTTP status, or
    its subclass BadRequestError, which is also an InputError, if the request is at fault.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        *,
        api_key_env: str = API_KEY_ENV,
        timeout_s: float = 120.0,
    ) -> None:
        self._endpoint = Endpoint(url, timeout_s, api_key_env)

    def search(self, question: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """Return ranked citations and the passages relevant to the question."""
        asked = {"question": question, **options}
        return self._read(SearchResult, "POST", "/v1/search", asked)

    def answer(self, question: str, **options: Unpack[AnswerOptions]) -> Answer:
        """Return an answer in which every sentence names the PMIDs that support it.

        With a `check` other than "drop", as in the presets of papers, a sentence may be
        `unsupported`. The `verdict` says whether the sources disagree, or the evidence does not
        answer the question: then there are no sentences, and `citations` are the nearest ones.
        """
        asked = {"question": question, **options}
        return self._read(Answer, "POST", "/v1/answer", asked)

    def answer_events(
        self, question: str, **options: Unpack[AnswerOptions]
    ) -> Generator[Event, None, None]:
        """Yield the progress events of an answer; the last one is Finished, with the answer.

        Closing the generator cancels the work on the endpoint.
        """
        asked = {"question": question, **options, "stream": True}
        with self._endpoint.lines("POST", "/v1/answer", asked) as lines:
            for name, data in read_events(lines):
                event = as_event(name, data)
                if event is not None:
                    yield event
                if isinstance(event, Finished):
                    return
        raise EndpointError("/v1/answer: the stream broke off before the answer")

    def citation(self, pmid: int) -> WeighedCitation:
        """Return the record of one PMID; raise BadRequestError, status 404, if not found."""
        return self._read(WeighedCitation, "GET", f"/v1/citations/{pmid}")

    def stored_answer(self, answer_id: str) -> KeptAnswer:
        """Return a stored answer with its request, preset and models.

        Raise BadRequestError, status 404, if it does not exist.
        """
        return self._read(KeptAnswer, "GET", f"/v1/answers/{answer_id}")

    def stored_answers(self, limit: int = 50, before: str = "") -> AnswerList:
        """List the answers stored with this key, newest first; pass `next` as `before` for more."""
        where = f"/v1/answers?limit={limit}&before={before}"
        return self._read(AnswerList, "GET", where)

    def delete_answer(self, answer_id: str) -> None:
        """Delete a stored answer and its feedback."""
        self._endpoint.read("DELETE", f"/v1/answers/{answer_id}")

    def replay(self, answer_id: str) -> Replay:
        """Ask the question of a stored answer again, and compare both answers."""
        return self._read(Replay, "POST", f"/v1/answers/{answer_id}/replay")

    def give_feedback(
        self, answer_id: str, rating: Rating, **options: Unpack[FeedbackOptions]
    ) -> GivenFeedback:
        """Rate a stored answer, optionally with a correction."""
        said = {"rating": rating, **options}
        return self._read(GivenFeedback, "POST", f"/v1/answers/{answer_id}/feedback", said)

    def feedback(
        self,
        limit: int = 50,
        before: str = "",
        *,
        rating: Rating | None = None,
        state: ReviewState | None = None,
    ) -> FeedbackList:
        """List feedback given with this key or on its answers, newest first; reviewers see all.

        `rating` and `state` are filters.
        """
        chosen = {"rating": rating, "state": state}
        asked = {name: value for name, value in chosen.items() if value is not None}
        query = urlencode({"limit": limit, "before": before, **asked})
        return self._read(FeedbackList, "GET", f"/v1/feedback?{query}")

    def review(self, feedback_id: str, state: ReviewDecision | Literal["open"]) -> GivenFeedback:
        """Accept, reject or reopen feedback; status 403 if the key is not a reviewer's."""
        where = f"/v1/feedback/{feedback_id}/review"
        return self._read(GivenFeedback, "POST", where, {"state": state})

    def watch(self, question: str, **options: Unpack[WatchOptions]) -> WatchSummary:
        """Save a question. It is asked again after each new index version."""
        asked = {"question": question, **options}
        return self._read(WatchSummary, "POST", "/v1/watches", asked)

    def watches(self) -> Sequence[WatchSummary]:
        """List the questions saved with this key, newest first."""
        return self._read(WatchList, "GET", "/v1/watches").watches

    def watched(self, watch_id: str) -> OneWatch:
        """Return a saved question with its newest answer and the history of changes."""
        return self._read(OneWatch, "GET", f"/v1/watches/{watch_id}")

    def unwatch(self, watch_id: str) -> None:
        """Delete a saved question and its history."""
        self._endpoint.read("DELETE", f"/v1/watches/{watch_id}")

    def related(self, pmid: int, *, k: int = 10, system: str | None = None) -> SearchResult:
        """Return the `k` other citations that are most similar to that of `pmid`.

        Raise BadRequestError, status 404, if `pmid` is not in the index.
        """
        query = urlencode({"k": k, **({"system": system} if system else {})})
        return self._read(SearchResult, "GET", f"/v1/citations/{pmid}/related?{query}")

    def references(self, pmids: Iterable[int], format: ReferenceFormat = "ris") -> str:
        """Return citations as a file for reference managers, in the order of `pmids` (max. 1,000).

        Raise BadRequestError, status 404, with the PMIDs that are not in the index.
        """
        return self._references(pmids, format=format).decode()

    def styled_references(
        self, pmids: Iterable[int], style: ReferenceStyle = "vancouver"
    ) -> tuple[StyledReference, ...]:
        """Return formatted references, at most 200; raise the same errors as `references`."""
        return _record(StyledReferences, self._references(pmids, style=style)).references

    def document(
        self, answer: Answer, form: DocumentForm = "docx", style: ReferenceStyle = "vancouver"
    ) -> bytes:
        """Return the bytes of a file with an answer and its reference list."""
        where = f"/v1/answers/document?{urlencode({'form': form, 'style': style})}"
        return self._endpoint.read("POST", where, asdict(answer))

    def _read(self, form: type[T], method: str, path: str, body: Any = None) -> T:
        return _record(form, self._endpoint.read(method, path, body))

    def _references(self, pmids: Iterable[int], **asked: str) -> bytes:
        query = urlencode({"pmids": ",".join(map(str, pmids)), **asked}, safe=",")
        return self._endpoint.read("GET", f"/v1/references?{query}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._endpoint.close()


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _record(form: type[T], reply: str | bytes) -> T:
    try:
        record: T = _adapter(form).validate_json(reply)
        return record
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the reply"
        raise EndpointError(
            f"not a reply of CiteRay: {where}: {problem_words(error.errors()[0])}"
        ) from error


def read_events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, data) of each server-sent event."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))
        elif fields:
            if "data" in fields:
                yield fields.get("event", ["message"])[-1], "\n".join(fields["data"])
            fields = {}


def as_event(name: str, data: str) -> Event | None:
    """Return the typed event, or None if this client does not know it.

    Raise EndpointError for an error event.
    """
    match name:
        case "stage":
            return _record(StageDone, data)
        case "evidence":
            return Found(_record(SearchResult, data))
        case "draft":
            return _record(Drafted, data)
        case "part":
            return _record(PartAnswered, data)
        case "answer":
            return Finished(_record(Answer, data))
        case "error":
            failure = _record(Failure, data)
            raise EndpointError(f"/v1/answer: {failure.detail}", failure.status)
    return None
