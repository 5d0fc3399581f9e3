"""The OpenAPI document: FastAPI's own, and how a key is given where the server asks for one."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

SCHEME = "key"


class DocumentedAPI(FastAPI):
    """A FastAPI whose document tells of the keys that `serve.http.door.guard` looks for."""

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document with an optional bearer key on every route."""
        document = super().openapi()
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
