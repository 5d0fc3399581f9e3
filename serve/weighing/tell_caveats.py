"""Caveats about answers whose sources are studies of animals or cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cluster.answers import Evidence, Sentence
from cluster.study_design.subjects import IN_VITRO, without_people

# A text with one of these words already states that it is about animals or cells.
_SAYS_SO = re.compile(
    r"\b(?:mice|mouse|murine|rats?|rodents?|rabbits?|dogs?|canine|cats?|feline|pigs?|porcine"
    r"|piglets?|hamsters?|monkeys?|macaques?|primates?|sheep|cattle|bovine|chickens?|horses?"
    r"|zebrafish|drosophila|fruit fl(?:y|ies)|nematodes?|elegans|animals?|preclinical|in vitro"
    r"|cell lines?|cells|cultured|xenografts?)\b",
    re.IGNORECASE,
)


def tell_caveats(
    question: str, ideal: Sequence[Sentence], evidence: Iterable[Evidence]
) -> tuple[str, ...]:
    """Return caveats about sources that are not studies of people; () if there are none.

    A caveat covers the sentences whose sources are all animal or in vitro studies, unless the
    sentence or the question mentions it. A source that may be about people, or whose subjects are
    unknown, exempts a sentence.
    """
    if _SAYS_SO.search(question):
        return ()
    studied = {item.passage.pmid: item.subjects for item in evidence}
    concerned = [
        (place, sentence)
        for place, sentence in enumerate(ideal, 1)
        if _is_concerned(sentence, studied)
    ]
    if not concerned:
        return ()
    pmids = dict.fromkeys(pmid for _, sentence in concerned for pmid in sentence.pmids)
    found = dict.fromkeys(name for pmid in pmids for name in studied[pmid])
    where = _where([name for name in found if name != IN_VITRO], IN_VITRO in found)
    which = "this answer" if len(concerned) == len(ideal) else _sentences([n for n, _ in concerned])
    named = ", ".join(map(str, pmids))
    source = "source" if len(pmids) == 1 else "sources"
    is_one = "is a study" if len(pmids) == 1 else "are studies"
    return (
        f"The {source} of {which} (PMID {named}) {is_one} {where}; "
        "the finding may not hold in people.",
    )


def _is_concerned(sentence: Sentence, studied: dict[int, tuple[str, ...]]) -> bool:
    sources = [studied.get(pmid, ()) for pmid in sentence.pmids]
    return (
        bool(sources) and all(map(without_people, sources)) and not _SAYS_SO.search(sentence.text)
    )


def _where(animals: Sequence[str], lab: bool) -> str:
    *others, last = animals or [""]
    named = f"in {', '.join(others)} and {last}" if others else f"in {last}" if last else ""
    return " and ".join(filter(None, [named, IN_VITRO if lab else ""]))


def _sentences(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"sentences {', '.join(others)} and {last}" if others else f"sentence {last}"
