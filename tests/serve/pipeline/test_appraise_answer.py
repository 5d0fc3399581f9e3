from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from cluster.answers import Answer, Evidence, RankedCitation, Sentence, TracedSource
from cluster.appraisal import Agreement, Sort
from cluster.records import Citation, Entity, Passage
from serve.pipeline.appraise_answer import (
    cover_concepts,
    list_sides,
    measure_agreement,
    tell_caveats,
    weigh_answer,
)
from serve.pipeline.sort_result import arranged, count_evidence
from serve.wording.appraisal_words import notice_lines, weight_lines
from serve.wording.quote_sentence import closest_sentence, quoted_sentence
from serve.wording.verdict_words import agreement_words
from tests.serve.answering import answer

MICE, RATS = ("mice",), ("rats",)


def found(pmid: int, text: str = "It helped.", **fields: Any) -> Evidence:
    return Evidence(Passage(pmid, "abstract", 0, len(text), text), **fields)


def said(text: str, *pmids: int, against: tuple[int, ...] = ()) -> Sentence:
    return Sentence(text, pmids, 0.9, against)


LISTED = answer(
    citations=(
        RankedCitation(1, 0.9, year=2001, design="case_report"),
        RankedCitation(2, 0.8, design="meta_analysis"),
        RankedCitation(3, 0.7, year=2020),
        RankedCitation(4, 0.6, year=2020, design="meta_analysis"),
    ),
    evidence=(found(1, year=2001, design="case_report"), found(4, year=2020)),
)


@pytest.mark.parametrize(
    ("sort", "pmids", "evidence"),
    [
        ("relevance", [1, 2, 3, 4], [1, 4]),
        ("date", [3, 4, 1, 2], [4, 1]),
        ("design", [2, 4, 1, 3], [1, 4]),
    ],
)
def test_citations_and_evidence_are_sorted_as_requested(
    sort: Sort, pmids: list[int], evidence: list[int]
) -> None:
    listed = arranged(LISTED, sort)
    assert [citation.pmid for citation in listed.citations] == pmids
    assert [item.passage.pmid for item in listed.evidence] == evidence
    assert listed.sort == sort


def test_count_evidence_by_year_and_design() -> None:
    counts = count_evidence(LISTED.citations)
    assert list(counts.year.items()) == [("2001", 1), ("2020", 2), ("unknown", 1)]
    assert list(counts.design.items()) == [("meta_analysis", 2), ("case_report", 1), ("other", 1)]
    assert count_evidence(()).year == {}


IDEAL = (said("It helps.", 1), said("It is safe.", 2, against=(3,)))
SIDED = [
    found(1, "It helped.", stance="support", design="randomised_trial", year=2020),
    found(1, "It did not.", stance="contradict"),
    found(2, "It was safe.", stance="support", design="animal", subjects=MICE),
    found(3, "It harmed.", stance="contradict", design="meta_analysis", notice="Retracted."),
    found(4, "Cats sleep.", stance="neutral"),
]


def test_sides_list_sources_with_the_sentence_they_refer_to() -> None:
    sides = list_sides(SIDED, IDEAL)
    sources = [(s.pmid, s.design, s.quote, s.sentence) for s in sides.supporting]
    assert sources == [
        (1, "randomised_trial", "It helped.", "It helped."),
        (2, "animal", "It was safe.", "It was safe."),
    ]
    (against,) = sides.contradicting
    assert (against.pmid, against.sentence, against.notice) == (3, "It harmed.", "Retracted.")


def test_side_is_quoted_with_its_own_sentence_even_at_the_end_of_a_passage() -> None:
    ideal = [said("Metformin activates AMPK.", 1, against=(2,))]
    against = "Metformin does not activate AMPK."
    long = f"{'Mice were fed and weighed every day. ' * 20}{against} Nothing else was seen."
    (source,) = list_sides([found(2, long, stance="contradict")], ideal).contradicting
    assert source.sentence == against
    assert source.quote == f"\u2026{against} Nothing else was seen."


CUT = "CONCLUSIONS: Tafamidis reduces mortality in this"
WHOLE = "Tafamidis reduces mortality in this disease."
ITEM = Evidence(Passage(1, "abstract", 90, 140, f"and fed. {CUT}"), stance="support")


def test_quotation_of_a_sentence_that_the_passage_cuts_ends_with_an_ellipsis() -> None:
    ideal = [said(WHOLE, 1)]
    (source,) = list_sides([ITEM], ideal).supporting
    assert (source.sentence, source.quote) == (f"{CUT}\u2026", f"\u2026and fed. {CUT}\u2026")
    generated = answer(evidence=(ITEM,), ideal=tuple(ideal), origin="generated")
    assert quoted_sentence(generated, 1) == f"{CUT}\u2026"
    title = replace(ITEM.passage, section="title", text="Tafamidis and mortality")
    (source,) = list_sides([replace(ITEM, passage=title)], ideal).supporting
    assert source.sentence == "Tafamidis and mortality"


