from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.records import Entity
from serve.answer.names.rank_names import NAME_RANK_LOSS, rank_names, repeats
from serve.answer.read_evidence import ReadCitation
from tests.serve.answer.test_extract_exact import no_one, read, recognise


def ranked(citations: Sequence[ReadCitation], body: str = "Which gene?") -> list[list[str]]:
    return [list(name.names) for name in rank_names(body, citations, recognise)]


def test_score_sums_the_best_mention_of_each_citation() -> None:
    citations = read("TP53, TP53 and BRCA1.", "TP53 is here.", score=0.5)
    first, second = rank_names("Which gene?", citations, recognise)
    assert (first.names, second.names) == (("TP53",), ("BRCA1",))
    assert first.score == pytest.approx(0.5 * 0.9 * (1 + 1 / (1 + NAME_RANK_LOSS)))
    assert second.score == pytest.approx(0.5 * 0.9)
    assert first.share == 0.5


def test_names_are_ranked_by_citations_rank_and_probability() -> None:
    assert ranked(read("TP53 is here.", "BRCA1 is here.", "BRCA1 is there."))[0] == ["BRCA1"]
    assert ranked(read("TP53 is here.", "BRCA1 is here.")) == [["TP53"], ["BRCA1"]]
    unsure = read("TP53 sits here.", names="TP53", score=0.3)
    sure = read("It is caused by BRCA1.", names="BRCA1", score=0.9)
    assert ranked([*unsure, *sure])[0] == ["BRCA1"]


def test_names_that_repeat_the_question_are_left_out() -> None:
    assert ranked(read("BRCA1 causes cancer."), "Which gene causes cancer?") == [["BRCA1"]]
    asked = "Which drug causes cancers of the breast?"
    for name, is_repeated in [("breast cancer", True), ("lung cancer", False), ("?", False)]:
        assert repeats(name, asked) is is_repeated, name


def test_abbreviation_and_long_form_are_one_name() -> None:
    found = read(
        "TP53 is here.",
        "The epidermal growth factor receptor (EGFR) is mutated.",
        "EGFR is mutated.",
    )
    assert ranked(found) == [["EGFR", "epidermal growth factor receptor"], ["TP53"]]
    apart = read("An epidermal growth factor receptor (BRCA1) is here.")
    assert sorted(ranked(apart)) == [["BRCA1"], ["epidermal growth factor receptor"]]


def test_synonyms_of_a_concept_are_one_name() -> None:
    def linked(text: str) -> list[Entity]:
        known = text in ("aspirin", "acetylsalicylic acid")
        return [Entity(text, 0, len(text), "D1", "drug")] if known else []

    citations = read("Take aspirin.", "Take acetylsalicylic acid.", names="aspirin|acetyl.* acid")
    (found,) = rank_names("Which drug?", citations, linked)
    assert sorted(found.names) == ["acetylsalicylic acid", "aspirin"]


def test_names_are_trimmed_and_distinct_ignoring_case() -> None:
    assert ranked(read("MYH7 is mutated and Myh7 too.", names="myh7")) == [["MYH7"]]
    assert ranked(read('It is "TP53".', names='"TP53".')) == [["TP53"]]


def test_overlong_names_are_left_out() -> None:
    assert ranked(read("x" * 101, names="x+")) == []
    assert ranked(read("Cats sleep.")) == []
    assert rank_names("Which gene?", [], no_one) == []
