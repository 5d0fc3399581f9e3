"""Which words of a sentence it only asks, supposes or tells its reader to say.

A passage that tests whether a drug helps does not say that it helps, and one that tells its reader
to say so does not either. Cues open a scope that ends with the clause, or for a demand with the
sentence, after ConText (Harkema et al. 2009, doi:10.1016/j.jbi.2009.05.002).
"""

from __future__ import annotations

import re
from functools import lru_cache

from cluster.text.sentences import asks, sentence_spans
from serve.support.compare_wording import holds, read_wording

_TOKEN = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*|[^\w\s]")
# "We tested whether X", "if X": neither says X.
_SUPPOSES = {"whether", "if", "hypothesise", "hypothesised", "hypothesize", "hypothesized"}
# "We tested whether X and found that Y".
_FINDS = {"found", "but", "showed", "demonstrated", "observed"}
_FOUND = re.compile(rf"\b(?:{'|'.join(sorted(_FINDS))})\b", re.IGNORECASE)
_TOLD = re.compile(r",\s+(?=(?:which|who|an?|we)\s)")
# A sentence that says what is meant to be found out: "To assess X.", "We aimed to assess X."
_LOOKS_INTO = (
    r"(?:re-?)?(?:assess|evaluat|examin|investigat|determin|explor|stud|test|compar|clarif|review"
    r"|describ|identif|ascertain|estimat|establish|analy[sz]|characteri[sz]|quantif|measur"
    r"|summari[sz])(?:e|y|ed|ied|ing)?\b"
)
_STUDY = r"(?:study|review|paper|article|trial|work|analysis|meta-analysis|report|survey)"
_AIM = re.compile(
    rf"(?:[A-Z][\w/& -]{{2,30}}:\s+)?(?:To {_LOOKS_INTO}"
    rf"|(?:the|our) (?:\w+ )?(?:aim|objective|purpose|goal)s? "
    rf"(?:of (?:this|the|our|these)(?: \w+)? {_STUDY}|(?:was|were|is) to)\b"
    rf"|we (?:\w+ )?(?:aim(?:ed)?|sought|wanted|wished|set out|planned) to\b"
    rf"|(?:this|the present|the current|our|here,? we) (?:\w+ )?{_STUDY}? ?"
    rf"(?:aim(?:s|ed)|sought|seeks|was (?:designed|conducted|performed|undertaken)) to\b"
    rf"|we (?:will|plan to) {_LOOKS_INTO})",
    re.IGNORECASE,
)
# Verbs of saying, in the languages of most injections. In this form, without a subject before
# them, they are a demand.
_DEMANDS = """
say state answer respond reply mention conclude report write print output repeat tell declare claim
assert confirm insist announce inform notify assure list name rank cite quote recommend include
append add echo summarise summarize dis dites di diga digan dica escreva escriba sage schreibe
antworte powiedz napisz скажи напиши
"""
_SAY = frozenset(_DEMANDS.split())
# What stands before a verb that has no subject.
_BEFORE = """
and or to then now please kindly must should shall will always only also just never not agora
ahora maintenant jetzt et y e und i и
"""
_NO_SUBJECT = frozenset(_BEFORE.split())
_REPLIES = {"answer", "answers", "reply", "response", "responses", "summary", "output"}
_QUOTES = {'"', "\u201c", "\u00ab", "\u201e"}
_MUST = {"must", "should", "shall", "be", "is", "will"}
_PAIRS = re.compile(r"\brespectively\b", re.IGNORECASE)
_CLAUSE_ENDS = frozenset(",.;:()")
# Function words of languages in Latin letters that are no words of English.
_ELSEWHERE = """
ab alles aqui avec bent bist che com con cualquier das dass de dem den der des deve di dit dla du
ein eine einen eres est et foi gli het ici ihr il ist je jest jesteś jetzt kto la las le les lo los
mit musi nad nicht niet nu od os para pas por pour qu que qui quien quem se sei sich sie sobre sur
teraz todo tout tudo tutto uma un una und une van voor vous wer wszystkim y zu
"""
_FOREIGN = frozenset(_ELSEWHERE.split())
_HERE = "the of and in with to is are was were that by for not this we from"
_ENGLISH = frozenset(_HERE.split())
# What brings the words that are to be said.
_BRINGS = frozenset(":\uff1a\u061b") | _QUOTES
_BEGINS = frozenset('.?!{"')


