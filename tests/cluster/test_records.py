"""Citations as records, in Arrow tables and in pickles."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from cluster.answers import Evidence
from cluster.arrow_records import CITATION_SCHEMA, RowTaker, citation_from_row, citations_to_table
from cluster.errors import CiteRayError, IndexFormatError, InputError, LLMError, SourceError
from cluster.index.filters.write_filters import FilterEncoder
from cluster.records import (
    Author,
    Chemical,
    Citation,
    Link,
    MeshHeading,
    OtherAbstract,
    Passage,
    Section,
)
from tests.small_index import citation

FULL = Citation(
    pmid=90000001,
    version=2,
    title="Metformin & <the> AMPK",
    sections=(Section("BACKGROUND", "One."), Section("", "Two.")),
    other_abstracts=(OtherAbstract("spa", "Publisher", (Section("", "Uno."),)),),
    authors=(Author("King", "Martin Luther Jr", "ML Jr"), Author(collective="A Study Group")),
    journal="J",
    journal_abbreviation="J.",
    volume="12 Suppl 1",
    issue="3-4",
    pages="e12",
    year=2020,
    month=3,
    languages=("eng", "spa"),
    publication_types=("Journal Article",),
    mesh=(MeshHeading("D008687", "Metformin", True),),
    chemicals=(Chemical("D008687", "Metformin"),),
    keywords=("AMPK",),
    doi="10.1/x",
    pmcid="PMC1",
    links=(Link("ErratumIn", None, "J. 2021"), Link("CommentIn", 5, "")),
    references=(90000007, 3),
    source="a.xml.gz",
    position=7,
)


def test_canonical_texts_are_joined_from_sections() -> None:
    assert FULL.abstract == "BACKGROUND: One. Two."
    citation = Citation(pmid=1, title="[Not Available].", sections=(Section("", "Text."),))
    assert citation.search_text == "Text."
    assert Passage(12, "abstract", 3, 9, "abcdef").id == "12:abstract:3-9"


def records_with(kinds: list[str], types: list[str], titles: list[str]) -> list[Citation]:
    """Return a record for each kind of link, publication type and title."""
    linked = [Citation(1, links=(Link(kind, 2, ""),)) for kind in kinds]
    typed = [Citation(1, publication_types=(name,)) for name in types]
    return [*linked, *typed, *(Citation(1, title=title) for title in titles)]


def test_retraction_is_read_from_links_types_and_titles() -> None:
    retracted = records_with(
        ["RetractionIn", "RetractedandRepublishedIn"],
        ["Retracted Publication"],
        [
            "RETRACTED: Moonstone for gout.",
            "[RETRACTED] Moonstone.",
            "Retracted Article: Moonstone.",
            "WITHDRAWN: Sunstone for cough.",
        ],
    )
    others = records_with(
        ["RetractionOf", "RetractedandRepublishedFrom", "ErratumIn", "PartialRetractionIn",
         "ExpressionOfConcernIn"],
        ["Retraction of Publication", "Retraction Notice"],
        [
            "Retracted articles: a survey.",
            "Reasons for RETRACTED: labels.",
            "Withdrawn patients in trials.",
        ],
    )  # fmt: skip
    assert [record for record in retracted if not record.retracted] == []
    assert [record for record in others if record.retracted] == []
    [batch] = citations_to_table([*retracted, *others]).to_batches()
    flags = FilterEncoder().encode(batch).column("flags").to_pylist()
    assert flags == [1] * len(retracted) + [0] * len(others)


def test_retraction_notices_and_retracted_articles_are_not_evidence() -> None:
    """The title of a notice repeats the claim that it retracts."""
    notices = (
        Citation(1, publication_types=("Retraction of Publication",)),
        Citation(1, publication_types=("Retraction Notice",)),
        Citation(1, links=(Link("RetractionOf", 2, ""),)),
    )
    for record in (*notices, Citation(1, publication_types=("Retracted Publication",))):
        assert Evidence.of(Passage(1, "title", 0, 1, "A"), record, {}) is None
    assert [record.is_retraction for record in notices] == [True, True, True]
    assert not Citation(1, links=(Link("ErratumFor", 2, ""),)).is_retraction


def test_rows_of_older_indexes_have_no_authors() -> None:
    new = ["authors", "journal_abbreviation", "volume", "issue", "pages"]
    (row,) = citations_to_table([FULL]).drop_columns(new).to_pylist()
    citation = citation_from_row(row)
    assert (citation.authors, citation.pages, citation.journal) == ((), "", "J")


@pytest.mark.parametrize("citation", [FULL, Citation(pmid=1)])
def test_citation_survives_an_arrow_round_trip(citation: Citation) -> None:
    table = citations_to_table([citation])
    assert table.schema == CITATION_SCHEMA
    assert citation_from_row(table.to_pylist()[0]) == citation


@pytest.mark.parametrize(
    "kind", [CiteRayError, InputError, SourceError, IndexFormatError, LLMError]
)
def test_errors_survive_pickling(kind: type[CiteRayError]) -> None:
    error = pickle.loads(pickle.dumps(kind("a sentence")))
    assert type(error) is kind
    assert str(error) == "a sentence"


CITATIONS = [citation(pmid, f"Abstract {pmid}.", f"Title {pmid}") for pmid in range(1, 11)]
CHUNKED = pa.concat_tables(
    [citations_to_table(CITATIONS[begin:end]) for begin, end in ((0, 3), (3, 3), (3, 4), (4, 10))]
)


@pytest.mark.parametrize("rows", [[], [0], [9, 0, 3], [3, 3, 2, 2], list(range(10))])
def test_row_taker_keeps_the_requested_order(rows: list[int]) -> None:
    wanted = np.asarray(rows, np.int64)
    assert RowTaker(CHUNKED).take(wanted) == CHUNKED.take(pa.array(wanted))


def test_row_taker_selects_columns() -> None:
    found = RowTaker(CHUNKED).take(np.asarray([4]), ["title", "pmid"])
    assert found.to_pylist() == [{"title": "Title 5", "pmid": 5}]
