"""Whether a text says in plain words all that a question asks: then it is no "no" to it.

A reader takes "Achalasia is a motility disorder with failed relaxation" for a denial of that.
"""

from __future__ import annotations

import re

from serve.question.comparisons import names_another
from serve.question.contrary_forms import opposed
from serve.support.attribute_sentences import split_sentences
from serve.support.compare_wording import FUNCTION_WORDS

# A sentence with one of these may deny, doubt or set aside what its other words say.
_DOUBTS = """
no not never nor neither none without cannot rather instead unlike contrary contrast however
although though but except only merely unlikely whether if hypothesis hypothesised hypothesized
unclear unknown uncertain controversial controversy debate debated questionable questioned former
latter versus vs lack lacks lacked lacking absence absent negative
negatively limited poor poorly little few less hardly rarely seldom toxicity toxic worse worsen
worsened worsening discourage discouraged stopped discontinued withdrawn terminated suspended
discouraging insufficient inconclusive
"""
_DOUBT = re.compile(
    rf"\b(?:{'|'.join(_DOUBTS.split())})\b|n't\b|\bfail(?:s|ed)? to\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]+")
# Words this long stand for one another in all their forms, as "oesophagus" and "esophageal" do.
LONG_WORD, ENDING, STEM = 6, 3, 5
_KINDS = frozenset({"type", "types", "kind", "kinds", "form", "forms", "yes"})
MOST_CHARACTERS = 10_000


def is_stated_plainly(text: str, body: str) -> bool:
    """Whether a sentence of `text` has every word of the question `body`, in any form of it.

    One that denies or doubts anything, has the opposite of a word or names a like of what the
    question names ("CD38" for "CD20") does not count, nor does a question of one word.
    """
    asked = _words(body.partition("?")[0])
    return len(asked) > 1 and any(
        _has_all(sentence, asked)
        and not _DOUBT.search(sentence)
        and not opposed(body, sentence)
        and not names_another(sentence, body)
        for sentence in split_sentences(text[:MOST_CHARACTERS])
    )


def _has_all(sentence: str, asked: frozenset[str]) -> bool:
    said = _words(sentence)
    return all(any(_is_form(word, other) for other in said) for word in asked)


def _is_form(word: str, other: str) -> bool:
    if len(word) >= LONG_WORD:
        return other.startswith(word[: max(STEM, len(word) - ENDING)])
    return other in (word, f"{word}s", word.removesuffix("s"))


def _words(text: str) -> frozenset[str]:
    """The content words of a text, those with hyphens in their parts, in American spelling."""
    words = frozenset(_WORD.findall(text.casefold())) - FUNCTION_WORDS - _KINDS
    return frozenset(word.replace("oe", "e").replace("ae", "e") for word in words)