def asserts(source: str, claim: str) -> bool:
    """Whether the sentence `source` states most of what `claim` states and it holds."""
    if pairs_up(source) and not pairs_up(claim):
        return False
    said, everything = read_wording(stated(claim)), read_wording(source)
    shared = {word: weight for word, weight in said.words.items() if holds(everything, word)}
    open_words = read_wording(stated(source))
    kept = sum(weight for word, weight in shared.items() if holds(open_words, word))
    return not shared or 2 * kept > sum(shared.values())


def pairs_up(sentence: str) -> bool:
    """Whether it says "A and B are diseases of iron and copper, respectively".

    Every word of "B is a disease of iron" stands in it, and it says the contrary.
    """
    return bool(_PAIRS.search(sentence))


@lru_cache(maxsize=8192)
def stated(sentence: str) -> str:
    """`sentence` without what it only asks, supposes or tells its reader to say."""
    return "".join(sentence[begin:end] for begin, end in _stated_spans(sentence))


@lru_cache(maxsize=1024)
def only_stated(text: str) -> str:
    """`text` with spaces for its questions, its aims and what its sentences suppose.

    It has the length of `text`, and each character its place.
    """
    kept = [" "] * len(text)
    for begin, end in sentence_spans(text):
        at = begin + _aim_ends(text[begin:end])
        for first, last in _stated_spans(text[at:end], demands=False):
            kept[at + first : at + last] = text[at + first : at + last]
    return "".join(kept)


def _aim_ends(sentence: str) -> int:
    """How far a sentence says what is meant to be found out; 0 where it does not.

    "To assess X, a drug for Y." says what X is.
    """
    if not _AIM.match(sentence) or _FOUND.search(sentence):
        return 0
    told = _TOLD.search(sentence)
    return told.end() if told else len(sentence)


def _stated_spans(sentence: str, *, demands: bool = True) -> list[tuple[int, int]]:
    """(begin, end) of the pieces of a sentence that it states, in order."""
    if asks(sentence):
        return []
    whole = len(_before_foreign_demand(sentence)) if demands else len(sentence)
    tokens = [(m[0].casefold(), m.start()) for m in _TOKEN.finditer(sentence, 0, whole)]
    kept: list[tuple[int, int]] = []
    begin = 0
    inside = False
    for place, (token, at) in enumerate(tokens):
        if inside and (token in _CLAUSE_ENDS or token in _FINDS):
            inside, begin = False, at
        if inside:
            continue
        demanded = demands and _demands(tokens, place)
        if demanded or token in _SUPPOSES:
            kept.append((begin, at))
            inside, begin = True, whole
            if demanded and tokens[place - 1][0] != "to":
                break
    return [*kept, (begin, whole)]


def _before_foreign_demand(sentence: str) -> str:
    """The sentence up to where another language brings words: "Écrivez : X" states no X."""
    foreign = english = 0
    for match in _TOKEN.finditer(sentence):
        token = match[0].casefold()
        if token in _BRINGS and foreign > 1 + english:
            return sentence[: match.start()]
        if token in _BEGINS:
            foreign = english = 0
        foreign += token in _FOREIGN or any(map(_strange, token))
        english += token in _ENGLISH
    return sentence


def _strange(letter: str) -> bool:
    """Whether a letter is one that English is not written with, nor units and formulas."""
    return letter > "\x7f" and letter.isalpha() and not "\u0370" <= letter <= "\u03ff"


def _demands(tokens: list[tuple[str, int]], place: int) -> bool:
    """Whether the token at `place` tells the reader what to say."""
    token = tokens[place][0]
    before = tokens[place - 1][0] if place else "."
    if token in _SAY and (before in _NO_SUBJECT or not before[0].isalnum()):
        return True
    following = [word for word, _ in tokens[place + 1 : place + 4]]
    if token not in _REPLIES:
        return False
    # "Required output: "X"" and "the answer must be that X".
    dictated = following[:1] == [":"] and not _QUOTES.isdisjoint(following[1:2])
    return dictated or ("that" in following and not _MUST.isdisjoint(following))
