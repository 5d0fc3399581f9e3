"""Read settings files with size limits, merge them, and explain validation errors."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from cluster.errors import InputError, cut
from cluster.problem_words import problem_words
from cluster.read_given import read_text
from cluster.settings.parse_yaml import parse_yaml

# Found by location, not by package name: in the wheel all packages are below `citeray`.
CONFIGS = Path(__file__).resolve().parents[2] / "configs"
MAX_CONFIG_BYTES = 64 * 1024
MAX_PROBLEMS = 10


def read_config(path: Path, origin: str) -> str:
    """Read a settings file. Raises InputError that names `origin` if unreadable or too large."""
    return read_text(path, origin, MAX_CONFIG_BYTES, "too large for settings")


def merge(
    base: dict[str, Any], over: Mapping[str, Any], whole: Collection[str] = ()
) -> dict[str, Any]:
    """Merge `over` into `base` recursively; mappings under a key in `whole` are replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping) and key not in whole:
            value = merge(old, value, whole)
        merged[key] = value
    return merged


# One process reads the same files several times, and parsing one takes 30 ms.
_parse = lru_cache(maxsize=32)(parse_yaml)


def read_yaml(text: str, origin: str) -> dict[str, Any]:
    """Parse `text` as a mapping; empty text gives an empty one. Raises InputError otherwise."""
    data = deepcopy(_parse(text, origin))
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise InputError(f"{origin}: expected a mapping of settings, got {type(data).__name__}")
    return data


def _field_names(model: type[BaseModel], path: Sequence[Any]) -> list[str]:
    """Return the valid keys at `path` in `model`, to suggest the nearest one."""
    for part in path:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)


def place_of(problem: Mapping[str, Any]) -> str:
    """Return the dotted key of a validation problem, such as index.shards."""
    # Pydantic adds the branch of a union to the location: literal['auto'], constrained-int.
    branch = ("[", "constrained-")
    parts = (str(part) for part in problem["loc"])
    return ".".join(part for part in parts if not any(mark in part for mark in branch))


def explain(error: ValidationError, model: type[BaseModel], origin: str) -> InputError:
    """Return an InputError that lists the problems by key and suggests keys for unknown ones."""
    problems = error.errors()
    lines = []
    for problem in problems[:MAX_PROBLEMS]:
        key = cut(place_of(problem))
        if problem["type"] == "extra_forbidden":
            valid = _field_names(model, problem["loc"][:-1])
            near = difflib.get_close_matches(str(problem["loc"][-1])[:80], valid, n=1, cutoff=0.0)
            hint = f"; did you mean {near[0]}?" if near else ""
            lines.append(f"unknown key {key}{hint}")
        elif key:
            said = problem_words(problem)
            shown = (
                "" if said.startswith("is empty") else f" (got {cut(repr(problem.get('input')))})"
            )
            lines.append(f"{key}: {said}{shown}")
        else:
            lines.append(problem_words(problem))
    if more := len(problems[MAX_PROBLEMS:]):
        lines.append(f"and {more} more")
    return InputError(f"{origin}: " + "; ".join(lines))
