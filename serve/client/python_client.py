"""CiteRay from Python: a running endpoint's search, answers and citations as typed records."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError

from cluster.answers import Answer, Check, ExactAnswer, QuestionType, SearchResult
from cluster.records import Passage
from cluster.study_design.designs import Design
from cluster.weighing import Sort, WeighedCitation
from serve.answer_events import Drafted, Event, Finished, Found, StageDone
from serve.client.call_endpoint import API_KEY_ENV, Endpoint, EndpointError
from serve.http.workbench.answer_forms import (
    AnswerList,
    FeedbackList,
    GivenFeedback,
    KeptAnswer,
    Replay,
)
from serve.http.workbench.watch_forms import OneWatch, WatchList, WatchSummary
from serve.saved.opinion import Decision, Rating, ReviewState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """What takes the answer's place in a stream."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class StyledReference:
    """`html` uses `i` and `b` alone; `retracted` is a notice, "" for none."""

    number: int
    pmid: int
    text: str
    html: str
    retracted: str


@dataclass(frozen=True, slots=True)
class StyledReferences:
    """References in the order asked for, numbered from 1."""

    style: str
    references: tuple[StyledReference, ...]


ReferenceFormat = Literal["ris", "bibtex", "csl-json", "nbib", "csv"]
ReferenceStyle = Literal["vancouver", "apa", "ama"]
DocumentForm = Literal["markdown", "docx", "pdf"]


class FilterOptions(TypedDict, total=False):
    """Which citations may be found; see `cluster.index.filters.filters.Filters`."""

    year_from: int
    year_to: int
    until: str
    journals: Sequence[str]
    publication_types: Sequence[str]
    languages: Sequence[str]
    mesh: Sequence[str]
    humans: bool
    retracted: bool
    has_abstract: bool
    authors: Sequence[str]
    design: Sequence[Design]
    all_of: Sequence[str]


class TurnOptions(TypedDict, total=False):
    """A question that was asked before, which must be given, and its answer."""

    question: str
    answer: str


class SearchOptions(TypedDict, total=False):
    """What is left out is as the endpoint has it; /docs tells its limits."""

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
    """With `evidence` the answer rests on these passages alone.

    With `guess` an answer that the evidence does not support well enough has its best guess.
    `check` is what becomes of a model's sentences that no evidence supports. With `store` the
    endpoint keeps the answer under its `answer_id`. `max_wrong` is the share of stated answers that
    may be wrong.
    """

    evidence: Sequence[Passage]
    guess: bool
    check: Check
    max_wrong: float
    store: bool


class WatchOptions(SearchOptions, total=False):
    """`webhook` is told of what changes, if the endpoint's operator allows its host."""

    check: Check
    webhook: str


class FeedbackOptions(TypedDict, total=False):
    """The corrected text and exact answer, the PMIDs that support them, and a note."""

    ideal: str
    exact: ExactAnswer
    pmids: Sequence[int]
    note: str


