"""Rule-based sentence splitting of biomedical text, in linear time."""

from __future__ import annotations

import re

# A run of full stops with the brackets and quotes that close after it, then white space or a
# section label glued to it ("efficacy.METHODS: We"). The look-behind and the possessive
# quantifiers keep long runs of dots linear.
_STOP = re.compile(
    r"(?<![.!?])(?P<stop>[.!?]++)"
    r"[)\]}\"'\u2019\u201d\u00bb]*+"
    r"(?:(?P<gap>\s++)|(?=[A-Z][A-Z /&,-]{2,40}:))"
)
_LAST_WORD = re.compile(r"(?<![\w.])[\d_.]*([^\W\d_][\w.]*)$")
_NEXT_WORD = re.compile(r"""[(\[{"'\u2018\u201c\u00ab]*([\w\u2019'-]*)""")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_WINDOW = 24

# Abbreviations whose full stop never ends a sentence.
_LEADING = re.compile(
    r"approx|ca|cf|drs?|e\.?g|eqs?|figs?|i\.?e|mrs?|ms|prof|refs?|st|viz|vs", re.IGNORECASE
)
# Abbreviations whose full stop ends a sentence only before a capital: not in `et al. (2003)`.
_EITHER = re.compile(
    r"al|co|dept|eds?|est|etc|inc|jr|ltd|max|min|nos?|pp|resp|spp?|ssp|subsp|univ|var|vol",
    re.IGNORECASE,
)
# After an initial (`J. Smith`, `hepatitis C. The`) only these begin a sentence.
_STARTERS = re.compile(
    r"""
    a | after | all | although | among | an | and | as | at | background | based | because
    | before | between | both | but | by | compared | conclusions? | data | despite | due | during
    | each | finally | five | for | four | from | further | furthermore | given | here | how
    | however | if | in | interestingly | is | it | its | later | many | methods | moreover | most
    | no | objective | of | on | one | only | our | overall | patients | recent | recently | results
    | several | similarly | since | six | so | some | such | taken | that | the | their | then
    | there | therefore | these | they | this | those | three | through | thus | to | treatment
    | two | under | unlike | until | using | we | what | when | where | whereas | whether | which
    | while | with | within
    """,
    re.IGNORECASE | re.VERBOSE,
)


# Start of a question without a question mark, as in titles: "Is the score useful in ulcers".
_INVERTED = re.compile(
    r"(?:Is|Are|Was|Were|Do|Does|Did|Can|Could|Should|Would|Will|Has|Have)\s(?!not\b)"
)
_ASKS = re.compile(r"""\?[)\]}"'\u2019\u201d\u00bb.]*$""")
_ENDS = re.compile(r"""[.!;:][)\]}"'\u2019\u201d\u00bb]*$""")


def asks(sentence: str) -> bool:
    """Return whether a sentence, without surrounding white space, is a question."""
    if _ASKS.search(sentence):
        return True
    return bool(_INVERTED.match(sentence)) and not _ENDS.search(sentence)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (begin, end) of the sentences in order, in code points, end exclusive.

    The spans cover all text except the white space around them. Blank text has no spans.
    """
    spans = []
    begin = len(text) - len(text.lstrip())
    last = len(text.rstrip())
    for match in _STOP.finditer(text, begin, last):
        if match["gap"] is None or _ends_sentence(text, match):
            end = match.end() - len(match["gap"] or "")
            spans.append((begin, end))
            begin = match.end()
    if begin < last:
        spans.append((begin, last))
    return spans


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = _NEXT_WORD.match(text, match.end(), match.end() + _WINDOW)
    word = following[1] if following else ""
    if not _may_begin(word):
        return False
    if match["stop"] != ".":
        return True
    stop = match.start("stop")
    preceding = _LAST_WORD.search(text, max(0, stop - _WINDOW), stop)
    if preceding is None or _inside_longer_token(text, preceding.start(1)):
        return True
    if _LEADING.fullmatch(preceding[1]):
        return False
    if _EITHER.fullmatch(preceding[1]):
        return text[match.end()].isupper()
    if _INITIALS.fullmatch(preceding[1]):
        another_initial = following is not None and text.startswith(".", following.end())
        return bool(_STARTERS.fullmatch(word)) and not another_initial
    return True


def _may_begin(word: str) -> bool:
    """Return whether a sentence may begin with `word`: not lower case, but names such as p53."""
    return not word[:1].islower() or any(c.isupper() or c.isdigit() for c in word)


def _inside_longer_token(text: str, begin: int) -> bool:
    """Return whether the word ends a longer token, such as `IL-2R`, and is not an abbreviation."""
    return begin > 0 and (text[begin - 1] in "-/_" or text[begin - 1].isalnum())
