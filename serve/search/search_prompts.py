"""The prompts of the search's parts: `configs/prompts/search/NAME.txt`."""

from __future__ import annotations

from functools import cache

from serve.llm.prompts import PROMPTS, Prompt


@cache
def search_prompt(name: str) -> Prompt:
    """A file is a system message, a line `---`, and a user message that holds the variables."""
    text = (PROMPTS / "search" / f"{name}.txt").read_text(encoding="utf-8")
    system, _, user = text.partition("\n---\n")
    return Prompt(name, system.strip(), user.strip())