class CiteRay:
    """A client of the endpoint at `url`, for a `with` block.

    A call may take `timeout_s` seconds, in which it is made again after a lost connection and
    where the endpoint is busy. Raises EndpointError with the endpoint's own sentence and HTTP
    status; BadRequestError, which is an InputError too, where the request is at fault.
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
        """Ranked citations and the passages that speak to the question."""
        asked = {"question": question, **options}
        return self._read(SearchResult, "POST", "/v1/search", asked)

    def answer(self, question: str, **options: Unpack[AnswerOptions]) -> Answer:
        """An answer whose every sentence names the PMIDs that support it.

        By a `check` other than "drop", which presets of papers have, one may be `unsupported`.

        Its `verdict` tells where the evidence does not answer the question (it then has no
        sentences, and `citations` are the nearest ones), and where sources disagree.
        """
        asked = {"question": question, **options}
        return self._read(Answer, "POST", "/v1/answer", asked)

    def answer_events(
        self, question: str, **options: Unpack[AnswerOptions]
    ) -> Generator[Event, None, None]:
        """What is told while the answer is made, and last Finished with it.

        Who stops iterating ends the work on the endpoint too.
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
        """The whole record of one PMID; BadRequestError, status 404, where there is none."""
        return self._read(WeighedCitation, "GET", f"/v1/citations/{pmid}")

    def stored_answer(self, answer_id: str) -> KeptAnswer:
        """A stored answer with all it came of; BadRequestError, status 404, where there is none."""
        return self._read(KeptAnswer, "GET", f"/v1/answers/{answer_id}")

    def stored_answers(self, limit: int = 50, before: str = "") -> AnswerList:
        """The answers that were stored with this key, newest first; `before` is a list's `next`."""
        place = f"/v1/answers?limit={limit}&before={before}"
        return self._read(AnswerList, "GET", place)

    def delete_answer(self, answer_id: str) -> None:
        """Remove a stored answer and its feedback for good."""
        self._endpoint.read("DELETE", f"/v1/answers/{answer_id}")

    def replay(self, answer_id: str) -> Replay:
        """Ask again what a stored answer was asked, and compare both."""
        return self._read(Replay, "POST", f"/v1/answers/{answer_id}/replay")

    def give_feedback(
        self, answer_id: str, rating: Rating, **options: Unpack[FeedbackOptions]
    ) -> GivenFeedback:
        """Say whether a stored answer is right, and what it should have been."""
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
        """What this key said and what was said of its answers, newest first; for a reviewer, all.

        `rating` and `state` keep only such feedback.
        """
        chosen = {"rating": rating, "state": state}
        asked = {name: value for name, value in chosen.items() if value is not None}
        query = urlencode({"limit": limit, "before": before, **asked})
        return self._read(FeedbackList, "GET", f"/v1/feedback?{query}")

    def review(self, feedback_id: str, state: Decision | Literal["open"]) -> GivenFeedback:
        """Accept or reject feedback, or open it again; status 403 for a key that may not."""
        place = f"/v1/feedback/{feedback_id}/review"
        return self._read(GivenFeedback, "POST", place, {"state": state})

    def watch(self, question: str, **options: Unpack[WatchOptions]) -> WatchSummary:
        """Save a question, which is asked again after each version of the index."""
        asked = {"question": question, **options}
        return self._read(WatchSummary, "POST", "/v1/watches", asked)

    def watches(self) -> Sequence[WatchSummary]:
        """The questions that were saved with this key, newest first."""
        return self._read(WatchList, "GET", "/v1/watches").watches

    def watched(self, watch_id: str) -> OneWatch:
        """A saved question with its newest answer and the history of what changed."""
        return self._read(OneWatch, "GET", f"/v1/watches/{watch_id}")

    def unwatch(self, watch_id: str) -> None:
        """Remove a saved question and its history for good."""
        self._endpoint.read("DELETE", f"/v1/watches/{watch_id}")

    def related(self, pmid: int, *, k: int = 10, system: str | None = None) -> SearchResult:
        """The `k` citations most like one, without it; BadRequestError, status 404, as above."""
        query = urlencode({"k": k, **({"system": system} if system else {})})
        return self._read(SearchResult, "GET", f"/v1/citations/{pmid}/related?{query}")

    def references(self, pmids: Iterable[int], format: ReferenceFormat = "ris") -> str:
        """A file of citations for reference managers, in the order of `pmids`: 1,000 at most.

        BadRequestError, status 404, names the PMIDs that the index lacks.
        """
        return self._references(pmids, format=format).decode()

    def styled_references(
        self, pmids: Iterable[int], style: ReferenceStyle = "vancouver"
    ) -> tuple[StyledReference, ...]:
        """The references as a style prints them, 200 at most; raises as `references`."""
        return _record(StyledReferences, self._references(pmids, style=style)).references

    def document(
        self, answer: Answer, form: DocumentForm = "docx", style: ReferenceStyle = "vancouver"
    ) -> bytes:
        """The file of an answer with its reference list, to be written as it is."""
        place = f"/v1/answers/document?{urlencode({'form': form, 'style': style})}"
        return self._endpoint.read("POST", place, asdict(answer))

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
        place = ".".join(map(str, error.errors()[0]["loc"])) or "the reply"
        raise EndpointError(
            f"no reply of CiteRay's: {place}: {error.errors()[0]['msg']}"
        ) from error


def read_events(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(name, data) of each server-sent event."""
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
    """The typed event; None for one that this client does not know.

    Raises EndpointError for the event that takes the answer's place.
    """
    match name:
        case "stage":
            return _record(StageDone, data)
        case "evidence":
            return Found(_record(SearchResult, data))
        case "draft":
            return _record(Drafted, data)
        case "answer":
            return Finished(_record(Answer, data))
        case "error":
            failure = _record(Failure, data)
            raise EndpointError(f"/v1/answer: {failure.detail}", failure.status)
    return None
