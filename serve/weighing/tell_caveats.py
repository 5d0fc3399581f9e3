"""Caveats about answers whose sources are studies of animals or cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster.answers import Evidence, Sentence
from cluster.study_design.subjects import without_people
from cluster.study_design.tell_design import design_words


def tell_caveats(ideal: Sequence[Sentence], evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return caveats about sources that are not studies of people; () if there are none.

    A caveat covers the sentences whose sources are all animal or in vitro studies. A source that
    may be about people, or whose subjects are unknown, exempts a sentence.
    """
    studied = {item.passage.pmid: item.subjects for item in evidence}
    concerned = [
        (place, sentence)
        for place, sentence in enumerate(ideal, 1)
        if sentence.pmids and all(without_people(studied.get(pmid, ())) for pmid in sentence.pmids)
    ]
    if not concerned:
        return ()
    pmids = dict.fromkeys(pmid for _, sentence in concerned for pmid in sentence.pmids)
    found = dict.fromkeys(name for pmid in pmids for name in studied[pmid])
    study = design_words("other", tuple(found))
    which = "this answer" if len(concerned) == len(ideal) else _sentences([n for n, _ in concerned])
    named = ", ".join(map(str, pmids))
    if len(pmids) == 1:
        sources, are = "source", f"is a {study}"
    else:
        sources, are = "sources", f"are {study.replace('study', 'studies', 1)}"
    return (f"The {sources} of {which} (PMID {named}) {are}; the finding may not hold in people.",)


def _sentences(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"sentences {', '.join(others)} and {last}" if others else f"sentence {last}"
