"""Add caveats, sides, agreement and concept coverage to a written answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cluster.answers import NOT_ENOUGH, Answer, Evidence, ExactAnswer, Sentence, TracedSource
from cluster.appraisal import Agreement, ConceptCoverage, Sides, SideSource
from cluster.exposure import exposure_words
from cluster.records import Entity
from cluster.study_design.design_classifier import design_words, without_people
from cluster.study_design.designs import weight_of
from cluster.text.analysis import ANALYSER
from serve.pipeline.check_exposure import mark_exposed
from serve.wording.quote_sentence import completed, excerpt, marked_text, on_side, side_sentence

# Maximum numbers of names and of characters that are compared, to bound the time.
MAX_NAMES = 30
MAX_CHARACTERS = 50_000


def weigh_answer(answer: Answer) -> Answer:
    """Return the answer with caveats, sides, agreement and concept coverage.

    The evidence must be ordered by relevance. An answer that states nothing has only the caveats
    on the exposure of its closest sources.
    """
    answer = replace(mark_exposed(answer), caveats=exposure_words(answer.exposure))
    if answer.verdict == NOT_ENOUGH:
        return answer
    quoted = answer.ideal if answer.origin == "extractive" else ()
    sides = list_sides(answer.evidence, answer.ideal, quoted)
    return replace(
        answer,
        caveats=(*answer.caveats, *tell_caveats(answer.ideal, answer.evidence)),
        sides=sides,
        agreement=measure_agreement(sides, answer.ideal),
        concept_coverage=cover_concepts(
            answer.entities, answer.ideal, answer.exact, answer.evidence
        ),
    )


def tell_caveats(ideal: Sequence[Sentence], evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """Return a caveat on sentences whose sources are all animal or in vitro studies, or ().

    A sentence with a source that may be about people, or whose subjects are unknown, needs no
    caveat.
    """
    studied = {item.passage.pmid: item.subjects for item in evidence}
    concerned = {
        number: sentence.pmids
        for number, sentence in enumerate(ideal, 1)
        if sentence.pmids and all(without_people(studied.get(pmid, ())) for pmid in sentence.pmids)
    }
    if not concerned:
        return ()
    pmids = dict.fromkeys(pmid for cited in concerned.values() for pmid in cited)
    study = design_words("other", tuple(dict.fromkeys(s for p in pmids for s in studied[p])))
    *others, last = map(str, concerned)
    which = f"sentences {', '.join(others)} and {last}" if others else f"sentence {last}"
    which = "this answer" if len(concerned) == len(ideal) else which
    sources, are = "source", f"is a {study}"
    if len(pmids) > 1:
        sources, are = "sources", f"are {study.replace('study', 'studies', 1)}"
    named = ", ".join(map(str, pmids))
    return (f"The {sources} of {which} (PMID {named}) {are}; the finding may not hold in people.",)


def list_sides(
    evidence: Iterable[Evidence], ideal: Sequence[Sentence], quoted: Sequence[Sentence] = ()
) -> Sides:
    """Return each citation with a stance once, with its best-ranked passage that has a stance.

    `evidence` is ordered by relevance. `ideal` has the sentences of the stated answer,
    `quoted` those of them that are quoted from the sources.
    """
    found = tuple(evidence)
    supporting, contradicting = (
        tuple(_source(item, ideal, quoted) for item in on_side(found, stance))
        for stance in ("support", "contradict")
    )
    return Sides(supporting, contradicting)


def _source(item: Evidence, ideal: Sequence[Sentence], quoted: Sequence[Sentence]) -> SideSource:
    sentence = side_sentence(item, ideal)
    return SideSource(
        pmid=item.passage.pmid,
        quote=excerpt(marked_text(item.passage), sentence),
        sentence=completed(sentence, item.passage.pmid, quoted),
        title=item.title,
        year=item.year,
        design=item.design,
        subjects=item.subjects,
        notice=item.notice,
    )


def measure_agreement(sides: Sides, ideal: Iterable[Sentence]) -> Agreement | None:
    """Return the sources' agreement with the answer; None if no source takes a stance.

    An article whose finding was traced to a study on its side is not counted beside the study.
    """
    traced = [sentence.traced for sentence in ideal if sentence.traced]
    for_, against = (_weights(side, traced) for side in (sides.supporting, sides.contradicting))
    sources = len(for_) + len(against)
    if not sources:
        return None
    return Agreement(
        sources=sources,
        supporting=len(for_),
        share=round(len(for_) / sources, 4),
        weighted=round(sum(for_) / sum((*for_, *against)), 4),
    )


def _weights(side: Iterable[SideSource], traced: Iterable[TracedSource]) -> list[float]:
    """Return the weight of each study of a side, counting the same study once."""
    designs = {source.pmid: source.design for source in side}
    repeated = {origin.via for origin in traced if origin.pmid in designs}
    return [weight_of(design) for pmid, design in designs.items() if pmid not in repeated]


def cover_concepts(
    entities: Iterable[Entity],
    ideal: Sequence[Sentence],
    exact: ExactAnswer,
    evidence: Iterable[Evidence],
) -> ConceptCoverage | None:
    """Return which of the question's linked concepts are named; None if it has none.

    A concept is named by its words in the question or by a synonym, in any inflection. Only cited
    evidence counts, including its titles. The measure is that of paper 001 (section 7.2).
    """
    concepts = {entity.concept: entity for entity in entities if entity.concept}.values()
    if not concepts:
        return None
    cited = {pmid for sentence in ideal for pmid in sentence.pmids}
    sources = [i for i in evidence if i.passage.pmid in cited]
    listed = [name for group in exact for name in group] if isinstance(exact, list) else []
    said = _stems(" ; ".join([*(sentence.text for sentence in ideal), *listed]))
    read = _stems(" ; ".join(f"{item.title} ; {item.passage.text}" for item in sources))
    names = {concept.text: _names(concept) for concept in concepts}
    unread = tuple(text for text, known in names.items() if not any(n in read for n in known))
    unsaid = tuple(text for text, known in names.items() if not any(n in said for n in known))
    return ConceptCoverage(
        concepts=tuple(names),
        in_evidence=round(1 - len(unread) / len(names), 4),
        in_answer=round(1 - len(unsaid) / len(names), 4),
        missing_from_evidence=unread,
        missing_from_answer=unsaid,
    )


def _names(concept: Entity) -> list[str]:
    # The stemmer does not remove the plural ending of "RNAs".
    one = [concept.text[:-1]] if concept.text.endswith("s") else []
    stems = map(_stems, [concept.text, *one, *concept.synonyms][:MAX_NAMES])
    return [name for name in stems if name.strip()]


def _stems(text: str) -> str:
    """Return the stems of a text's words, separated and surrounded by spaces."""
    return f"{ANALYSER.join_terms(text[:MAX_CHARACTERS])} "
