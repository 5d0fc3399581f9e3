"""Prompts live in files, filled by `string.Template`: `configs/prompts/PRESET/NAME-TYPE.txt`.

A file is a system message, a line `---`, and a user message. Fixed text comes first so
that the model's prefix cache can reuse it; the variables stand in the user message, but for
`$examples`, which may stand in either. Where it stands in neither, examples are turns of
the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from string import Template

from cluster.answers import Evidence
from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS
from cluster.study_design.tell_design import design_words
from serve.llm.chat_form import Message

PROMPTS: Traversable = CONFIGS / "prompts"
EVIDENCE = frozenset({"evidence", "supporting"})
# What the model reads: passages, or an answer that was written from them.
READ = EVIDENCE | {"answer"}
ALLOWED = READ | {"question", "contradicting", "entities", "examples"}

# What stands before a passage's text; "" for nothing.
Tell = Callable[[Evidence], str]

# Publication types that do not tell how much a finding weighs, and those said as RETRACTED.
_SAYS_LITTLE = re.compile(r"Journal Article|Research Support|English Abstract|Retracted Pub")
MAX_TYPES = 2

# Characters that a reader does not see and a tokeniser does: format characters (zero width,
# direction, soft hyphen, Unicode's tags), variation selectors, fillers, surrogates, private use.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# A tokeniser may normalise these forms to the ASCII characters that open and close its tokens.
_WIDE = str.maketrans("\uff1c\ufe64\uff1e\ufe65\uff3b\uff3d\uff5c", "<<>>[]|")
_OPENS_TAG = re.compile(r"<(?=[< ]?[^\s\d.=<\-+\u2264~\u00b1])")
_CLOSES_TOKEN = re.compile(r"\| ?>")
_BRACKETED = re.compile(r"\[( ?/? ?)([A-Za-z_]\w{1,39})( ?)\]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: its system text and its user template."""

    name: str
    system: str
    user: str

    @property
    def variables(self) -> frozenset[str]:
        """What the two templates name."""
        return frozenset(
            name for text in (self.system, self.user) for name in Template(text).get_identifiers()
        )

    def messages(self, turns: Sequence[Message] = (), **values: str) -> list[Message]:
        """The conversation with every variable filled, `turns` between system and question.

        Raises InputError naming what is missing or unused.
        """
        missing = sorted(self.variables - values.keys())
        unused = sorted(values.keys() - self.variables)
        if missing or unused:
            raise InputError(
                f"prompt {self.name}: missing variables {missing}, unused variables {unused}"
            )
        told = Template(self.system).substitute(values)
        return [
            *([Message(role="system", content=told)] if told else []),
            *turns,
            Message(role="user", content=Template(self.user).substitute(values)),
        ]


@cache
def find_prompt(name: str, kind: str, preset: str = "") -> Prompt:
    """The prompt `name` of a preset's folder for questions of type `kind`.

    NAME-KIND.txt goes before NAME.txt, and both before those that every preset shares.
    Raises InputError, as `load_prompt` does, for a faulty file and where there is none.
    """
    folders = [PROMPTS / preset, PROMPTS] if preset else [PROMPTS]
    names = [f"{name}-{kind}", name]
    for folder in folders:
        for choice in names:
            if (folder / f"{choice}.txt").is_file():
                return load_prompt(choice, folder)
    return load_prompt(names[0], folders[0])


def load_prompt(name: str, folder: Traversable = PROMPTS) -> Prompt:
    """Reads `folder/name.txt`.

    Raises InputError when it is not there, has no `---` line, names a variable that
    nothing fills, or lacks the question or the evidence in its user message.
    """
    path = folder / f"{name}.txt"
    if not path.is_file():
        files = folder.iterdir() if folder.is_dir() else ()
        known = sorted(p.name.removesuffix(".txt") for p in files if p.name.endswith(".txt"))
        raise InputError(f"{path}: no such prompt; there are: {', '.join(known)}")
    system, separator, user = path.read_text(encoding="utf-8").partition("\n---\n")
    if not separator:
        raise InputError(f"{path}: put a line --- between the system and the user message")
    if not (Template(user).is_valid() and Template(system).is_valid()):
        raise InputError(f"{path}: a lone $; write $$ for a dollar sign")
    prompt = Prompt(name, system.strip(), user.strip())
    if misplaced := sorted(set(Template(system).get_identifiers()) - {"examples"}):
        raise InputError(f"{path}: {misplaced} in the system message; put them into the user's")
    if unknown := sorted(prompt.variables - ALLOWED):
        raise InputError(f"{path}: unknown variables {unknown}; use {sorted(ALLOWED)}")
    missing = [] if prompt.variables & READ else ["evidence"]
    missing += [] if "question" in prompt.variables else ["question"]
    if missing:
        raise InputError(f"{path}: missing variables {missing}")
    return prompt


def quote(text: str) -> str:
    """`text` as one line that can neither close the evidence block nor open a chat turn.

    Invisible characters are removed. Tags and the special tokens of chat templates
    (`</evidence>`, `<|im_start|>`, `<<SYS>>`, `[INST]`) lose their first character to a
    look-alike; comparisons such as `p < 0.05` stay as they are.
    """
    text = _SPACES.sub(" ", _INVISIBLE.sub("", text).translate(_WIDE))
    text = _OPENS_TAG.sub("\u2039", text)
    text = _CLOSES_TOKEN.sub("|\u203a", text)
    return _BRACKETED.sub(_without_token, text).strip()


def _without_token(match: re.Match[str]) -> str:
    """A word in brackets, in parentheses where it is written like a special token."""
    word = match[2]
    token = word.isupper() or "_" in word or word.casefold() == "inst"
    return f"({match[1]}{word}{match[3]})" if token else match[0]


def number_passages(
    evidence: Sequence[Evidence],
    max_chars: int,
    *,
    by_pmid: bool = False,
    tell: Tell | None = None,
) -> str:
    """The passages as lines `[1] text`, or `[PMID] text`, within `max_chars`.

    `tell` adds what it says of each: with `describe`, `[1] (review, 2019) text`. The first passage
    is always there, cut if it alone is over the budget, so that a prompt never goes out without
    evidence.
    """
    lines = _lines(shown_passages(evidence, max_chars, by_pmid, tell), by_pmid, tell)
    return "\n".join([line[:max_chars] for line in lines[:1]] + lines[1:])


def shown_passages(
    evidence: Sequence[Evidence], max_chars: int, by_pmid: bool = False, tell: Tell | None = None
) -> list[Evidence]:
    """Those that `number_passages` shows: in order, whole ones, and the first in any case."""
    left = max_chars
    shown: list[Evidence] = []
    for item, line in zip(evidence, _lines(evidence, by_pmid, tell), strict=True):
        if len(line) > left and shown:
            break
        shown.append(item)
        left -= len(line) + 1
    return shown


def _lines(evidence: Sequence[Evidence], by_pmid: bool, tell: Tell | None) -> list[str]:
    return [
        f"[{item.passage.pmid if by_pmid else number}] {tell(item) if tell else ''}"
        f"{quote(item.passage.text)}"
        for number, item in enumerate(evidence, start=1)
    ]


def describe(item: Evidence) -> str:
    """`(randomised trial, 2019) `, of that what is known; "" for nothing.

    Where the design is not known, the publication types stand for it.
    """
    types = [name for name in item.publication_types if not _SAYS_LITTLE.match(name)]
    design = design_words(item.design, item.subjects)
    known = [design] if design else [quote(name) for name in types[:MAX_TYPES]]
    known += [str(item.year)] if item.year else []
    return f"({', '.join(known)}) " if known else ""
