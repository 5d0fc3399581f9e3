"""Prompts of the search steps, in `configs/prompts/search/NAME.txt`."""

from __future__ import annotations

from serve.llm.prompts import Prompt, load_prompt


def search_prompt(name: str) -> Prompt:
    """Return the prompt of a search step."""
    return load_prompt(f"search/{name}")
