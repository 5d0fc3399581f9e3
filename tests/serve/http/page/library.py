"""Small service with enough citations to fill a reference list, and a vocabulary."""

from __future__ import annotations

from pathlib import Path

from cluster.records import Author
from cluster.text.vocabulary import Concept, Vocabulary
from serve.question.example_questions import example_questions
from serve.question.understand_question import Expander
from tests.serve.service import SmallService
from tests.serve.small_graph import NamedThings, parts_of
from tests.small_index import citation
from tests.vocabulary_file import write_each

EXAMPLE = example_questions()[0]
TRIAL = ("Randomized Controlled Trial",)
JOURNAL = {
    "journal": "The New England journal of medicine",
    "journal_abbreviation": "N Engl J Med",
    "volume": "358",
    "issue": "8",
    "authors": tuple(Author(name, "", "AB") for name in ("Doe", "Garcia", "Nguyen", "Okafor")),
}
# From 2012 to 2023; every second one is a randomised trial.
ABOUT_METFORMIN = [
    citation(
        number,
        f"Metformin activates AMPK in the liver of group {number}.",
        f"Metformin, metabolism and AMPK in group {number}",
        year=2011 + number,
        pages=f"{number}01-9",
        doi=f"10.1000/group.{number}",
        publication_types=TRIAL if number % 2 else (),
        **JOURNAL,
    )
    for number in range(1, 13)
]
ANSWERS_AN_EXAMPLE = [
    citation(pmid, "Baloxavir is effective against influenza.", "Baloxavir")
    for pmid in EXAMPLE.pmids
]
LIBRARY = [*ABOUT_METFORMIN, *ANSWERS_AN_EXAMPLE]


def concept(id_: str, name: str, citations: int) -> Concept:
    return Concept(id_, "mesh", name, (name,), (1,), citations)


NAMES = [concept("mesh:D008687", "Metformin", 12), concept("mesh:D008690", "Metabolism", 3)]


def library_service(folder: Path) -> SmallService:
    """Return a service over LIBRARY with the vocabulary NAMES."""
    service = SmallService(folder / "index", citations=LIBRARY)
    write_each(NAMES, folder / "vocabulary.arrow")
    parts = parts_of(service._answerer)
    collection = parts["expander"]._collection
    vocabulary = Vocabulary.open(folder / "vocabulary.arrow")
    parts["expander"] = Expander(NamedThings(()), collection, vocabulary)
    return service
