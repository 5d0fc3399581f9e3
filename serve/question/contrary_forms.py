"""A claim's negated and opposite forms: queries for what contradicts it.

Dense search brings what resembles a claim, so it hardly finds what denies it; BM25 over the
words of the opposite claim does (paper 004 found next to no contradiction by the claim
alone). And the same table tells whether a sentence says the opposite.
"""

from __future__ import annotations

import re
from functools import cache

from serve.support.compare_wording import Wording, coverage, read_wording, stem

MAX_FORMS = 3
# So much of the claim must a sentence share, beside the word turned round, to speak of it.
SHARED = 0.5

# Verbs in their base form, then words that do not change. The first of a row is against every
# other: "improves" has three opposites, and the claim is asked with the first.
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
# "Are statins free of side effects?" denies them as "not" does.
_FREE = re.compile(
    r"(?P<before>\s*(?:is|are|was|were)\s[^,;:?]*?)"
    r"\b(?:(?:completely|entirely|wholly|totally) )?(?:free (?:of|from)|devoid of)\b",
    re.IGNORECASE,
)
# "Does it fail to help?" has one sense, unlike "Does it not help?".
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
    """The opposites of `word` in its own inflection, the usual one first; () for none."""
    return _table().get(word.casefold(), ())


def turn_round(claim: str) -> str:
    """The claim with every word that has an opposite turned round; "" for none."""
    turned = _WORD.sub(lambda m: (opposites(m[0]) or (m[0],))[0], claim)
    return "" if turned == claim else turned


def contrary_forms(claim: str, limit: int = MAX_FORMS) -> list[str]:
    """At most `limit` queries for what contradicts `claim`: its opposite, then its negation.

    A claim that is negated already is only affirmed: its opposite, negated, need not
    contradict it.
    """
    claim = " ".join(claim.split())
    forms = [_negated(claim)] if _NEGATION.search(claim) else [turn_round(claim), _negated(claim)]
    distinct = [form for form in dict.fromkeys(forms) if form and form != claim]
    return distinct[:limit]


def opposed(claim: str, sentence: str) -> float:
    """How much of the claim's words, 0 to 1, a sentence shares that says the opposite of one.

    0 where it has none of the opposites, has the claim's own word beside it ("increased or
    decreased"), or shares less than half.
    """
    said, source = read_wording(claim), read_wording(sentence)
    if not any(_says_opposite(word, said, source) for word in _WORD.findall(claim)):
        return 0.0
    held = coverage(said, source)
    return held if held >= SHARED else 0.0


_GOES_ON = re.compile(r",? without\b|, and\b", re.IGNORECASE)


def points_alike(claim: str, sentence: str) -> bool:
    """Whether a sentence has one of the claim's words that have opposites ("inhibitor" for
    "inhibit" too), or another word of the same direction ("lowered" for "reduce"), and no word
    against it. What its first clause says, another may go on from: "X increases the risk, and
    the risk declines after it".
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
    # Who inhibits is an inhibitor, whatever is activated beside.
    if not turned or not {stem(word), _root(stem(word))}.isdisjoint(source.words):
        return False
    return any(stem(o) in source.words and stem(o) not in said.words for o in turned)


def _root(stem: str) -> str:
    """The stem of "inhibit" for that of "inhibitor"."""
    return stem.removesuffix("or")


def affirmed(question: str) -> str:
    """What a yes/no question denies, affirmed: "X helps" of "Is it true that X does not help?".

    "" for a question that denies nothing. "Does X not help?" expects a yes in one mouth and a no
    in another, and a clause ("patients who do not respond") is not what is asked: neither counts.
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
    """The claim with its negation taken out, or with one put in."""
    if _NEGATION.search(claim):
        return _NEGATION.sub("", claim, count=1)
    if _COPULA.search(claim):
        return _COPULA.sub(r"\1 not", claim, count=1)
    # A query need not be a sentence: BM25 looks for the words that a denial has.
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
    """Base form, third person, past and -ing form of a regular verb."""
    if verb.endswith("e"):
        return verb, f"{verb}s", f"{verb}d", f"{verb[:-1]}ing"
    return verb, f"{verb}s", f"{verb}ed", f"{verb}ing"
