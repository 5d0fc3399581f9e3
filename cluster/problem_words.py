"""Words for pydantic's validation errors, which are printed and sent to callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Messages by pydantic's type of the error; the fields in braces come from its context.
WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "has too many digits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": 'must match the pattern "{pattern}"',
    "string_unicode": "must be valid Unicode text",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "mapping_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dataclass_type": "must be a mapping of keys to values",
    "path_type": "must be a path",
    "json_invalid": "is not JSON: {error}",
    "union_tag_not_found": "lacks the field {discriminator}",
    "union_tag_invalid": "must have one of {expected_tags} in {discriminator}",
}


def problem_words(problem: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, such as "must be at most 100".

    `problem` is an item of `ValidationError.errors()`. The messages of our own validators are
    returned unchanged.
    """
    kind = problem["type"]
    if kind in ("value_error", "assertion_error"):
        return str(problem["msg"]).partition(", ")[2]
    context = {key: _shortened(value) for key, value in problem.get("ctx", {}).items()}
    if context.get("min_length") == 1 and kind in ("string_too_short", "too_short"):
        return "is empty"
    return WORDS.get(kind, "is not valid").format_map(context)


def _shortened(value: Any) -> Any:
    """Return a whole float as an int, so that 1.0 is printed as 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
