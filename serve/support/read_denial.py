"""Which names a sentence denies: of "dapsone causes it; aspirin and paracetamol do not" the latter.

A cue denies what stands in its clause, after NegEx (Chapman et al. 2001,
doi:10.1006/jbin.2001.1029): the subject before "do not" where what follows is the question's own,
and the names after "no", "without" and "not".
"""

from __future__ import annotations

import re
from collections.abc import Set

from serve.support.compare_wording import read_wording

_AUXILIARY = (
    r"(?:do|does|did|is|are|was|were|has|have|had|can|could|may|might|will|would|should|must)"
)
# Before these stands a subject.
_VERBAL = re.compile(
    rf"\b(?:{_AUXILIARY} (?:also )?(?:not|never)|cannot|(?:{_AUXILIARY}|ca|wo)n't"
    r"|fail(?:s|ed)? to)\b(?! only)",
    re.IGNORECASE,
)
_VERB = re.compile(rf"\b{_AUXILIARY}\b", re.IGNORECASE)
# Before these stands nothing that they deny.
_NOMINAL = re.compile(
    r"\b(?:no|not|nor|without|rather than|instead of|(?:lack|absence) of)\b(?! only)"
    r"(?: (?:evidence|signs?|symptoms?|association|correlation|relation|effects?|role)"
    r" (?:of|for|with|between|on|to|in))?",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"[;:()]|\b(?:but|however|although|whereas|while|though|which|who)\b", re.IGNORECASE
)
_OR = re.compile(r" (?:or|nor) ")
_ITEM = re.compile(r",? (?:or|nor) |, ")
# "the effect of aspirin and" before a name: the name is no subject.
_LED = re.compile(
    r"\b(?:of|in|on|by|with|to|for|from|than|using|via|receiving|given|taking)"
    r"(?: the| an?)?(?: [\w-]+(?:,| and|, and)){0,4} $",
    re.IGNORECASE,
)
# An item of a list of what is denied has no more words.
_ITEM_WORDS = 4
# So many words after "do not" tell whether they are the question's own, and before it a list.
_REACH = 8


def denies_name(sentence: str, begin: int, end: int, asked: Set[str]) -> bool:
    """Whether the sentence says that the name at `begin` to `end` is no answer.

    `asked` are the stems of the question's words. Only what stands right beside a cue, or in a
    list that does, is denied; what is not understood is not.
    """
    first = max((m.end() for m in _ENDS.finditer(sentence, 0, begin)), default=0)
    ends = _ENDS.search(sentence, end)
    clause = sentence[first : ends.start() if ends else len(sentence)]
    begin, end = begin - first, end - first
    cues = list(_VERBAL.finditer(clause))
    if not cues:
        return any(begin < _reach(clause, cue.end()) for cue in _NOMINAL.finditer(clause, 0, begin))
    return any(
        _is_subject(clause[:begin], clause[end : cue.start()], asked)
        if end <= cue.start()
        else _is_object(clause[cue.end() : begin], clause[end:], asked)
        for cue in cues
        if _is_asked(clause[cue.end() :], asked)
    )


def _is_asked(words: str, asked: Set[str]) -> bool:
    """Whether the first of `words` are the question's, or none follows: "aspirin does not"."""
    stems = read_wording(" ".join(words.split()[:_REACH])).words.keys()
    return not stems or bool(stems & asked)


def _is_subject(before: str, between: str, asked: Set[str]) -> bool:
    """Whether a name is the subject of "do not", or in a list that is."""
    if _LED.search(before) or _VERB.search(between) or len(between.split()) > _REACH:
        return False
    return not read_wording(between).words.keys() & asked


def _is_object(between: str, after: str, asked: Set[str]) -> bool:
    """Whether "not" reaches a name: "not caused by aspirin", "not caused by A, B or C"."""
    if len(between.split()) > _REACH or not _is_asked(between, asked):
        return False
    return "," not in between or bool(_OR.search(between + after))


def _reach(clause: str, at: int) -> int:
    """How far "no" at `at` reaches: over "fever, rash or cough", else one name."""
    items, place = [], at
    for parted in _ITEM.finditer(clause, at):
        items.append((place, parted.start(), parted[0].strip(", ")))
        place = parted.end()
    items.append((place, len(clause), ""))
    short = 0
    for begin, end, _ in items:
        if len(clause[begin:end].split()) > _ITEM_WORDS:
            break
        short += 1
    lasts = [n for n, (_, _, word) in enumerate(items[:short]) if word]
    begin, end, _ = items[lasts[-1] + 1] if lasts and lasts[-1] + 1 < len(items) else items[0]
    words = list(re.finditer(r"\S+", clause[begin:end]))[:_ITEM_WORDS]
    return begin + (words[-1].end() if words else 0)