def test_quotation_is_whole_if_the_answer_quotes_the_whole_sentence() -> None:
    extractive = weigh_answer(answer(evidence=(ITEM,), ideal=(said(WHOLE, 1),)))
    (source,) = extractive.sides.supporting
    assert source.sentence == quoted_sentence(extractive, 1) == WHOLE
    other = weigh_answer(answer(evidence=(ITEM,), ideal=(said(WHOLE, 2),)))
    assert quoted_sentence(other, 1) == f"{CUT}\u2026"


def test_agreement_weights_sources_by_design() -> None:
    agreed = measure_agreement(list_sides(SIDED, IDEAL), IDEAL)
    assert agreed is not None
    assert (agreed.sources, agreed.supporting) == (3, 2)
    assert agreed.share == pytest.approx(2 / 3, abs=1e-4)
    # 0.8 for the trial, 0.2 for the mice, 1 for the meta-analysis.
    assert agreed.weighted == 0.5
    assert measure_agreement(list_sides([SIDED[-1]], IDEAL), IDEAL) is None


def test_agreement_counts_a_review_and_its_traced_study_once() -> None:
    evidence = [
        found(1, stance="support", design="review"),
        found(2, stance="support", design="randomised_trial"),
        found(3, stance="support", design="cohort"),
    ]
    traced = [replace(said("It helps.", 2, 1), traced=TracedSource("primary", via=1, pmid=2))]
    agreed = measure_agreement(list_sides(evidence, traced), traced)
    assert agreed == Agreement(sources=2, supporting=2, share=1.0, weighted=1.0)
    # If the study does not take the review's side, the review is a source of its own.
    evidence[1] = replace(evidence[1], stance="contradict")
    agreed = measure_agreement(list_sides(evidence, traced), traced)
    assert agreed is not None
    assert (agreed.sources, agreed.supporting) == (3, 2)
    unfound = [replace(said("It helps.", 1), traced=TracedSource("secondary", via=1))]
    assert measure_agreement(list_sides(evidence[:1], unfound), unfound) is not None


IN_MICE, IN_RATS, ON_PEOPLE = (
    found(1, design="animal", subjects=MICE),
    found(2, design="animal", subjects=RATS),
    found(3, design="cohort", subjects=("people",)),
)


IN_VITRO = found(1, design="in_vitro", subjects=("in vitro",))
HELPS = said("It helps.", 1)


@pytest.mark.parametrize(
    ("ideal", "evidence", "caveat"),
    [
        (
            [HELPS], [IN_MICE],
            "The source of this answer (PMID 1) is a study in mice; the finding may not hold in "
            "people.",
        ),
        (
            [said("It helps.", 3), said("It is safe.", 1, 2)], [IN_MICE, IN_RATS, ON_PEOPLE],
            "sources of sentence 2 (PMID 1, 2) are studies in mice and rats;",
        ),
        ([HELPS], [IN_VITRO], "is a study in vitro;"),
        # A source may be about people.
        ([said("It helps.", 1, 3)], [IN_MICE, ON_PEOPLE], ""),
        ([said("It helps.", 9)], [IN_MICE, ON_PEOPLE], ""),
        ([said("It helps.")], [IN_MICE, ON_PEOPLE], ""),
    ],
)  # fmt: skip
def test_caveat_if_no_source_is_about_people(
    ideal: list[Sentence], evidence: list[Evidence], caveat: str
) -> None:
    caveats = tell_caveats(ideal, evidence)
    assert len(caveats) == bool(caveat)
    assert caveat in "".join(caveats)


AMPK = Entity("AMPK", 0, 4, "D055372", "gene", ("AMP-activated protein kinase",))
DRUG = Entity("metformin", 0, 9, "D008687", "drug")
GUESSED = Entity("help", 0, 4, "", "word")


def test_concept_coverage_counts_synonyms_in_cited_evidence() -> None:
    evidence = [found(1, "AMP-activated protein kinases rose."), found(2, "Metformin works.")]
    covered = cover_concepts([AMPK, DRUG, GUESSED], [said("Metformin acts.", 1)], None, evidence)
    assert covered is not None
    assert covered.concepts == ("AMPK", "metformin")
    # PMID 2, which names the drug, is not cited.
    assert (covered.in_evidence, covered.missing_from_evidence) == (0.5, ("metformin",))
    assert (covered.in_answer, covered.missing_from_answer) == (0.5, ("AMPK",))


