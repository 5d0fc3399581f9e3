"""OpenAPI document of the API: FastAPI's own, with API keys and problem responses added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

from serve.contracts.problem_forms import PROBLEM_JSON, Problem

SCHEME = "key"
# Groups of routes in the documentation, by the beginning of the path; the first match applies.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Citations and references": ("/v1/citations", "/v1/references", "/v1/answers/document"),
    "Feedback": ("/v1/feedback", "/v1/answers/{answer_id}/feedback"),
    "Stored answers": ("/v1/answers",),
    "Questions": ("/v1/answer", "/v1/search", "/v1/suggest", "/v1/examples", "/v1/systems"),
    "Saved questions": ("/v1/watches",),
    "Batches": ("/v1/batches",),
    "Chat clients": ("/v1/chat", "/v1/models"),
    "Operation": ("/",),
}
SHOWN_FIRST = "Questions"
PROBLEM_SCHEMA = f"#/components/schemas/{Problem.__name__}"


class DocumentedAPI(FastAPI):
    """FastAPI application whose OpenAPI document describes API keys and problem responses."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document with an optional bearer key on every route."""
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        _name_problems(document)
        _group_routes(document)
        document.setdefault("components", {})["securitySchemes"] = {
            SCHEME: {
                "type": "http",
                "scheme": "bearer",
                "description": "Required if the server's operator has configured keys.",
            }
        }
        # The empty entry makes the key optional.
        document["security"] = [{}, {SCHEME: []}]
        return document


def _group_routes(document: dict[str, Any]) -> None:
    """Tag each route with the name of its group, and list the groups in the order to show."""
    used = set()
    for path, operations in document["paths"].items():
        group = next(name for name, begins in GROUPS.items() if path.startswith(begins))
        used.add(group)
        for operation in operations.values():
            operation["tags"] = [group]
    shown = sorted(GROUPS, key=lambda name: name != SHOWN_FIRST)
    document["tags"] = [{"name": name} for name in shown if name in used]


def _name_problems(document: dict[str, Any]) -> None:
    """Replace FastAPI's media type of problem responses, `application/json`, by PROBLEM_JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                content = response.get("content", {})
                documented = content.get("application/json", {})
                if documented.get("schema") == {"$ref": PROBLEM_SCHEMA}:
                    content[PROBLEM_JSON] = content.pop("application/json")
