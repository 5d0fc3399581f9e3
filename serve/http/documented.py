"""The OpenAPI document: FastAPI's own, with the key that a server may ask for and its errors."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from serve.http.problem_forms import PROBLEM_JSON, Problem

SCHEME = "key"
PROBLEM_SCHEMA = f"#/components/schemas/{Problem.__name__}"


class DocumentedAPI(FastAPI):
    """A FastAPI whose document tells of keys (`serve.http.door.guard`) and of problems."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document with an optional bearer key on every route."""
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        _name_problems(document)
        document.setdefault("components", {})["securitySchemes"] = {
            SCHEME: {
                "type": "http",
                "scheme": "bearer",
                "description": "Asked for where the server's operator has set keys.",
            }
        }
        # None at all, or a key.
        document["security"] = [{}, {SCHEME: []}]
        return document


def _name_problems(document: dict[str, Any]) -> None:
    """FastAPI tells every model as `application/json`; a Problem is sent as PROBLEM_JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                content = response.get("content", {})
                told = content.get("application/json", {})
                if told.get("schema") == {"$ref": PROBLEM_SCHEMA}:
                    content[PROBLEM_JSON] = content.pop("application/json")