BLEEDING = Entity("bleeding", 0, 8, "D006470", "mesh")


@pytest.mark.parametrize(
    ("concept", "text", "exact", "share"),
    [
        (DRUG, "Metforminium acts.", [["AMPK"]], 0.0),
        (DRUG, "Metforminium acts.", [["Metformin"]], 1.0),
        (BLEEDING, "Fewer bleeds were treated.", None, 1.0),
    ],
    ids=["part of a word", "exact name", "inflection"],
)
def test_concept_coverage_compares_whole_words(
    concept: Entity, text: str, exact: list[list[str]] | None, share: float
) -> None:
    covered = cover_concepts([concept], [said(text, 1)], exact, [])
    assert covered is not None
    assert covered.in_answer == share
    assert cover_concepts([GUESSED], [said(text, 1)], exact, []) is None


def test_withheld_answer_is_not_weighed() -> None:
    silent = answer(verdict="not_enough_evidence", evidence=tuple(SIDED))
    assert weigh_answer(silent) == silent


def big_answer() -> Answer:
    text = "Metformin activates AMPK in patients. " * 40
    evidence = tuple(found(n, text, stance="support", subjects=MICE) for n in range(1, 21))
    names = tuple(f"name {n}" for n in range(50))
    entities = tuple(Entity(f"thing {n}", 0, 4, f"D{n}", "drug", names) for n in range(10))
    ideal = (said("It helps.", 1, 2, 3), said("It is safe.", 4, 5, 6))
    return answer(evidence=evidence, entities=entities, ideal=ideal)


def test_weighing_takes_milliseconds() -> None:
    whole, spent = big_answer(), []
    for _ in range(10):
        begun = time.thread_time()
        assert weigh_answer(whole).agreement
        spent.append(time.thread_time() - begun)
    assert min(spent) < 0.005


def test_notices_only_of_cited_articles_or_those_offered_instead() -> None:
    noted = [found(1, notice="Corrected or updated since."), found(2, notice="Doubted.")]
    stated = answer(ideal=(said("It helps.", 1),), evidence=tuple(noted))
    assert notice_lines(stated) == ["PMID 1: Corrected or updated since."]
    near = answer(citations=(RankedCitation(3, 1.0, notice="Retracted: see PMID 4."),))
    assert notice_lines(near) == ["PMID 3: Retracted: see PMID 4."]


@pytest.mark.parametrize(
    ("agreed", "words"),
    [
        (Agreement(1, 1, 1.0, 1.0), "1 study {}s {}"),
        (Agreement(1, 0, 0.0, 0.0), "0 of 1 studies {} {}"),
        (Agreement(4, 4, 1.0, 1.0), "all 4 studies {} {}"),
        (Agreement(4, 1, 0.25, 0.1), "1 of 4 studies {}s {}"),
        (Agreement(4, 3, 0.75, 0.9), "3 of 4 studies {} {}"),
    ],
)
def test_agreement_words_for_any_count(agreed: Agreement, words: str) -> None:
    for exact, verb in (("no", ("say", "no")), ([["BRCA1"]], ("support", "this answer"))):
        assert agreement_words(answer(exact=exact, agreement=agreed)) == words.format(*verb)


def test_weight_lines_name_designs_agreement_and_concepts() -> None:
    whole = arranged(replace(LISTED, ideal=IDEAL, evidence=tuple(SIDED), entities=(AMPK,)), "date")
    assert weight_lines(weigh_answer(whole)) == [
        "study designs of the 4 articles found: meta-analysis 2, case report 1, unknown 1",
        "agreement: 2 of 3 studies support this answer; weighted by study design (trials count "
        "more than case reports): 50% for this answer",
        "concepts of the question that the cited evidence does not name: AMPK",
        "concepts of the question that the answer does not name: AMPK",
    ]
    assert weight_lines(answer()) == []


def test_evidence_and_citations_have_the_study_design() -> None:
    record = Citation(1, publication_types=("Meta-Analysis",))
    evidence = Evidence.of(Passage(1, "title", 0, 1, "A"), record, {})
    assert evidence is not None
    assert evidence.design == "meta_analysis"
    assert RankedCitation.of(record, 1.0, {}).design_from == "publication_types"


def test_whole_sentence_is_quoted_rather_than_its_end() -> None:
    whole = "The benefit was the same in patients without diabetes."
    texts = [whole.removeprefix("The "), f"It was small. {whole}"]
    for given in (texts, texts[::-1]):
        assert closest_sentence(given, ["Benefit in patients without diabetes"]) == whole
    assert closest_sentence([], ["Benefit"]) == ""
