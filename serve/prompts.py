"""Prompts live in files, `configs/prompts/NAME.txt`, filled by `string.Template`.

A file is a system message, a line `---`, and a user message. Fixed text comes first so
that the model's prefix cache can reuse it; the variables stand in the user message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from string import Template

from cluster.errors import InputError
from cluster.records import Evidence
from cluster.settings import CONFIGS
from serve.language_model import Message

PROMPTS: Traversable = CONFIGS / "prompts"
REQUIRED = frozenset({"question", "evidence"})
ALLOWED = REQUIRED | {"answer"}

_OPENS_TAG = re.compile(r"<(?=\s*[^\s\d.=<\-+≤~±])")
_CLOSES_TOKEN = re.compile(r"\|\s*>")
_INSTRUCTION_TAG = re.compile(r"\[(\s*/?\s*INST\s*)\]", re.IGNORECASE)
# Zero-width and direction characters can hide a tag from a reader and not from a tokeniser.
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u00ad]|[^\S ]|[\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: its fixed system text and its user template."""

    name: str
    system: str
    user: str

    def messages(self, **values: str) -> list[Message]:
        """The conversation with every variable filled; raises InputError naming what is missing."""
        wanted = set(Template(self.user).get_identifiers())
        missing = sorted(wanted - values.keys())
        unused = sorted(values.keys() - wanted)
        if missing or unused:
            raise InputError(
                f"prompt {self.name}: missing variables {missing}, unused variables {unused}"
            )
        text = Template(self.user).substitute(values)
        return [
            Message(role="system", content=self.system),
            Message(role="user", content=text),
        ]


def load_prompt(name: str, folder: Traversable = PROMPTS) -> Prompt:
    """Reads `folder/name.txt`.

    Raises InputError when it is not there, has no `---` line, names a variable that
    nothing fills, or lacks `$question` or `$evidence`.
    """
    path = folder / f"{name}.txt"
    if not path.is_file():
        known = sorted(p.name.removesuffix(".txt") for p in folder.iterdir())
        raise InputError(f"{path}: no such prompt; there are: {', '.join(known)}")
    system, separator, user = path.read_text(encoding="utf-8").partition("\n---\n")
    if not separator:
        raise InputError(f"{path}: put a line --- between the system and the user message")
    if not Template(user).is_valid():
        raise InputError(f"{path}: a lone $ in the user message; write $$ for a dollar sign")
    found = set(Template(user).get_identifiers())
    if unknown := sorted(found - ALLOWED):
        raise InputError(f"{path}: unknown variables {unknown}; use {sorted(ALLOWED)}")
    if missing := sorted(REQUIRED - found):
        raise InputError(f"{path}: missing variables {missing}")
    return Prompt(name, system.strip(), user.strip())


def quote(text: str) -> str:
    """`text` as one line that can neither close the evidence block nor open a chat turn.

    Tags and special tokens (`</evidence>`, `<|im_start|>`, `[INST]`) lose their first
    character to a look-alike; comparisons such as `p < 0.05` stay as they are.
    """
    text = _INVISIBLE.sub(" ", text)
    text = _OPENS_TAG.sub("\u2039", text)
    text = _CLOSES_TOKEN.sub("|\u203a", text)
    text = _INSTRUCTION_TAG.sub(r"(\1)", text)
    return re.sub(r" {2,}", " ", text).strip()


def number_passages(evidence: Sequence[Evidence], max_chars: int) -> str:
    """The passages as lines `[1] text`, in order, whole ones only, within `max_chars`.

    The first passage is always there, cut if it alone is over the budget, so that a
    prompt never goes out without evidence.
    """
    lines: list[str] = []
    left = max_chars
    for item in evidence:
        line = f"[{len(lines) + 1}] {quote(item.passage.text)}"
        if len(line) > left and lines:
            break
        lines.append(line[:left])
        left -= len(line) + 1
    return "\n".join(lines)
