from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from cluster.index.boolean.expressions import Expression, Or, Term
from cluster.index.filters.filters import Filters
from cluster.records import Citation, Entity, MeshHeading
from cluster.text.analysis import ANALYSER
from cluster.text.vocabulary import Concept
from serve.question.field_tags.parse_boolean import write_pubmed
from serve.question.understand_question import Heading
from serve.strategy.choose_terms import (
    ChosenBlock,
    Count,
    choose_blocks,
    choose_terms,
    without_common_words,
)
from serve.strategy.concept_blocks import Concepts, ReferenceSet, concept_blocks, years_in
from serve.strategy.strategy_limits import design_headings, limit_terms
from tests.small_index import citation

pytestmark = pytest.mark.unit

AD = Concept("mesh:D000544", "mesh", "Alzheimer Disease", ("Alzheimer's disease", "AD"), (9, 1), 40)
CITATIONS = 1000


def tiab(*values: str) -> tuple[Term, ...]:
    return tuple(Term("tiab", value) for value in values)


def reference(*texts: str, headings: Sequence[str] = ()) -> ReferenceSet:
    mesh = tuple(MeshHeading(ui="D1", name=name, major=False) for name in headings)
    records: list[Citation] = [citation(n, text, mesh=mesh) for n, text in enumerate(texts, 1)]
    return ReferenceSet(records, [1.0] * len(records), ANALYSER)


class Counted:
    """Counter with known numbers of hits."""

    def __init__(self, hits: Mapping[str, int]) -> None:
        self._hits = hits

    async def __call__(self, expressions: Sequence[Expression]) -> list[Count]:
        return [Count(self._hits[write_pubmed(expression)]) for expression in expressions]


def test_entity_block_has_heading_names_and_truncated_words() -> None:
    question = "Does losartan treat Alzheimer's disease?"
    begin = question.index("Alz")
    entity = Entity("Alzheimer's disease", begin, len(question) - 1, AD.id, "mesh")
    blocks = concept_blocks(question, [(entity, AD)], ANALYSER)
    assert [block.name for block in blocks] == ["Alzheimer's disease", "losartan"]
    assert blocks[0].heading_hits == 40
    assert blocks[0].terms == (
        Term("mh", "Alzheimer Disease"),
        *tiab("Alzheimer's disease", "AD", "Alzheimer", "alzheim*"),
    )
    assert blocks[1].terms == tiab("losartan")


def test_everyday_words_form_blocks_only_if_there_are_no_others() -> None:
    blocks = {
        "Which genes cause SCUBE3 loss?": ["SCUBE3", "loss"],
        "Blood in tissue?": ["Blood", "tissue"],
    }
    found = {body: [b.name for b in concept_blocks(body, [], ANALYSER)] for body in blocks}
    assert found == blocks


def test_inverted_names_are_no_terms() -> None:
    inverted = replace(AD, names=("Disease, Alzheimer", *AD.names), uses=(5, *AD.uses))
    entity = Entity("AD", 0, 2, AD.id, "mesh")
    terms = concept_blocks("AD", [(entity, inverted)], ANALYSER)[0].terms
    assert terms == concept_blocks("AD", [(entity, AD)], ANALYSER)[0].terms


def test_years_form_no_blocks() -> None:
    question = "Did losartan help in 2015-2020, or since 2021, at 5000 mg?"
    names = [block.name for block in concept_blocks(question, [], ANALYSER)]
    assert names == ["losartan", "help", "5000", "mg"]
    assert years_in(question) == ["2015-2020", "2021"]


def test_reference_set_matches_words_phrases_and_headings_as_the_index_does() -> None:
    known = reference("Heart failure therapies.", "Failure of the heart.", headings=["Humans"])
    assert known.found_by(Term("tiab", "heart failure")) == {0}
    assert known.found_by(Term("tiab", "therap*")) == {0}
    assert known.found_by(Term("tiab", "therap")) == frozenset()
    assert known.found_by(Term("mh", "humans")) == {0, 1}


