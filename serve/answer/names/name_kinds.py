"""Which kind of thing a question asks for, and which kinds a name cannot be, told by words.

Coarse on purpose: where words do not tell, anything goes. No vocabulary is needed, so it holds for
names that no thesaurus has yet.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence, Set
from typing import Literal

from cluster.text.vocabulary import normalise
from serve.question.everyday_words import EVERYDAY_WORDS
from serve.support.compare_wording import read_wording, stem

# An effect is a symptom, a sign, a complication, or what a treatment does besides; an action is how
# it does what it is for.
Kind = Literal["action", "disease", "drug", "effect", "gene", "other"]

_NOUNS: dict[Kind, str] = {
    "action": r"(?:mechanisms?|modes?) of action",
    "gene": r"genes?|proteins?|enzymes?|receptors?|kinases?|transcription factors?|proteases?"
    r"|cytokines?|chemokines?|interleukins?|mutations?|oncogenes?|ligands?|targets? of"
    r"|molecules? (?:is|are) (?:targeted|inhibited)",
    "drug": r"drugs?|medications?|medicines?|agents?|inhibitors?|antagonists?|agonists?"
    r"|antibiotics?|statins?|antidotes?|vaccines?|treatments?|therap(?:y|ies)"
    r"|(?:monoclonal|therapeutic) antibod(?:y|ies)|antibody therapeutics?"
    r"|(?:DMARD|NSAID)s?(?! stand|\W*$)"
    r"|(?:trade|brand|generic) names?|active ingredients?",
    "disease": r"diseases?|syndromes?|disorders?|cancers?|tumou?rs?|conditions?|infections?"
    r"|neoplasms?|malignanc(?:y|ies)|phenotypes?|indications?",
    "effect": r"side[- ]effects?|adverse (?:effects?|events?|reactions?)|symptoms?|signs?"
    r"|complications?|manifestations?|toxicit(?:y|ies)|(?:clinical )?features|triads?|pentads?",
    "other": r"compan(?:y|ies)|countr(?:y|ies)|organs?|tissues?|cells?|cell types?|organelles?"
    r"|species|organisms?|parts?|regions?|sites?|chromosomes?|tests?|methods?|tools?|databases?"
    r"|software|trials?|animals?|breeds?|strains?|vectors?|hosts?|reservoirs?",
}
# Questions without such a noun: what a drug acts on, and what it is for.
_OTHERWISE: dict[Kind, str] = {
    "gene": r"|\bwhat is (?:(?:targeted|inhibited) by"
    r"|[\w -]{2,60} an (?:inhibitor|antagonist) of)\b",
    "disease": r"|\b(?:what|which) (?:does|do|can) [\w -]{2,60} treat\b"
    r"|\bwhat (?:is|are) [\w -]{2,60} (?:indicated|approved) for\b",
}
# The noun that is asked for follows the question word at once, or a few adjectives later.
_ASKS: dict[Kind, re.Pattern[str]] = {
    kind: re.compile(
        rf"\b(?:which|what)(?: (?:is|are|was|were) the)?(?: [\w-]+){{0,2}}? (?:{nouns})\b"
        rf"|\b(?:list|name)(?: [\w-]+){{0,3}}? (?:{nouns})\b" + _OTHERWISE.get(kind, ""),
        re.IGNORECASE,
    )
    for kind, nouns in _NOUNS.items()
}
_GENES = re.compile(
    r"\b(?:(?:which|what)(?: (?:is|are|was|were) the)?(?: [\w-]+){0,2}?"
    r"|(?:list|name)(?: [\w-]+){0,3}?)"
    r" genes?\b(?!\s+(?:therap|product|ontolog|express|signature))",
    re.IGNORECASE,
)
_DISEASE = re.compile(
    r"\b(?:diseases?|syndromes?|disorders?|cancers?|tumou?rs?(?! (?:necrosis|suppressor))"
    r"|infections?|lymphomas?|deficiency)\b"
    r"|\w{3}(?:itis|oma|omas|osis|oses|emia|emias|aemia|pathy|pathies|plegia|algia|trophy)\b"
    r"(?! factors?\b)"
    r"|^(?:asthma|autism|dementia|depression|diabetes|eczema|epilepsy|gout|headaches?|hypertension"
    r"|influenza|lupus|malaria|migraines?|obesity|pemphigus|pneumonia|schizophrenia|sepsis|stroke)$",
    re.IGNORECASE,
)
# "Hoehn and Yahr Scale": the end of what measures, and what may stand between it and a part.
_SCALE = re.compile(
    r"(?:^|\s)(?:scales?|scores?|questionnaires?|inventory|index|rating)$", re.IGNORECASE
)
_UP_TO_SCALE = re.compile(
    r"(?:(?: and)? [\w-]+){0,5}? (?:scales?|scores?|questionnaires?|inventory|index)\b",
    re.IGNORECASE,
)
# No effect, though "disease" is one.
_ENZYME = re.compile(r"(?<!\w)(?!\w*(?:disease|crease|lease|phase|base|case))\w{3,}ases?\b")
# Stems of international non-proprietary names (WHO).
_DRUG = re.compile(
    r"\w{3}(?:mab|tinib|ciclib|statin|pril|sartan|olol|azole|cillin|mycin|platin|rsen|gliptin"
    r"|gliflozin|floxacin|azepam|setron|triptan|parin|oxetine|tidine|navir|buvir|previr"
    r"|afil|amivir|apine|asvir|azine|barbital|bactam|caine|capone|ciclovir|cycline|(?:b|n)ercept"
    r"|(?:c|n)icept|tacept|citabine|clax|coxib|degib|dipine|dopa|dronate|(?:s|t)entan|fenib|formin"
    r"|fovir|fungin|gatran|giline|glitazone|glutide|grel|idone|limus|lisib|lukast|lutamide"
    r"|methasone|micin|mustine|parib|penem|peridol|profen|quine|(?<!gh)relin|relix|rubicin|semide"
    r"|(?:bi|du|le|li|no|re|xo)stat|staurin|tadine|taxel|tecan|tegravir|(?<!s)terol|thiazide"
    r"|traline|trexate|trexed|triptyline|tropium|vaptan|vudine|xaban|zolam|zolid|zomib)s?\b"
    r"|\b(?:cef|predni)\w{3,}"
    # Classes of them.
    r"|\b(?:anti[a-z]{4,}(?:ics|als|ants|ines)|[a-z]+(?:suppress|depress|relax)ants|an?esthetics"
    r"|analgetics|analgesics|steroids|corticosteroids|[a-z]+ drugs)\b",
    re.IGNORECASE,
)
_CODE = r"[A-Z]{2,5}-?[A-Z]?\d{1,3}(?:[A-Z]\d{0,2})?"
_GENE = re.compile(
    r"\b(?:genes?|proteins?|receptors?|kinases?|phosphatases?|proteases?|polymerases?|mRNA)"
    rf"(?: \d\w?)?$|^(?:{_CODE}(?:[-/]{_CODE})*|[A-Z][a-z]{2, 4}\d{1, 2})$"
)
_PLACE = re.compile(r"\bchromosomes?\b", re.IGNORECASE)
# In the order in which they are tried.
_LOOKS: dict[Kind, re.Pattern[str]] = {
    "other": _PLACE,
    "disease": _DISEASE,
    "drug": _DRUG,
    "gene": _GENE,
}
# The one to three words that are asked for: "Which mouse strains are", "What repeat is".
_NOUN = re.compile(
    r"^\W*(?:which|what)(?: (?:is|are|was|were) the)?((?: [\w-]+){1,3}?)"
    r"(?= (?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|may|might|of|for"
    r"|in|on|with|by|to|that|which|from|most|more|best|causes?)\b|\?)",
    re.IGNORECASE,
)
_NEXT = re.compile(r" [\w-]+")
# "... a writer, a reader or an eraser?", "... males or females?"
_CHOICE = re.compile(
    r"(?<![\w-])(?:[\w-]+, (?:an? )?){0,4}[\w-]+,? or (?:an? )?[\w-]+(?= ?\??$)", re.IGNORECASE
)
# An inhibitor or a vaccine bears the name of its target; a treatment that of its disease.
_WITHIN = re.compile(
    r"\b(?:inhibitors?|blockers?|agonists?|antagonists?|antibod(?:y|ies)|vaccines?|therapy"
    r"|treatments?|analogues?)\b",
    re.IGNORECASE,
)
_ACTS = re.compile(
    r"inhibit|block|agoni|activat|stimulat|suppress|bind|modulat|antibod|degrad|deplet|releas",
    re.IGNORECASE,
)
_FOR = re.compile(r"\bfor ([^,;.()]{1,60})")
_BETWEEN = re.compile(r"[,;]|\b(?:and|or)\b")
# Of an item of a list.
MOST_WORDS = 6


def asked_words(body: str) -> frozenset[str]:
    """Stems of the question's words, which name no answer; those that it lets choose from may."""
    chosen = {word for choice in _CHOICE.findall(body) for word in read_wording(choice).words}
    return frozenset(read_wording(body).words.keys() - chosen)


