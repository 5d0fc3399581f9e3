"""Reduce a model's reply to the sentences to check; nothing is added.

No word, number or unit inside a kept sentence is changed. Citations are removed, because only
attribution may cite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from serve.answer.names.settle_exact import trim_name
from serve.support.attribute_sentences import split_sentences
from serve.support.compare_wording import read_wording
from serve.support.find_references import holds_reference

_CITATION = re.compile(
    r"(?<!\s)\s*(?:\[\s*(?:PMIDs?:?\s*)?\d+(?:\s*[,;\u2013-]\s*\d+)*\s*\]"
    r"|\(\s*(?:PMIDs?:?\s*)\d+(?:\s*[,;]\s*(?:PMID:?\s*)?\d+)*\s*\)"
    r"|\(\s*(?:passages?|references?|evidence)\s+\d+(?:\s*(?:,|and)\s*\d+)*\s*\)"
    r"|\bPMIDs?:?\s*\d+(?:\s*,\s*\d+)*)",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?\s*evidence\s*>|<\|[^|>]*\|>", re.IGNORECASE)
# A weak model sometimes recites its evidence instead of answering from it.
_ECHO = re.compile(r"\s*<evidence>\s*\[1\]", re.IGNORECASE)
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.)])\s+(?=\S)")
_LEAD_IN = re.compile(
    r"^(?:(?:the )?(?:final |short |brief )?answer(?: to the question)?(?: is)?\s*:\s*"
    r"|(?:conclusions?|results?|background|findings|summary)\s*:\s*"
    r"|(?:according to|based on|from) (?:the )?(?:given |provided |above )?"
    r"(?:passages?|evidence|context|abstracts?)(?: provided)?,\s*)",
    re.IGNORECASE,
)
# "The passage states that" is removed; "suggests" is kept, because it weakens the claim.
_STATES = re.compile(
    r"(?:(?:the|this|these|another) )?(?:(?:given|provided|quoted|same) )?"
    r"(?:passages?|texts?|context|abstracts?)(?: \d+)?(?: (?:clearly|explicitly|also))? "
    r"(?:states?|says?|mentions?|reports?|notes?|shows?|indicates?|explains?) that[,:]? "
    r"(?P<said>\S.+)",
    re.IGNORECASE,
)
_QUOTES = '"\u201c\u201d'
_REFUSAL = re.compile(
    r"\b(?:i (?:am|'m) (?:sorry|unable|not able|an ai)|i (?:cannot|can't|do not|don't) |as an ai\b"
    r"|(?:passages?|evidence|context|abstracts?|text) (?:do|does) not (?:contain|provide|mention|"
    r"answer|include|give)|no answer (?:can be|is|was|provided)|cannot be answered|"
    r"not enough information|insufficient information)",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\b(?:the passages?|these passages|passage \d+|the question|quoted text|biomedical expert|"
    r"this paragraph|the following paragraph)\b",
    re.IGNORECASE,
)
_AIM = re.compile(
    r"^(?:the|our) (?:primary |main )?(?:aim|objective|purpose|goal)s? of (?:this|the|our|these)\b"
    r"|^(?:this|the|our) (?:study|review|paper|article|trial) (?:aims?|aimed|sought|seeks)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?][\"')\]]*$")
_WORD = re.compile(r"[^\W\d_]{2,}")
_TOKEN = re.compile(r"[^\W_]+")
# Lower case only: "haemophilia A." ends in a name.
_DANGLES = re.compile(
    r"\b(?:the|an?|of|and|or|with|by|from|into|than|(?:that|which)(?: (?:is|are|was|were))?)[.!]$"
)

MIN_WORDS = 4
# Shares of a sentence's words from which it is a copy of the prompt or a repetition.
COPIED_SHARE = 0.8
REPEATED_SHARE = 0.9
# A sentence is garbled if a run of this many words is repeated: at once ("receptor agonist (GLP-1)
# receptor agonist (GLP-1)"), or anywhere in the sentence.
STUTTERED_WORDS = 2
RECURRING_WORDS = 6


def clean_answer(text: str, prompt: str = "") -> list[str]:
    """Return the complete and distinct sentences of `text` that state something, in order.

    Drops a last sentence that is cut off, refusals, comments on the passages, aims of studies,
    copies of `prompt` (the fixed instructions) or of the evidence block, lists of numbers, garbled
    sentences, loops and repetitions.
    """
    kept: list[str] = []
    if _ECHO.match(text):
        return kept
    for sentence in _sentences(text):
        if not _says_something(sentence) or _repeats(sentence, kept):
            continue
        if prompt and _overlap(sentence, split_sentences(prompt)) >= COPIED_SHARE:
            continue
        kept.append(sentence)
    return kept


def clean_entities(
    names: Iterable[str], sources: Sequence[str], *, limit: int, max_chars: int = 100
) -> list[str]:
    """Return the names that occur in `sources` as whole words (any case), once each, up to `limit`.

    Names longer than `max_chars`, links and other references are left out, as are those without a
    letter or digit.
    """
    text = " ".join(" ".join(source.split()) for source in sources).casefold()
    kept: dict[str, str] = {}
    for name in names:
        name = trim_name(name)
        key = name.casefold()
        whole = rf"(?<!\w){re.escape(key)}(?!\w)"
        if key in kept or len(name) > max_chars or not re.search(r"\w", key):
            continue
        if re.search(whole, text) and not holds_reference(name):
            kept[key] = name
    return list(kept.values())[:limit]


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    for line in _TAG.sub(" ", text).splitlines():
        line = _LEAD_IN.sub("", _LIST_MARK.sub("", line).strip())
        plain = " ".join(_CITATION.sub("", line).split())
        found.extend(map(_without_source, split_sentences(plain)))
    if found and not _ENDS.search(found[-1]):
        found.pop()
    return found


def _without_source(sentence: str) -> str:
    """Return the sentence without a leading "The passage states that"."""
    states = _STATES.fullmatch(sentence)
    if states is None:
        return sentence
    return begun(states["said"].strip(f"{_QUOTES} "))


def begun(said: str) -> str:
    """Return `said` with a capital first letter, unless its first word is a name such as mTOR."""
    first = said.split(" ", 1)[0].rstrip(",")
    return f"{said[:1].upper()}{said[1:]}" if first.islower() and first.isalpha() else said


def _says_something(sentence: str) -> bool:
    words = _WORD.findall(sentence)
    if len(words) < MIN_WORDS or any(p.search(sentence) for p in (_REFUSAL, _TALK, _AIM)):
        return False
    if not _ENDS.search(sentence) or sentence.endswith("?"):
        return False
    digits = sum(c.isdigit() for c in sentence)
    letters = sum(c.isalpha() for c in sentence)
    loops = _loops([w.casefold() for w in words])
    return letters > 2 * digits and not loops and not is_garbled(sentence)


def is_garbled(sentence: str) -> bool:
    """Return whether the sentence repeats itself, breaks off or leaves a bracket open.

    This holds for 25 of the 6,572 sentences in BioASQ's ideal answers (7B to 10B); most of them
    are cut off, or are two sentences run together.
    """
    tokens = [token.casefold() for token in _TOKEN.findall(sentence)]
    return (
        sentence.count("(") > sentence.count(")")
        or bool(_DANGLES.search(sentence))
        or _stutters(tokens)
        or _recurs(tokens)
    )


def _stutters(tokens: Sequence[str]) -> bool:
    """Return whether a run of words is repeated immediately."""
    count = len(tokens)
    return any(
        tokens[begin : begin + size] == tokens[begin + size : begin + 2 * size]
        for size in range(STUTTERED_WORDS, count // 2 + 1)
        for begin in range(count - 2 * size + 1)
    )


def _recurs(tokens: Sequence[str]) -> bool:
    """Return whether a long run of words occurs again later."""
    first: dict[tuple[str, ...], int] = {}
    for place in range(len(tokens) - RECURRING_WORDS + 1):
        run = tuple(tokens[place : place + RECURRING_WORDS])
        if place - first.setdefault(run, place) >= RECURRING_WORDS:
            return True
    return False


def _loops(words: Sequence[str]) -> bool:
    """Return whether a run of three words occurs three times, or few of many words differ."""
    runs = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
    if any(runs.count(run) >= 3 for run in set(runs)):
        return True
    return len(words) >= 12 and len(set(words)) < len(words) / 3


def _repeats(sentence: str, kept: Sequence[str]) -> bool:
    said = read_wording(sentence)
    return any(
        said.numbers == (other := read_wording(before)).numbers
        and said.negations == other.negations
        and _overlap(sentence, [before]) >= REPEATED_SHARE
        for before in kept
    )


def _overlap(sentence: str, others: Sequence[str]) -> float:
    """Return the largest share of the sentence's content words found in one of `others`."""
    words = set(read_wording(sentence).words)
    if not words:
        return 1.0
    return max((len(words & set(read_wording(o).words)) / len(words) for o in others), default=0.0)
