"""Files of a rating sheet: its key, and the ratings saved by its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.errors import InputError, cut
from cluster.parse_json import parse_json
from cluster.read_given import read_given
from evaluation.ratings.rating_sheet import CRITERIA, SCALE, Sheet


@dataclass(frozen=True, slots=True)
class Ratings:
    """Ratings by `rater` on the sheet with this id: answer -> criterion -> 1 to 5."""

    sheet: str
    rater: str
    given: Mapping[str, Mapping[str, int]]


def key_as_json(sheet: Sheet) -> str:
    """Return the key of a sheet as JSON: the question and the run of each answer."""
    answers = {id_: {"question": asked, "run": run} for id_, (asked, run) in sheet.key.items()}
    return json.dumps({"sheet": sheet.id, "answers": answers}, ensure_ascii=False, indent=1)


def read_ratings(path: Path) -> Ratings:
    """Read a ratings file saved by the sheet's page; raise InputError if it is not one."""
    content = _read(path, "ratings", "a file that the rating sheet's page saved")
    rater = content.get("rater")
    if not isinstance(rater, str) or not rater.strip():
        raise InputError(f"{path}: field rater must be the name of who rated")
    given: dict[str, dict[str, int]] = {}
    for answer, own in content["ratings"].items():
        if not isinstance(own, dict):
            raise InputError(f"{path}: answer {cut(answer, 40)}: must be an object")
        for criterion, value in own.items():
            if criterion not in CRITERIA:
                raise InputError(
                    f"{path}: answer {cut(answer, 40)}: no criterion {cut(criterion, 40)!r}; "
                    f"there are: {', '.join(CRITERIA)}"
                )
            if type(value) is not int or value not in SCALE:
                raise InputError(
                    f"{path}: answer {cut(answer, 40)}: {criterion} must be a whole number from "
                    f"1 to 5, not {value!r:.40}"
                )
        given[answer] = own
    return Ratings(content["sheet"], rater.strip(), given)


def read_key(path: Path, sheet: str) -> dict[str, str]:
    """Return the run of each answer of `sheet`; raise InputError for another sheet's key."""
    content = _read(path, "answers", "the key that was written with the sheet")
    if content["sheet"] != sheet:
        raise InputError(f"{path}: is the key of another sheet; name that of the ratings")
    runs = {
        answer: row.get("run") if isinstance(row, dict) else None
        for answer, row in content["answers"].items()
    }
    if bad := next((answer for answer, run in runs.items() if not isinstance(run, str)), None):
        raise InputError(f"{path}: answer {cut(bad, 40)}: field run must be a string")
    return {answer: str(run) for answer, run in runs.items()}


def _read(path: Path, field: str, wanted: str) -> Mapping[str, Any]:
    content = parse_json(read_given(path), str(path))
    if (
        not isinstance(content, dict)
        or not isinstance(content.get("sheet"), str)
        or not isinstance(content.get(field), dict)
    ):
        raise InputError(f"{path}: lacks a field sheet or {field}; name {wanted}")
    return content
