from __future__ import annotations

import numpy as np
import pytest

from cluster.index.terms.collection import CollectionTerms
from cluster.text.analysis import analyse
from cluster.text.vocabulary import Concept, Vocabulary
from serve.question.correct_spelling import Speller, edit_distance
from serve.question.expand_question import VocabularyRecogniser
from serve.question.understand_question import Expander, Heading
from tests.small_index import citation, make_index
from tests.vocabulary_file import write_each

TEXTS = [
    "Metformin lowers glucose in diabetes mellitus.",
    "Hypertension is treated with lisinopril.",
    "Dabigatran and warfarin are anticoagulants for atrial fibrillation.",
]


def concept(id_: str, *names: str, citations: int = 0) -> Concept:
    return Concept(id_, "mesh", names[0], names, (1,) * len(names), citations)


CONCEPTS = [
    concept("mesh:D008687", "Metformin", "metformin hydrochloride", citations=7),
    concept("mesh:D006973", "Hypertension", "high blood pressure", citations=9),
    concept("mesh:D003920", "Diabetes Mellitus", citations=3),
    concept("mesh:D009999", "Metallothionein", citations=0),
    concept("mesh:C000001", "Warfarin", citations=5),
    concept("kw:x", "Zurampic", citations=2),
]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Expander:
    folder = tmp_path_factory.mktemp("words")
    corpus = [citation(n, TEXTS[n % 3]) for n in range(1, 31)]
    manifest = make_index(folder / "index", corpus)
    write_each(CONCEPTS, folder / "vocabulary.arrow")
    vocabulary = Vocabulary.open(folder / "vocabulary.arrow")
    terms = CollectionTerms.open(folder / "index", manifest)
    return Expander(VocabularyRecogniser(vocabulary), terms, vocabulary)


def test_only_misspelt_words_are_corrected(words: Expander) -> None:
    meant: dict[str, str | None] = {
        "Does metfromin lower glucose?": "Does metformin lower glucose?",
        "hypertnesion and metformn": "hypertension and metformin",
        "Hipertension treated how?": "Hypertension treated how?",
        "warfarrin": "warfarin",
        # Known words, names, and words that are far from any other.
        "Does metformin lower glucose?": None,
        "Is Zurampic a brand of the vocabulary?": None,
        "METFROMIN": None,
        "metformin1": None,
        "Which of the proteins XYZ binds?": None,
        "metf": None,
    }
    assert {typed: words.did_you_mean(typed) for typed in meant} == meant


def test_rare_word_is_corrected_by_a_far_more_common_one() -> None:
    terms = ["metformin", "metfromin"]
    counts = np.array([50_000, 20])
    held = dict(zip(terms, counts.tolist(), strict=True))
    speller = Speller(terms, counts, [], lambda term: held.get(term, 0), 38_000_000)
    assert speller.correct("metfromin") == "metformin"
    assert analyse("metfromin") == ["metfromin"]


def test_edit_distance_counts_transpositions_once() -> None:
    # Beyond the limit of 2, the distance is 3.
    distances = {("ab", "ab"): 0, ("ab", "ba"): 1, ("abc", "ac"): 1, ("abc", "xyz"): 3}
    distances["kitten", "sitting"] = 3
    assert {pair: edit_distance(*pair, 2) for pair in distances} == distances


def test_suggestions_are_ordered_by_frequency(words: Expander) -> None:
    found = words.suggest("met", 10)
    # No citation mentions metallothionein, so it is not suggested.
    assert [(s.name, s.concept, s.citations) for s in found] == [("Metformin", "Metformin", 7)]
    assert [s.name for s in words.suggest("Diabetes m", 10)] == ["Diabetes Mellitus"]
    assert [s.heading for s in words.suggest("met", 10, headings=True)] == ["D008687"]
    assert words.suggest("zzz", 10) == []
    assert words.suggest("?", 10) == []


def test_headings_are_mesh_descriptors(words: Expander) -> None:
    found = words.headings(["metformin", "High blood pressure", "warfarin", "nothing"])
    assert found == {
        "metformin": Heading("D008687", "Metformin"),
        "High blood pressure": Heading("D006973", "Hypertension"),
    }


def test_closest_headings_have_citations_in_the_index(words: Expander) -> None:
    assert words.closest_headings("Metfromin") == ("Metformin",)
    assert words.closest_headings("hypertention") == ("Hypertension",)
    # Metallothionein has no citations, and Warfarin is no descriptor here.
    assert "Metallothionein" not in words.closest_headings("metallothionin")
    assert "Warfarin" not in words.closest_headings("warfarrin")
