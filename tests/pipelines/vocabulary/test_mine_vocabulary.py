from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import IndexFormatError
from cluster.records import Chemical, Citation, MeshHeading, Section
from cluster.text.vocabulary import Concept, concept_of
from pipelines.vocabulary.assemble_vocabulary import assemble_concepts, write_vocabulary
from pipelines.vocabulary.mine_vocabulary import count_terms, merge_counts, negated, read_counts

T2D = MeshHeading("D003924", "Diabetes Mellitus, Type 2", True)


def citation(
    pmid: int = 1,
    abstract: str = "",
    keywords: tuple[str, ...] = (),
    mesh: tuple[MeshHeading, ...] = (),
    chemicals: tuple[Chemical, ...] = (),
) -> Citation:
    return Citation(
        pmid, sections=(Section("", abstract),), keywords=keywords, mesh=mesh, chemicals=chemicals
    )


def defining(*abstracts: str) -> list[Citation]:
    return [citation(pmid, text) for pmid, text in enumerate(abstracts, start=1)]


def concepts_of(citations: list[Citation]) -> dict[str, Concept]:
    concepts, _ = assemble_concepts(count_terms(citations), [])
    return {c.id: c for c in map(concept_of, concepts.to_pylist())}


def test_terms_of_all_four_kinds_are_counted() -> None:
    chemicals = (Chemical("C1", "Aspirin X"),)
    record = citation(1, "Multiple sclerosis (MS).", ("asthma",), (T2D,), chemicals)
    rows = [tuple(row.values()) for row in count_terms([record]).table.to_pylist()]
    assert rows == [
        ("abbreviation", "multiple sclerosi", "", "Multiple sclerosis", "MS", 1),
        ("chemical", "aspirin x", "C1", "Aspirin X", "", 1),
        ("keyword", "asthma", "", "asthma", "", 1),
        ("mesh", "diabete mellitus, type 2", "D003924", "Diabetes Mellitus, Type 2", "", 1),
    ]


def test_keywords_that_are_not_names_are_ignored() -> None:
    assert len(count_terms([citation(keywords=("", " - ", "x" * 101))])) == 0
    assert len(count_terms([])) == 0


CITATIONS = st.lists(
    st.builds(
        citation,
        abstract=st.sampled_from(
            ["", "Multiple sclerosis (MS).", "Mitral stenosis (MS).", "multiple sclerosis (MS)"]
        ),
        keywords=st.lists(st.sampled_from(["asthma", "Asthma", "MS"]), max_size=2).map(tuple),
        mesh=st.lists(st.just(T2D), max_size=1).map(tuple),
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(CITATIONS, st.lists(st.integers(0, 3), min_size=12, max_size=12), st.randoms())
def test_vocabulary_does_not_depend_on_the_sharding(
    tmp_path_factory: pytest.TempPathFactory,
    citations: list[Citation],
    shards: list[int],
    random: Random,
) -> None:
    directory = tmp_path_factory.mktemp("vocabulary")
    parts = [
        count_terms(c for c, shard in zip(citations, shards, strict=False) if shard == wanted)
        for wanted in range(4)
    ]
    random.shuffle(parts)
    left = merge_counts([merge_counts(parts[:2]), merge_counts(parts[2:])])
    write_vocabulary(left, [], directory / "sharded")
    write_vocabulary(count_terms(citations), [], directory / "whole")
    assert (directory / "sharded").read_bytes() == (directory / "whole").read_bytes()


def test_counts_that_cancel_leave_no_row() -> None:
    before = count_terms([citation(1, keywords=("asthma", "pain")), citation(2, mesh=(T2D,))])
    gone = negated(count_terms([citation(1, keywords=("asthma", "pain"))]))
    after = merge_counts([gone, before])
    assert after.table.equals(count_terms([citation(2, mesh=(T2D,))]).table)


def test_counts_do_not_depend_on_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    citations = [citation(n, keywords=(f"term {n % 3}", "pain"), mesh=(T2D,)) for n in range(9)]
    at_once = count_terms(citations)
    monkeypatch.setattr("pipelines.vocabulary.mine_vocabulary._CITATIONS_A_BATCH", 2)
    monkeypatch.setattr("pipelines.vocabulary.mine_vocabulary._FIRST_MERGE_ROWS", 1)
    assert count_terms(citations).table.equals(at_once.table)


def test_damaged_term_counts_raise_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "counts.arrow").write_bytes(b"no arrow")
    with pytest.raises(IndexFormatError, match=r"counts\.arrow.*delete it"):
        read_counts(tmp_path / "counts.arrow")
    write_vocabulary(count_terms([]), [], tmp_path / "vocabulary.arrow")
    with pytest.raises(IndexFormatError, match=r"not term counts.*'concept'"):
        read_counts(tmp_path / "vocabulary.arrow")


def test_short_form_keeps_long_forms_above_both_thresholds() -> None:
    common, rare = "multiple sclerosis (MS) hurts", "mitral stenosis (MS) hurts"
    found = concepts_of(defining(*[common] * 5, *[rare] * 2))
    assert {ident: c.citations for ident, c in found.items()} == {"abbr:multiple sclerosi": 5}
    found = concepts_of(defining(*[common] * 7, *[rare] * 3))
    assert set(found) == {"abbr:multiple sclerosi", "abbr:mitral stenosi"}
    assert concepts_of(defining(common)) == {}


def test_plural_short_forms_are_counted_with_the_singular() -> None:
    found = concepts_of(
        defining("circular RNAs (circRNAs) are", "a circular RNA (circRNA) is a ring")
    )
    assert found["abbr:circular rna"].names == ("circular RNA", "circRNA")
