"""JSON of a small file with its own checksum, so that damage is detected."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_CHECK = "check"
_CHECK_CHARACTERS = 16


def seal(fields: Mapping[str, Any]) -> bytes:
    """Return `fields` as JSON, followed by their checksum as the last field."""
    digest = hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:_CHECK_CHARACTERS]
    return json.dumps({**fields, _CHECK: digest}).encode()


def unseal(data: bytes) -> dict[str, Any]:
    """Return the fields that `seal` wrote. Raises ValueError unless `data` is exactly its output.

    Text without a checksum, from older versions, is accepted unchecked.
    """
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("not a JSON object")
    if _CHECK in fields:
        del fields[_CHECK]
        if seal(fields) != data:
            raise ValueError("its checksum does not match")
    return fields
