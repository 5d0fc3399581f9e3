"""Request models of the HTTP API and the messages for invalid requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    ValidationInfo,
    field_validator,
)

from cluster.answers import Check, Question, QuestionType, Turn
from cluster.appraisal import Sort
from cluster.errors import cut
from cluster.problem_words import problem_words
from cluster.records import Passage, SectionName
from cluster.settings.answer_settings import MaxWrong
from cluster.settings.presets import is_system, load_system, paper_runs, system_names
from serve.contracts.filter_form import FilterForm
from serve.contracts.problem_forms import FieldError
from serve.contracts.request import Request

MAX_QUESTION_CHARACTERS = 2000
MAX_CITATIONS = 100
MAX_PMID = 2**53
MAX_EXCLUDED = 1000
MAX_GIVEN = 200
MAX_GIVEN_CHARACTERS = 5000
MAX_PROBLEMS = 5
MAX_POINTER = 100
EXAMPLE: dict[str, Any] = {"question": "Does metformin activate AMPK?", "k": 5}
GIVEN = "Metformin activates AMPK in rat hepatocytes."
EXAMPLE_WITH_EVIDENCE = {
    **EXAMPLE,
    "type": "yesno",
    "evidence": [
        {"pmid": 90000001, "section": "abstract", "begin": 0, "end": len(GIVEN), "text": GIVEN}
    ],
}
MAX_TURNS = 10
MAX_TURN_ANSWER = 10_000
MAX_BUDGET_MS = 600_000

# Strict: otherwise pydantic accepts `true` as 1 and "5" as 5, contrary to the OpenAPI document.
Pmid = Annotated[int, Field(ge=1, le=MAX_PMID, strict=True)]
# JSON readers that use doubles round larger integers.
Offset = Annotated[int, Field(ge=0, le=2**53, strict=True)]


def known_system(value: str) -> str:
    """Return the preset name; raise ValueError with the available names if it is unknown."""
    if not is_system(value):
        raise ValueError(f"unknown; there are: {', '.join(system_names())}")
    return value


def _list_systems(schema: dict[str, Any]) -> None:
    """Add the preset names when the schema is built, because the settings can define some."""
    schema["enum"] = [*system_names(), *paper_runs()]


SystemName = Annotated[str, AfterValidator(known_system), Field(json_schema_extra=_list_systems)]


def _not_blank(remedy: str) -> AfterValidator:
    """Return a validator that rejects text of white space only."""

    def check(value: str) -> str:
        if not value.strip():
            raise ValueError(f"is empty; {remedy}")
        return value

    return AfterValidator(check)


QuestionText = Annotated[
    str,
    Field(min_length=1, max_length=MAX_QUESTION_CHARACTERS, json_schema_extra={"pattern": r"\S"}),
]


class TurnForm(BaseModel):
    """Earlier question of the same conversation, with its answer."""

    model_config = ConfigDict(extra="forbid")

    question: Annotated[QuestionText, _not_blank("leave the turn out")]
    answer: Annotated[str, Field(max_length=MAX_TURN_ANSWER)] = ""

    def as_turn(self) -> Turn:
        """Return the turn as a record."""
        return Turn(self.question, self.answer)


class SearchRequest(BaseModel):
    """Biomedical question in English, with search options.

    `k` is the number of citations to return and `system` the name of a preset. `budget_ms` limits
    the response time in milliseconds (0: the server's own limit). `exclude` lists PMIDs to leave
    out. `snippets` requests the sentences that answer the question. `filters` restrict the
    citations. `sort` orders citations and evidence by relevance, by date (newest first) or by the
    strength of the study design. `turns` are earlier questions of the conversation, oldest first;
    they complete a follow-up question.
    """

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    question: Annotated[QuestionText, _not_blank("ask a question"), AfterValidator(str.strip)]
    system: SystemName | None = None
    k: Annotated[int, Field(ge=1, le=MAX_CITATIONS, strict=True)] = 10
    id: Annotated[str, Field(max_length=200)] = ""
    type: QuestionType = "unknown"
    snippets: StrictBool = False
    # A list: pydantic checks its length first, but validates every item of a tuple.
    exclude: Annotated[list[Pmid], Field(max_length=MAX_EXCLUDED)] = []
    budget_ms: Annotated[int, Field(ge=0, le=MAX_BUDGET_MS, strict=True)] = 0
    filters: FilterForm = FilterForm()
    sort: Sort = "relevance"
    turns: Annotated[list[TurnForm], Field(max_length=MAX_TURNS)] = []

    def as_question(self) -> Question:
        """Return the question as a record; its type is "unknown" if none was given."""
        left_out = tuple(self.exclude)
        return Question(self.id, self.question, self.type, left_out, budget_ms=self.budget_ms)

    def as_request(self, default_system: str) -> Request:
        """Return the request as a record; raise InputError for an unknown preset or bad filters."""
        system = load_system(self.system or default_system)
        filters = self.filters.as_filters()
        turns = tuple(turn.as_turn() for turn in self.turns)
        return Request(self.as_question(), system, self.k, self.snippets, filters, self.sort, turns)


class GivenPassage(BaseModel):
    """Passage in the form of a response's snippets.

    `text` is used as given, even if its length differs from `end - begin`.
    """

    model_config = ConfigDict(extra="forbid")

    pmid: Pmid
    section: SectionName
    begin: Offset
    end: Offset
    text: Annotated[
        str, Field(max_length=MAX_GIVEN_CHARACTERS), _not_blank("leave the passage out")
    ]

    @field_validator("end")
    @classmethod
    def not_before_begin(cls, value: int, info: ValidationInfo) -> int:
        """Raise ValueError if `end` is less than `begin`; they may be equal."""
        if value < info.data.get("begin", 0):
            raise ValueError("is before begin")
        return value

    def as_passage(self) -> Passage:
        """Return the passage as a record; its offsets are not checked against the text."""
        return Passage(self.pmid, self.section, self.begin, self.end, self.text)


class AnswerRequest(SearchRequest):
    """Question with answer options, in addition to those of a search.

    With `evidence` the answer uses only these passages, and no search takes place. With `stream`
    the response is a stream of server-sent events. With `guess` an answer that lacks evidence also
    contains the best guess, for formats that force a choice. `check` overrides the preset's own:
    model sentences without supporting evidence are dropped, marked, or marked and counted like the
    others ("off"). With `store` the server keeps the answer, and `answer_id` is its permanent
    address under `/v1/answers/`.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE, EXAMPLE_WITH_EVIDENCE]})

    evidence: Annotated[list[GivenPassage], Field(max_length=MAX_GIVEN)] = []
    stream: StrictBool = False
    guess: StrictBool = False
    check: Check | None = None
    max_wrong: MaxWrong | None = None
    store: StrictBool = False

    def as_question(self) -> Question:
        """Return the question as a record, with its `evidence` and `guess`."""
        given = tuple(passage.as_passage() for passage in self.evidence)
        return replace(super().as_question(), given=given, guess=self.guess)

    def as_request(self, default_system: str) -> Request:
        """Return the request as a record; its preset gets the given `check` and `max_wrong`."""
        request = super().as_request(default_system)
        system = request.system.checking(self.check).with_max_wrong(self.max_wrong)
        return replace(request, system=system)


