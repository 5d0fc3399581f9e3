"""OpenAPI document of the API: FastAPI's own, with API keys and problem responses added."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from serve.contracts.problem_forms import PROBLEM_JSON, Problem

SCHEME = "key"
PROBLEM_SCHEMA = f"#/components/schemas/{Problem.__name__}"


class DocumentedAPI(FastAPI):
    """FastAPI application whose OpenAPI document describes API keys and problem responses."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document with an optional bearer key on every route."""
        if self.openapi_schema:
            return self.openapi_schema
        document = super().openapi()
        _name_problems(document)
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


def _name_problems(document: dict[str, Any]) -> None:
    """Replace FastAPI's media type of problem responses, `application/json`, by PROBLEM_JSON."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for response in operation["responses"].values():
                content = response.get("content", {})
                told = content.get("application/json", {})
                if told.get("schema") == {"$ref": PROBLEM_SCHEMA}:
                    content[PROBLEM_JSON] = content.pop("application/json")
