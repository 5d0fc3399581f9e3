"""Ordinary questions, such as those of BioASQ's training set, are searched as typed."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from serve.question.field_tags.identifiers import read_identifiers
from serve.question.field_tags.parse_tags import heading_candidates
from serve.question.field_tags.read_tags import read_tags

QUESTIONS = Path(__file__).parents[4] / "shared/data/bioasq/questions-train.json"
pytestmark = pytest.mark.skipif(not QUESTIONS.is_file(), reason="BioASQ's questions are not here")


@cache
def bodies() -> list[str]:
    found = json.loads(QUESTIONS.read_text(encoding="utf-8"))["questions"]
    return [question["body"] for question in found]


@pytest.mark.slow
def test_training_questions_have_no_tags_or_identifiers() -> None:
    assert len(bodies()) > 1900
    assert [b for b in bodies() if heading_candidates(b) or read_tags(b, {}) is not None] == []
    assert [b for b in bodies() if read_identifiers(b)] == []
