"""Check that the names in a sentence occur in the passages that it cites.

Similarity scores hardly change when one name is replaced by another, so names are checked
separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cluster.answers import Evidence, Sentence
from cluster.text.mine_abbreviations import mine_abbreviations
from serve.support.attribute_sentences import stated_text
from serve.support.compare_wording import VERDICT, Wording, holds, read_wording

# A name that occurs in more passages than this belongs to the subject, not to one passage.
COMMON_PASSAGES = 2

_CAPITALISED = re.compile(r"\b[A-Z][\w-]{3,}")
_PARTS = re.compile(r"[-/]")
# Words that open a sentence and are not names.
_OPENER = re.compile(
    r"\w+(?:ly|ing)|after|also|although|because|before|besides|both|despite|due|during|each|early|"
    r"either|even|every|few|finally|first|from|further|furthermore|hence|here|however|increased|into|"
    r"later|least|many|more|moreover|most|much|neither|next|often|once|only|other|others|over|overall|"
    r"patients|people|several|since|some|still|such|taken|that|then|there|therefore|these|this|those|"
    r"through|thus|together|under|until|upon|when|where|whereas|which|while|with|within|without",
    re.IGNORECASE,
)


def borrowed_names(
    sentence: Sentence, evidence: Sequence[Evidence], names: Sequence[str], body: str
) -> list[str]:
    """Return those of the sentence's `names` that come from a passage that it does not cite.

    Small models put the drug of one passage into the finding of another, so that all words but one
    agree. Names in the question `body`, other forms of a cited abbreviation, and names in more than
    `COMMON_PASSAGES` uncited passages (common wording) are not borrowed.
    """
    cited: list[Wording] = []
    others: list[Wording] = []
    for item in evidence:
        side = cited if item.passage.pmid in sentence.pmids else others
        side.append(read_wording(_text(item)))
    same = read_wording(body).words.keys() | _other_forms(
        sentence.text, [body, *map(_text, evidence)], cited
    )
    borrowed = []
    for name in names:
        missing = [
            word
            for word in read_wording(name).words
            if word not in same and not any(_names(source, word) for source in cited)
        ]
        found = sum(all(_names(source, word) for word in missing) for source in others)
        if missing and 0 < found <= COMMON_PASSAGES:
            borrowed.append(name)
    return borrowed


def invented_names(
    sentence: str, evidence: Sequence[Evidence], names: Sequence[str], body: str
) -> list[str]:
    """Return the sentence's `names` and capitalised words that no passage contains.

    The question `body` is not a source: a name that only the question has is invented, unless a
    passage has its initials or short form.
    """
    texts = [stated_text(_text(item)) for item in evidence]
    wordings = [read_wording(text) for text in texts]
    plain = " ".join(texts).casefold()
    spelt = _other_forms(sentence, [body, *texts], wordings)
    for initials, words in read_wording(body).initials.items():
        if any(initials in source.words for source in wordings):
            spelt |= words

    def known(name: str) -> bool:
        words = read_wording(name).words
        return not words or any(
            word in plain or word in spelt or any(_names(source, word) for source in wordings)
            for word in words
        )

    return [name for name in (*names, *_capitalised(sentence)) if not known(name)]


def _names(source: Wording, word: str) -> bool:
    """Return True if `source` has the stem `word`, even as part of a word ("outer-hair")."""
    return holds(source, word) or any(word in _PARTS.split(whole) for whole in source.words)


def _text(item: Evidence) -> str:
    return f"{item.title} {item.passage.text}"


def _other_forms(sentence: str, defining: Iterable[str], sources: Sequence[Wording]) -> set[str]:
    """Return the words of abbreviations in the sentence whose other form is in `sources`.

    Abbreviations are mined from the sentence and `defining`, as in "mammalian target of rapamycin
    (mTOR)". The sentence must have the whole form: "rapamycin" alone means something else.
    """
    said = read_wording(sentence)
    other: set[str] = set()
    for pair in {pair for text in (sentence, *defining) for pair in mine_abbreviations(text)}:
        short, long = (read_wording(form).words.keys() for form in pair)
        for form, its_other in ((short, long), (long, short)):
            if not all(holds(said, word) for word in its_other):
                continue
            if any(all(holds(source, word) for word in form) for source in sources):
                other |= its_other
    return other


def _capitalised(sentence: str) -> Iterator[str]:
    """Yield the sentence's capitalised words, without common words that open it."""
    for match in _CAPITALISED.finditer(sentence):
        opens = not match.start() or VERDICT.fullmatch(sentence, 0, match.start())
        if not (opens and _OPENER.fullmatch(match[0])):
            yield match[0]
