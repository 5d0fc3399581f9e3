"""Prompts of the search steps, in `configs/prompts/search/NAME.txt`."""

from __future__ import annotations

from functools import cache

from serve.llm.prompts import PROMPTS, Prompt


@cache
def search_prompt(name: str) -> Prompt:
    """Load a prompt: a system message, a line `---`, and a user message with variables."""
    text = (PROMPTS / "search" / f"{name}.txt").read_text(encoding="utf-8")
    system, _, user = text.partition("\n---\n")
    return Prompt(name, system.strip(), user.strip())