def chosen(concepts: Concepts, known: ReferenceSet, hits: Mapping[str, int]) -> ChosenBlock:
    """Return the block chosen for the concepts, which must have one."""
    block = asyncio.run(choose_terms(concepts, known, Counted(hits), CITATIONS))
    assert block is not None
    return block


def test_heading_is_kept_and_words_only_if_they_add_recall_at_few_hits() -> None:
    known = reference("aspirin pain", "aspirin", "ASA pain", headings=["Aspirin"])
    terms = (*tiab("ASA", "aspirin", "pain", "salicylate"), Term("mh", "Aspirin"))
    hits = {"ASA[tiab]": 3, "aspirin[tiab]": 20, "pain[tiab]": 600, "Aspirin[mh:noexp]": 9}
    block = chosen(Concepts("aspirin", terms[:4]), known, hits)
    assert block.terms == tiab("aspirin", "ASA")
    assert sorted(block.found) == [0, 1, 2]
    # The heading finds all three, and new articles without headings need a word.
    block = chosen(Concepts("aspirin", terms), known, hits)
    assert block.terms == (Term("mh", "Aspirin"), *tiab("aspirin"))
    # A single word of a name is judged after the names, although it finds more.
    named = Concepts("ASA", tiab("ASA", "aspirin"), words=1)
    assert chosen(named, known, hits).terms == tiab("ASA", "aspirin")
    nothing = Concepts("x", tiab("salicylate"))
    assert asyncio.run(choose_terms(nothing, known, Counted(hits), CITATIONS)) is None


def test_word_is_truncated_only_if_this_finds_more() -> None:
    known = reference("tafamidis", "a therapy", "therapies")
    hits = {"tafamidis[tiab]": 1, "tafamidi*[tiab]": 1, "therapy[tiab]": 1, "therap*[tiab]": 2}
    for words, kept in (
        (("tafamidi*", "tafamidis"), "tafamidis"),
        (("therapy", "therap*"), "therap*"),
    ):
        assert chosen(Concepts("x", tiab(*words)), known, hits).terms == tiab(kept)


def test_words_as_frequent_elsewhere_form_blocks_only_if_there_are_no_others() -> None:
    known = reference("aspirin is effective", "aspirin")
    hits = {"aspirin[tiab]": 9, "effective[tiab]": 120}
    aspirin, effective = (
        chosen(Concepts(word, tiab(word)), known, hits) for word in ("aspirin", "effective")
    )
    assert without_common_words([aspirin, effective]) == [aspirin]
    assert without_common_words([effective]) == [effective]
    # A recognised entity is kept, even if it is the subject of the whole index.
    entity = replace(effective, is_entity=True)
    assert without_common_words([aspirin, entity]) == [aspirin, entity]


def block_of(word: str, *found: int) -> ChosenBlock:
    return ChosenBlock(word, tiab(word), (Count(1),), frozenset(found))


def names_of(
    blocks: Sequence[ChosenBlock], citations: int, hits: Mapping[str, int], most: int
) -> tuple[list[str], list[str]]:
    """Return the names of the blocks that are kept, and of those that are left out."""
    known = reference(*["x"] * citations)
    found = asyncio.run(choose_blocks(blocks, [], known, Counted(hits), most))
    return [block.name for block in found.kept], [block.name for block in found.left_out]


BLOCKS = (block_of("a1", 0, 1, 2, 3), block_of("b1", 0, 1, 2), block_of("c1", 0))
HITS = {
    "all[sb]": CITATIONS, "a1[tiab]": 100, "b1[tiab]": 300, "c1[tiab]": 200,
    "a1[tiab] AND b1[tiab]": 40, "a1[tiab] AND c1[tiab]": 30,
    "a1[tiab] AND b1[tiab] AND c1[tiab]": 10,
}  # fmt: skip


@pytest.mark.parametrize(
    ("most", "kept"), [(100, ["a1"]), (50, ["a1", "b1"]), (5, ["a1", "b1", "c1"])]
)
def test_blocks_are_added_until_few_enough_hits_are_left(most: int, kept: list[str]) -> None:
    names = names_of(BLOCKS, 4, HITS, most)
    assert names[0] == kept
    assert {*names[0], *names[1]} == {"a1", "b1", "c1"}


