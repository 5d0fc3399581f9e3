"""References over HTTP: citation files, styled references, related citations, documents.

GET /v1/references   GET /v1/citations/{pmid}/related   POST /v1/answers/document
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Body, FastAPI, Path, Query
from fastapi.responses import JSONResponse, Response
from pydantic import AfterValidator, BaseModel, BeforeValidator, TypeAdapter, ValidationError

from cluster.answers import Answer, SearchResult
from cluster.errors import InputError
from cluster.settings.presets import load_system
from serve.contracts.problem_forms import KEY_STATUSES, problem, problems
from serve.contracts.request_forms import (
    MAX_CITATIONS,
    MAX_PMID,
    SystemName,
    explain_problems,
)
from serve.http.service import Service, require_ready
from serve.http.workbench.collect_citations import (
    collect_citations,
    missing_pmids,
    missing_words,
)
from serve.references.documents.number_answer import cited_pmids
from serve.references.documents.write_document import (
    FORMS,
    Form,
    FormName,
    check_size,
    write_document,
)
from serve.references.export_citations import FORMATS, Format, FormatName, export_citations
from serve.references.find_related import related_request
from serve.references.prepare_for_style import StyleName
from serve.references.style_references import style_references

MOST_EXPORTED = 1000
# Lower than MOST_EXPORTED, because formatting a reference in a style is slow.
MOST_STYLED = 200
MAX_ADDRESS = 4000
PMIDS = r"^[1-9][0-9]{0,15}(,[1-9][0-9]{0,15})*$"
ANSWER = TypeAdapter(Answer)


def plain_digits(value: Any) -> Any:
    """Raise ValueError for a string that is not all ASCII digits.

    Python would read `1_0`, ` 1` and `1.0` as numbers, but they are not PMIDs.
    """
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("is not a PMID; use digits only")
    return value


PathPmid = Annotated[int, Path(ge=1, le=MAX_PMID), BeforeValidator(plain_digits)]


def plain_list(value: str) -> str:
    """Raise ValueError unless `value` is a comma-separated list of PMIDs.

    FastAPI's own message would quote the regular expression.
    """
    if re.fullmatch(PMIDS, value) is None:
        raise ValueError("is not a list of PMIDs; give their digits, separated by commas")
    return value


Pmids = Annotated[
    str,
    AfterValidator(plain_list),
    Query(
        json_schema_extra={"pattern": PMIDS},
        max_length=MOST_EXPORTED * 17,
        description=f"PMIDs, separated by commas: at most {MOST_EXPORTED:,}, or "
        f"{MOST_STYLED} with `style`.",
        examples=["90000001,90000002"],
    ),
]


class StyledForm(BaseModel):
    """Styled reference. `html` uses only `i` and `b`; `retracted` is a notice, or ""."""

    number: int
    pmid: int
    text: str
    html: str
    retracted: str


class StyledForms(BaseModel):
    """References in the requested order, numbered from 1."""

    style: StyleName
    references: list[StyledForm]


def file_contents(forms: Iterable[Format | Form]) -> dict[str, Any]:
    """Return the OpenAPI content of the file formats."""
    kinds = {"application/json": "object", FORMATS["csl-json"].media_type: "array"}
    types = [form.media_type for form in forms]
    return {t: {"schema": {"type": kinds.get(t, "string")}} for t in types}


REFUSED = problems(*KEY_STATUSES, 404, 422, 503)
REFERENCES: dict[int | str, dict[str, Any]] = {
    200: {"model": StyledForms, "content": file_contents(FORMATS.values())},
    **REFUSED,
}
DOCUMENT: dict[int | str, dict[str, Any]] = {
    200: {"content": file_contents(FORMS.values())},
    **problems(*KEY_STATUSES, 422, 503),
}
# JSON escapes of characters that XML (DOCX) cannot contain. Group 1 matches escaped backslashes.
_UNPRINTABLE = re.compile(r"(\\\\)|\\(?:u00(?:0[0-8bce-f]|1[0-9a-f]|7f)|uff(?:fe|ff)|[bf])")
ANSWER_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}},
    }
}


def add_references(api: FastAPI, service: Service, default_system: str) -> None:
    """Add the routes of references, related citations and documents to `api`."""
    _add_documents(api, service)

    @api.get("/v1/references", response_class=Response, responses=REFERENCES)
    async def references(
        pmids: Pmids, format: FormatName | None = None, style: StyleName | None = None
    ) -> Any:
        """Return citations as a file of `format` for reference managers, or in `style` as JSON.

        They are in the order of `pmids`, without duplicates; 404 if one is not in the index.
        """
        require_ready(service)
        wanted = _read_pmids(pmids, MOST_STYLED if style else MOST_EXPORTED)
        if (format is None) == (style is None):
            raise InputError("give one of the fields format and style")
        found = await collect_citations(service, wanted)
        if missing := missing_words(missing_pmids(wanted, found)):
            return problem(404, missing)
        if style is not None:
            styled = await asyncio.to_thread(style_references, found, style)
            forms = [
                StyledForm(number=n, pmid=r.pmid, text=r.text, html=r.html, retracted=r.retracted)
                for n, r in enumerate(styled, 1)
            ]
            return JSONResponse(StyledForms(style=style, references=forms).model_dump())
        form = format or "ris"
        chosen, text = FORMATS[form], await asyncio.to_thread(export_citations, found, form)
        return as_file(text.encode(), chosen.media_type, f"references.{chosen.ending}")

    @api.get("/v1/citations/{pmid}/related", response_model=SearchResult, responses=REFUSED)
    async def related(
        pmid: PathPmid,
        k: Annotated[int, Query(ge=1, le=MAX_CITATIONS)] = 10,
        system: SystemName | None = None,
    ) -> Any:
        """Return citations similar to one, found by its title and the start of its abstract."""
        require_ready(service)
        citation = await service.answerer.citation(pmid)
        if citation is None:
            return problem(404, f"PMID {pmid} is not in this index")
        asked = related_request(citation, load_system(system or default_system), k)
        return service.record(await service.answerer.search(asked))


def _add_documents(api: FastAPI, service: Service) -> None:
    @api.post(
        "/v1/answers/document",
        response_class=Response,
        responses=DOCUMENT,
        openapi_extra=ANSWER_BODY,
    )
    async def document(
        answer: Annotated[dict[str, Any], Body()],
        form: FormName = "docx",
        style: StyleName = "vancouver",
        address: Annotated[str, Query(max_length=MAX_ADDRESS)] = "",
    ) -> Response:
        """Return a response of `/v1/answer` as a file with its references in `style`.

        `address` is the URL of the answer, which the document states. `text` and `json` are the
        same document as plain text, and as its parts in the order in which they are printed.
        """
        require_ready(service)
        read = _read_answer(answer)
        citations = await collect_citations(service, cited_pmids(read))
        content = await asyncio.to_thread(
            write_document, read, citations, form, style, None, address
        )
        return as_file(content, FORMS[form].media_type, f"citeray-answer.{FORMS[form].ending}")


def _read_pmids(text: str, most: int) -> list[int]:
    pmids = list(dict.fromkeys(map(int, text.split(","))))
    if len(pmids) > most:
        raise InputError(f"pmids: {len(pmids):,} given; give {most:,} at most")
    if max(pmids) > MAX_PMID:
        raise InputError(f"pmids: {max(pmids)} is not a PMID; the largest number is {MAX_PMID}")
    return pmids


def _read_answer(given: dict[str, Any]) -> Answer:
    """Return the parsed answer; raise InputError if it is invalid or too large for a document."""
    try:
        # Parse as JSON: strict validation of Python objects would reject lists for tuples.
        text = _UNPRINTABLE.sub(lambda m: m[1] or " ", json.dumps(given))
        answer = ANSWER.validate_json(text, strict=True)
    except ValidationError as error:
        found = error.errors()
        # Only Python's JSON reader accepts some input, such as a lone surrogate.
        if found[0]["type"] == "json_invalid":
            said = found[0]["ctx"]["error"]
            raise InputError(f"body: is not JSON: {said}; send the answer unchanged") from None
        raise InputError(explain_problems(found)) from None
    check_size(answer)
    if wrong := [pmid for pmid in cited_pmids(answer) if not 1 <= pmid <= MAX_PMID]:
        raise InputError(f"the answer cites {wrong[0]}, which is not a PMID; send it unchanged")
    return answer


def as_file(content: bytes, media_type: str, name: str) -> Response:
    """Return a response that browsers save as the file `name`."""
    kept = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Type": media_type}
    return Response(content, headers=kept)
