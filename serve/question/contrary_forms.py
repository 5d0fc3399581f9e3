"""Negated and opposite forms of a claim, used as queries for contradicting evidence.

Dense search finds text that resembles a claim, but rarely text that denies it; BM25 with the words
of the opposite claim does (paper 004 found almost no contradictions with the claim alone). The same
table of opposites is used to check whether a sentence says the opposite of a claim.
"""

from __future__ import annotations

import re
from functools import cache

from serve.support.compare_wording import Wording, coverage, read_wording, stem

MAX_FORMS = 3
# Minimum share of the claim's words that a sentence must have to be about the same subject.
SHARED = 0.5

# Verbs in their base form, followed by words without inflection. The first word of a row is the
# opposite of all others, and the second word replaces it in queries.
_VERBS = """
increase decrease reduce lower
decrease increase
reduce increase
raise lower
improve worsen impair
worsen improve
promote inhibit suppress
inhibit promote activate
activate inhibit suppress
suppress activate induce
induce suppress prevent
stimulate inhibit
enhance attenuate impair
attenuate enhance
upregulate downregulate
downregulate upregulate
prevent cause
cause prevent
accelerate delay
delay accelerate
prolong shorten
shorten prolong
protect harm
benefit harm
harm benefit
succeed fail
"""
_WORDS = """
safe harmful unsafe toxic
harmful safe beneficial
toxic safe
unsafe safe
effective ineffective
ineffective effective
efficacious ineffective
beneficial harmful detrimental
detrimental beneficial
positive negative
negative positive
higher lower
lower higher
high low
low high elevated raised
more less fewer
fewer more
less more
better worse
worse better
sensitive resistant
resistant sensitive
present absent
absent present
common rare
rare common
benign malignant
malignant benign
necessary unnecessary
essential dispensable
superior inferior
inferior superior
associated unrelated
related unrelated
significant insignificant nonsignificant
increased decreased reduced
agonist antagonist
antagonist agonist
activator inhibitor inhibition antagonist
inhibitor activator agonist
kinase phosphatase
phosphatase kinase
short long
long short
reversible irreversible
irreversible reversible
curable incurable
incurable curable
hypermethylated hypomethylated
hypertrophic atrophic
dominant recessive
recessive dominant
euchromatic heterochromatic
heterochromatic euchromatic
"""
_COPULAS = r"is|are|was|were|can|could|may|might|should|will|would|has|have|had"
_COPULA = re.compile(rf"\b({_COPULAS})\b(?!\s+(?:not|no)\b)", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:(?:does|do|did) not|not|no longer|never)\s+", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
# "Are statins free of side effects?" is a negation without "not".
_FREE = re.compile(
    r"(?P<before>\s*(?:is|are|was|were)\s[^,;:?]*?)"
    r"\b(?:(?:completely|entirely|wholly|totally) )?(?:free (?:of|from)|devoid of)\b",
    re.IGNORECASE,
)
# "Does it fail to help?" is unambiguous, unlike "Does it not help?".
_FAILS = re.compile(
    r"(?P<before>\s*(?:does|do|did)\s"
    r"(?:(?!\b(?:who|which|that|whose|when|if|where|because|while|unless)\b)[^,;:?])*?)\bfail to ",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?P<before>\s*(?:is it (?:true|correct|right|known) that\s+|(?:unlike|like)\b[^,?]*,\s*)"
    r"(?:(?!\b(?:who|which|that|whose|when|if|where|because|while|unless)\b)[^,;:?])*?)"
    r"(?P<denial>\b(?:(?:does|do|did|has|have|had|can|could|will|would|is|are|was|were) not) )",
    re.IGNORECASE,
)


def opposites(word: str) -> tuple[str, ...]:
    """Return the opposites of `word` in the same inflection, most usual first; () for none."""
    return _table().get(word.casefold(), ())


def turn_round(claim: str) -> str:
    """Return the claim with each word replaced by its opposite; "" if no word has one."""
    turned = _WORD.sub(lambda m: (opposites(m[0]) or (m[0],))[0], claim)
    return "" if turned == claim else turned