def test_entities_that_lose_nothing_are_added_though_they_exclude_nothing() -> None:
    """In all of PubMed they exclude most articles."""
    entity, lossy = (
        ChosenBlock(name, tiab(name), (Count(1),), frozenset(found), is_entity=True)
        for name, found in (("e1", (0, 1, 2, 3)), ("e2", (0,)))
    )
    hits = {
        "all[sb]": CITATIONS, "a1[tiab]": 100, "e1[tiab]": CITATIONS, "e2[tiab]": CITATIONS,
        "a1[tiab] AND e1[tiab]": 100, "a1[tiab] AND e2[tiab]": 100,
    }  # fmt: skip
    assert names_of((BLOCKS[0], entity, lossy), 4, hits, 100) == (["a1", "e1"], ["e2"])


def test_entities_are_added_while_f1_rises_if_few_citations_are_left() -> None:
    found = {"b1": (0, 1, 2), "c1": (0,), "d1": (0, 1, 2), "e1": (0, 1)}
    entities = [replace(block_of(name, *has), is_entity=True) for name, has in found.items()]
    hits = {
        "all[sb]": CITATIONS, "a1[tiab]": 4, "b1[tiab]": 6, "c1[tiab]": 200, "d1[tiab]": 300,
        "e1[tiab]": 50, "b1[tiab] AND c1[tiab]": 2, "b1[tiab] AND d1[tiab]": 6,
        "b1[tiab] AND e1[tiab]": 2, "b1[tiab] AND e1[tiab] AND c1[tiab]": 1,
        "b1[tiab] AND e1[tiab] AND d1[tiab]": 2,
    }  # fmt: skip
    blocks = [block_of("a1", 0, 1, 2, 3), *entities]
    # F1 is 6/11 with b1 alone and 4/7 with e1; d1 loses nothing.
    assert names_of(blocks, 5, hits, CITATIONS) == (["b1", "e1", "d1"], ["a1", "c1"])


def test_filters_become_limits_and_others_are_named() -> None:
    filters = Filters(
        year_from=2015, until="2024-05-31", languages=("eng", "ger"), mesh=("D000544",),
        humans=False, retracted=False,
    )  # fmt: skip
    parts, notes = limit_terms(filters, {"d000544": "Alzheimer Disease"}, {})
    assert [write_pubmed(part) for part in parts] == [
        "2015:2024/05/31[dp]",
        "eng[la] OR ger[la]",
        '"Alzheimer Disease"[mh:noexp]',
        "all[sb] NOT Humans[mh:noexp]",
    ]
    assert parts[1] == Or((Term("la", "eng"), Term("la", "ger")))
    assert len(notes) == 2
    assert "all of 2024" in notes[0]
    assert "retracted" in notes[1]
    assert limit_terms(Filters(year_to=2020), {}, {})[0] == [Term("dp", "1000:2020")]


COHORTS = {"cohort studies": Heading("D015331", "Cohort Studies")}
ANIMALS = {"animals": Heading("D000818", "Animals")}


@pytest.mark.parametrize(
    ("designs", "known", "query"),
    [
        (("randomised_trial",), {}, '"Randomized Controlled Trial"[pt]'),
        (("cohort", "case_report"), COHORTS, '"Case Reports"[pt] OR "Cohort Studies"[mh:noexp]'),
        (("cohort", "in_vitro"), COHORTS, None),
        (("case_control",), COHORTS, None),
    ],
)
def test_designs_become_publication_types_and_headings(
    designs: tuple[str, ...], known: Mapping[str, Heading], query: str | None
) -> None:
    parts, notes = limit_terms(Filters(design=designs), {}, known)
    assert [write_pubmed(part) for part in parts] == ([query] if query else [])
    assert bool(notes) == (query is None)


def test_animal_studies_exclude_people() -> None:
    [limit], notes = limit_terms(Filters(design=("animal",)), {}, ANIMALS)
    assert write_pubmed(limit).endswith(" OR (Animals[mh:noexp] NOT Humans[mh:noexp])")
    assert notes == ()
    assert {"animals", "cohort studies"} <= set(design_headings(("cohort",)))