def explain_problems(problems: Sequence[Any]) -> str:
    """Return one sentence with each invalid field, the problem and the given value.

    Only the first `MAX_PROBLEMS` are named; the others are counted.
    """
    parts = []
    for problem in problems[:MAX_PROBLEMS]:
        if problem["type"] == "json_invalid":
            parts.append(f"body: is not JSON: {problem['ctx']['error']} at {problem['loc'][-1]}")
        elif problem["loc"] == ("body",) and isinstance(problem.get("input"), bytes):
            parts.append("body: send JSON, with the header `Content-Type: application/json`")
        else:
            parts.append(_explain(problem))
    if more := len(problems[MAX_PROBLEMS:]):
        parts.append(f"and {more} more")
    return "; ".join(parts)


def field_errors(problems: Sequence[Any]) -> list[FieldError]:
    """Return the first `MAX_PROBLEMS` errors in fields of the body, as JSON pointers."""
    found = [problem for problem in problems[:MAX_PROBLEMS] if len(problem["loc"]) > 1]
    return [
        FieldError(pointer=pointer, detail=cut(problem_words(problem)))
        for problem in found
        if problem["loc"][0] == "body"
        and problem["type"] != "json_invalid"
        and len(pointer := _pointer(problem["loc"][1:])) <= MAX_POINTER
    ]


def _pointer(path: Sequence[Any]) -> str:
    """Return the path as a JSON pointer (RFC 6901) in the form of a URI fragment."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return "#" + "".join(f"/{quote(step, safe='~')}" for step in steps)


def _explain(problem: Mapping[str, Any]) -> str:
    where = ".".join(str(p) for p in problem["loc"] if p != "body") or "body"
    said = problem_words(problem)
    words = f"{where}: {said}"
    if problem["type"] == "missing" or said.startswith("is empty"):
        return words
    given = repr(problem.get("input"))
    shown = given if len(given) <= 60 else given[:57] + "..."
    return f"{words} (got {shown})"


def explain_unreadable(error: BaseException | None) -> str:
    """Return why Python's JSON reader failed on a body for a reason other than its syntax."""
    if isinstance(error, UnicodeDecodeError):
        return f"body: is not UTF-8 at byte {error.start}; send JSON in UTF-8"
    if isinstance(error, RecursionError):
        return "body: is nested too deep; no field here holds more than a few levels"
    return "body: cannot be read as JSON; a number in it may have too many digits"