def contrary_forms(claim: str, limit: int = MAX_FORMS) -> list[str]:
    """Return up to `limit` queries for evidence against `claim`: its opposite and its negation.

    For a negated claim only the affirmed form is returned, because the negation of its opposite
    may not contradict it.
    """
    claim = " ".join(claim.split())
    forms = [_negated(claim)] if _NEGATION.search(claim) else [turn_round(claim), _negated(claim)]
    distinct = [form for form in dict.fromkeys(forms) if form and form != claim]
    return distinct[:limit]


def opposed(claim: str, sentence: str) -> float:
    """Return the share, 0 to 1, of the claim's words in a sentence that says the opposite.

    Returns 0 if the sentence has no opposite of a claim's word, has that word too ("increased or
    decreased"), or has less than half of the claim's words.
    """
    said, source = read_wording(claim), read_wording(sentence)
    if not any(_says_opposite(word, said, source) for word in _WORD.findall(claim)):
        return 0.0
    held = coverage(said, source)
    return held if held >= SHARED else 0.0


_GOES_ON = re.compile(r",? without\b|, and\b", re.IGNORECASE)


def points_alike(claim: str, sentence: str) -> bool:
    """Return True if a sentence or its first clause points in the same direction as the claim.

    It must have one of the claim's words that have opposites ("inhibitor" also matches "inhibit"),
    or another word of the same direction ("lowered" for "reduce"), and no opposite word. The first
    clause alone suffices, as in "X increases the risk, and the risk declines after it".
    """
    clause = _GOES_ON.split(sentence, maxsplit=1)[0]
    return _points_alike(claim, sentence) or _points_alike(claim, clause)


def _points_alike(claim: str, sentence: str) -> bool:
    said, source = read_wording(claim), read_wording(sentence)
    if said.directions and source.directions:
        return len(said.directions) == 1 and said.directions == source.directions
    turned = [word for word in _WORD.findall(claim) if opposites(word)]
    there = set(map(_root, source.words))
    against = {_root(stem(other)) for word in turned for other in opposites(word)}
    against -= set(map(_root, said.words))
    return any(_root(stem(word)) in there for word in turned) and not against & there


def _says_opposite(word: str, said: Wording, source: Wording) -> bool:
    turned = opposites(word)
    # "inhibitor" matches "inhibit", even if the sentence also mentions an activation.
    if not turned or not {stem(word), _root(stem(word))}.isdisjoint(source.words):
        return False
    return any(stem(o) in source.words and stem(o) not in said.words for o in turned)


def _root(stem: str) -> str:
    """Return a stem without "or", so that "inhibitor" matches "inhibit"."""
    return stem.removesuffix("or")


def affirmed(question: str) -> str:
    """Return a negated yes/no question in affirmed form, otherwise "".

    "Is it true that X does not help?" becomes "Is it true that X help?". Questions such as "Does X
    not help?", whose meaning is ambiguous, and negations within a clause ("patients who do not
    respond") are not changed.
    """
    if (free := _FREE.match(question)) is not None:
        return f"{free['before']}associated with{question[free.end() :]}"
    if (fails := _FAILS.match(question)) is not None:
        return f"{fails['before']}{question[fails.end() :]}"
    found = _DENIED.match(question)
    if found is None:
        return ""
    return (
        f"{found['before']}{_NEGATION.sub('', found['denial'], count=1)}{question[found.end() :]}"
    )


def _negated(claim: str) -> str:
    """Return the claim with its negation removed, or with one added."""
    if _NEGATION.search(claim):
        return _NEGATION.sub("", claim, count=1)
    if _COPULA.search(claim):
        return _COPULA.sub(r"\1 not", claim, count=1)
    # A BM25 query need not be a sentence, so append words that are typical of negative findings.
    return f"{claim.rstrip('.')} no effect, no significant difference, not associated"


@cache
def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _WORDS.strip().splitlines():
        word, *others = line.split()
        found[word] = tuple(others)
    for line in _VERBS.strip().splitlines():
        word, *others = line.split()
        for form, *turned in zip(*map(_inflect, (word, *others)), strict=True):
            found.setdefault(form, tuple(turned))
    return found


def _inflect(verb: str) -> tuple[str, str, str, str]:
    """Return the base form, third person, past and -ing form of a regular verb."""
    if verb.endswith("e"):
        return verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"
    return verb, f"{verb}s", f"{verb}ed", f"{verb}ing"
