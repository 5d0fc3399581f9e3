"""JSON of one small file with a checksum of its own, so that no damage to it passes unnoticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_CHECK = "check"
_CHECK_CHARACTERS = 16


def seal(fields: Mapping[str, Any]) -> bytes:
    """The text of `fields`, which end with their checksum."""
    digest = hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:_CHECK_CHARACTERS]
    return json.dumps({**fields, _CHECK: digest}).encode()


def unseal(data: bytes) -> dict[str, Any]:
    """The fields that `seal` wrote. Raises ValueError unless `data` is exactly that text.

    A text without a checksum, which an older CiteRay wrote, is read as it is.
    """
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("not an object")
    if _CHECK in fields:
        del fields[_CHECK]
        if seal(fields) != data:
            raise ValueError("its checksum is another")
    return fields
