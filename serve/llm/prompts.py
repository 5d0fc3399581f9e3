"""Prompt files, `configs/prompts/PRESET/NAME-TYPE.txt`, in the syntax of `string.Template`.

A file contains a system message, a line `---`, and a user message. Variables belong in the user
message, so that the model's prefix cache can reuse the fixed text before them. Only `$examples`
may be in either message; without it, examples are turns of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from string import Template

from cluster.answers import Evidence
from cluster.errors import InputError
from cluster.settings.read_config import CONFIGS
from cluster.study_design.design_classifier import design_words
from serve.llm.chat_form import Message

PROMPTS = CONFIGS / "prompts"

# Returns the text to insert before a passage, or "".
Tell = Callable[[Evidence], str]

# Publication types that say nothing about the strength of evidence, or are shown as RETRACTED.
_SAYS_LITTLE = re.compile(r"Journal Article|Research Support|English Abstract|Retracted Pub")
MAX_TYPES = 2

# Characters that are invisible to readers but not to a tokeniser: format characters (zero width,
# direction, soft hyphen, Unicode tags), variation selectors, fillers, surrogates, private use.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\uf8ff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)
_SPACES = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
# A tokeniser may normalise these to the ASCII characters that delimit its special tokens.
_WIDE = str.maketrans("\uff1c\ufe64\uff1e\ufe65\uff3b\uff3d\uff5c", "<<>>[]|")
_OPENS_TAG = re.compile(r"<(?=[< ]?[^\s\d.=<\-+\u2264~\u00b1])")
_CLOSES_TOKEN = re.compile(r"\| ?>")
_BRACKETED = re.compile(r"\[( ?/? ?)([A-Za-z_]\w{1,39})( ?)\]")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt file with its system and user templates."""

    name: str
    system: str
    user: str

    @property
    def variables(self) -> frozenset[str]:
        """Return the variables of both templates."""
        return frozenset(
            name for text in (self.system, self.user) for name in Template(text).get_identifiers()
        )

    def messages(self, turns: Sequence[Message] = (), **values: str) -> list[Message]:
        """Return the conversation with `turns` between the system and the user message.

        Raise InputError with the names of missing or unused variables.
        """
        missing = sorted(self.variables - values.keys())
        unused = sorted(values.keys() - self.variables)
        if missing or unused:
            raise InputError(
                f"prompt {self.name}: missing variables {missing}, unused variables {unused}"
            )
        system = Template(self.system).substitute(values)
        return [
            *([Message(role="system", content=system)] if system else []),
            *turns,
            Message(role="user", content=Template(self.user).substitute(values)),
        ]


@cache
def load_prompt(path: str) -> Prompt:
    """Return the prompt in configs/prompts/PATH.txt, such as "sinai/ideal-yesno"."""
    text = (PROMPTS / f"{path}.txt").read_text(encoding="utf-8")
    system, _, user = text.partition("\n---\n")
    return Prompt(path.rpartition("/")[2], system.strip(), user.strip())


def search_prompt(name: str) -> Prompt:
    """Return the prompt of a step of the search, in configs/prompts/search."""
    return load_prompt(f"search/{name}")


@cache
def find_prompt(name: str, kind: str, preset: str = "") -> Prompt:
    """Return the prompt `name` of a preset for questions of type `kind`.

    NAME-KIND.txt has precedence over NAME.txt, and the preset's files over the shared ones. Raise
    InputError if there is none.
    """
    folders = [f"{preset}/", ""] if preset else [""]
    paths = [f"{folder}{file}" for folder in folders for file in (f"{name}-{kind}", name)]
    for path in paths:
        if (PROMPTS / f"{path}.txt").is_file():
            return load_prompt(path)
    raise InputError(f"configs/prompts: no file {' or '.join(paths)} with the ending .txt")


def quote(text: str) -> str:
    """Return `text` as one line that can neither close the evidence block nor open a chat turn.

    Invisible characters are removed. Delimiters of tags and special tokens of chat templates
    (`</evidence>`, `<|im_start|>`, `<<SYS>>`, `[INST]`) are replaced by look-alikes; comparisons
    such as `p < 0.05` are unchanged.
    """
    text = _SPACES.sub(" ", _INVISIBLE.sub("", text).translate(_WIDE))
    text = _OPENS_TAG.sub("\u2039", text)
    text = _CLOSES_TOKEN.sub("|\u203a", text)
    return _BRACKETED.sub(_without_token, text).strip()


def _without_token(match: re.Match[str]) -> str:
    """Replace the brackets by parentheses if the word looks like a special token."""
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
    """Return the passages as lines `[1] text`, or `[PMID] text`, within `max_chars`.

    `tell` returns a prefix for each passage: with `describe`, `[1] (review, 2019) text`. The first
    passage is always included, cut to `max_chars`, so that every prompt contains evidence.
    """
    lines = _lines(shown_passages(evidence, max_chars, by_pmid, tell), by_pmid, tell)
    return "\n".join([line[:max_chars] for line in lines[:1]] + lines[1:])


def shown_passages(
    evidence: Sequence[Evidence], max_chars: int, by_pmid: bool = False, tell: Tell | None = None
) -> list[Evidence]:
    """Return the passages that `number_passages` includes: the first ones, at least one."""
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
    """Return a prefix such as `(randomised trial, 2019) `, or "" if nothing is known.

    If the design is unknown, the publication types replace it.
    """
    types = [name for name in item.publication_types if not _SAYS_LITTLE.match(name)]
    design = design_words(item.design, item.subjects)
    known = [design] if design else [quote(name) for name in types[:MAX_TYPES]]
    known += [str(item.year)] if item.year else []
    return f"({', '.join(known)}) " if known else ""
