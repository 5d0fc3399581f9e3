"""Ordinary questions, of which BioASQ's training set has many, are searched as they are typed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from serve.question.typed.identifiers import read_identifiers
from serve.question.typed.parse_tags import heading_candidates
from serve.question.typed.read_tags import read_tags

QUESTIONS = Path("/work/shared/data/bioasq/questions-train.json")
pytestmark = pytest.mark.skipif(not QUESTIONS.is_file(), reason="BioASQ's questions are not here")


@cache
def bodies() -> list[str]:
    found = json.loads(QUESTIONS.read_text(encoding="utf-8"))["questions"]
    return [question["body"] for question in found]


@pytest.mark.slow
def test_no_field_tag_and_no_identifier_is_read_in_them() -> None:
    assert len(bodies()) > 1900
    assert [b for b in bodies() if heading_candidates(b) or read_tags(b, {}) is not None] == []
    assert [b for b in bodies() if read_identifiers(b)] == []