def repeats(name: str, asked: Set[str]) -> bool:
    """Whether `name` has only words that the question has."""
    words = read_wording(name).words or {stem(name): 1.0}
    return words.keys() <= asked


def asked_kind(body: str) -> Kind | None:
    """The kind of thing that the question's words ask for first; None where they do not tell."""
    found = [(match.end(), kind) for kind, asks in _ASKS.items() if (match := asks.search(body))]
    return min(found)[1] if found else None


def asks_for_genes(body: str) -> bool:
    """Whether the question asks for genes by that word, and not for proteins.

    Of 73 gold answers to such train questions 68 have a symbol among their names.
    """
    return bool(_GENES.search(body))


def asked_nouns(body: str) -> frozenset[str]:
    """Stems of the words that say what the question asks for: of "Which repeats are", "repeat"."""
    asked = _NOUN.match(body)
    return frozenset(read_wording(asked[1]).words) if asked else frozenset()


def bears(nouns: Set[str], text: str, begin: int, end: int) -> bool:
    """Whether the name at [begin, end) of `text`, or the word behind it, has one of the `nouns`."""
    behind = _NEXT.match(text, end)
    named = text[begin : behind.end() if behind else end]
    return not nouns.isdisjoint(read_wording(named).words)


def fits(asked: Kind | None, name: str) -> bool:
    """Whether `name` names something, and can be of the kind as far as its words tell."""
    if asked != "other" and not is_specific(name):
        return False
    if asked is None:
        return True
    if asked == "action":
        return bool(_ACTS.search(name))
    if asked == "effect" and (_ENZYME.search(name) or is_scale(name)):
        return False
    looks = "drug" if _WITHIN.search(name) else looks_like(name)
    return looks is None or looks == ("disease" if asked == "effect" else asked)


def fit_together(asked: Kind | None, names: Sequence[str]) -> bool:
    """Whether one of the names of a thing fits, and none tells of another kind alone.

    "CRS" may be a gene, but is none where it is short for "cytokine release syndrome".
    """
    if not any(fits(asked, name) for name in names):
        return False
    if asked in (None, "action", "other"):
        return True
    wanted = "disease" if asked == "effect" else asked
    looks = {looks_like(name) for name in names if not _WITHIN.search(name)} - {None}
    return not looks or wanted in looks


def stands_beside(text: str, begin: int, end: int, asked: Set[str]) -> bool:
    """Whether the name at [begin, end) is listed in `text` beside what the question asks about.

    "Bleomycin, amiodarone and methotrexate" names no effect of amiodarone.
    """
    bounds = [0, *(match.end() for match in _BETWEEN.finditer(text)), len(text)]
    items = [text[first:last] for first, last in itertools.pairwise(bounds)]
    own = bisect.bisect_right(bounds, begin, hi=len(items)) - 1
    ends_item = not _BETWEEN.sub("", text[end : bounds[own + 1]]).strip()
    after = items[own + 1 :] if ends_item else []
    for others in (reversed(items[1:own]), after):
        for item in others:
            words = read_wording(item).words.keys()
            if words and words <= asked:
                return True
            if len(item.split()) > MOST_WORDS:
                break
    return False


def is_scale(name: str, after: str = "") -> bool:
    """Whether the name, with the text after it, names what something is measured by."""
    return bool(_SCALE.search(name) or _UP_TO_SCALE.match(after))


def is_for_another(sentence: str, end: int, asked: Set[str]) -> bool:
    """Whether what the name that ends at `end` is for is not what the question asks about, where
    the sentence says for what others are: "alfamab for migraine, betamab for asthma".
    """
    purposes = [(m.end(), read_wording(m[1]).words.keys()) for m in _FOR.finditer(sentence)]
    own = next((words for place, words in purposes if place > end), None)
    return own is not None and not own & asked and any(words & asked for _, words in purposes)


def named_part(asked: Kind, name: str) -> str | None:
    """What `name` says of a thing of the kind, as "rs4149056 of SLCO1B1" does of a gene."""
    of, _, part = name.rpartition(" of ")
    return part if of and looks_like(of) != asked and looks_like(part) == asked else None


def is_specific(name: str) -> bool:
    """Whether a word of `name` is no everyday one, as "cells" and "patients" are."""
    return any(
        any(map(str.isalpha, word)) and normalise(word) not in EVERYDAY_WORDS
        for word in re.findall(r"[\w-]+", name)
    )


def looks_like(name: str) -> Kind | None:
    """The kind of thing that the form of a name tells; None where it does not."""
    return next((kind for kind, looks in _LOOKS.items() if looks.search(name)), None)
