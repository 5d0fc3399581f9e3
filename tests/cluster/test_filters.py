"""Search filters: validation, and searches that find exactly the passing citations."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cluster.errors import IndexFormatError, InputError
from cluster.index import bm25, vectors
from cluster.index.filters import write_filters
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.index.filters.passing_rows import CACHED_FILTERS
from cluster.index.layout import FILTERS
from cluster.index.manifest import Manifest
from cluster.index.read_segment import SegmentReader
from cluster.index.read_shard import ShardQuery, ShardReader
from cluster.records import Author, Citation, Link, MeshHeading
from cluster.study_design.design_classifier import classify_design
from tests.cluster.test_index import bm25_query, open_shards
from tests.small_index import bag_of_words, citation, make_index

pytestmark = pytest.mark.slow

HUMANS = MeshHeading("D006801", "Humans", False)
ASPIRIN = MeshHeading("D001241", "Aspirin", True)
MUELLER = Author("Müller", "Karl", "KA")
ONEIL = Author("O'Neil", "José Ana", "JA")
GROUP = Author(collective="Consortium for Fever")
TRIAL, COHORT = "Randomized Controlled Trial", MeshHeading("D015331", "Cohort Studies", False)
WORDS = ("aspirin", "fever", "warfarin", "bleeding", "heparin", "statin", "kinase", "trial")


def random_citations(count: int, seed: int = 0) -> list[Citation]:
    """Citations of a few words, with fields that are independent of their texts."""
    chance = random.Random(seed)

    def some(values: Sequence[str], share: float) -> tuple[str, ...]:
        return tuple(value for value in values if chance.random() < share)

    return [
        citation(
            pmid,
            " ".join(chance.choices(WORDS, k=chance.randint(3, 30))) if pmid % 5 else "",
            " ".join(chance.choices(WORDS, k=4)),
            year=chance.choice([None, *range(1990, 2026)]),
            journal=(journal := chance.choice(["The Lancet", "Straße und  Gesundheit", "BMJ", ""])),
            journal_abbreviation={"The Lancet": "Lancet", "BMJ": "BMJ"}.get(journal, ""),
            languages=some(["eng", "fre", "ger"], 0.5),
            publication_types=some([TRIAL, "Review", "Retracted Publication"], 0.3),
            mesh=tuple(m for m in (HUMANS, ASPIRIN, COHORT) if chance.random() < 0.4),
            links=(Link("RetractionIn", 1, ""),) if chance.random() < 0.1 else (),
            authors=tuple(a for a in (MUELLER, ONEIL, GROUP) if chance.random() < 0.2),
        )
        for pmid in range(1, count + 1)
    ]


# Each filter with an equivalent Python function.
MEANINGS: list[tuple[Filters, Callable[[Citation], bool]]] = [
    (Filters(year_from=2010), lambda c: c.year is not None and c.year >= 2010),
    (Filters(year_to=1995), lambda c: c.year is not None and c.year <= 1995),
    (Filters(year_from=2000, year_to=2000), lambda c: c.year == 2000),
    (Filters(journals=("the lancet",)), lambda c: c.journal == "The Lancet"),
    (Filters(journals=("LANCET",)), lambda c: c.journal == "The Lancet"),
    (
        Filters(journals=("BMJ", "STRASSE UND GESUNDHEIT")),
        lambda c: c.journal in ("BMJ", "Straße und  Gesundheit"),
    ),
    (Filters(publication_types=("Review",)), lambda c: "Review" in c.publication_types),
    (Filters(languages=("fre", "ger")), lambda c: bool({"fre", "ger"} & set(c.languages))),
    (Filters(mesh=("D001241",)), lambda c: ASPIRIN in c.mesh),
    (Filters(mesh=("D001241", "D006801")), lambda c: HUMANS in c.mesh or ASPIRIN in c.mesh),
    (
        Filters(mesh=("D001241", "D006801"), all_of=("mesh",)),
        lambda c: {HUMANS, ASPIRIN} <= set(c.mesh),
    ),
    (Filters(authors=("Müller K",)), lambda c: MUELLER in c.authors),
    (Filters(authors=("Mu\u0308ller",)), lambda c: MUELLER in c.authors),
    (Filters(authors=("Jose O'Neil",)), lambda c: ONEIL in c.authors),
    (Filters(authors=("muller", "O'Neil J")), lambda c: {MUELLER, ONEIL} & set(c.authors) != set()),
    (
        Filters(authors=("muller", "oneil"), all_of=("authors",), year_from=2000),
        lambda c: {MUELLER, ONEIL} <= set(c.authors) and (c.year or 0) >= 2000,
    ),
    (Filters(authors=("Consortium for Fever",)), lambda c: GROUP in c.authors),
    (Filters(authors=("Muller KX",)), lambda _: False),
    (Filters(design=("Randomised trial",)), lambda c: TRIAL in c.publication_types),
    (
        Filters(design=("review", "cohort"), year_from=2000),
        lambda c: classify_design(c).name in ("review", "cohort") and (c.year or 0) >= 2000,
    ),
    (Filters(design=("other",)), lambda c: classify_design(c).name == "other"),
    (Filters(design=("guideline",)), lambda _: False),
    (Filters(humans=True), lambda c: HUMANS in c.mesh),
    (Filters(humans=False), lambda c: HUMANS not in c.mesh),
    (Filters(retracted=True), lambda c: c.retracted),
    (Filters(retracted=False), lambda c: not c.retracted),
    (Filters(has_abstract=True), lambda c: bool(c.abstract)),
    (Filters(has_abstract=False), lambda c: not c.abstract),
    (Filters(journals=("Nature",)), lambda _: False),
    (
        Filters(year_from=2001, languages=("eng",), humans=True, retracted=False),
        lambda c: (
            (c.year or 0) >= 2001 and "eng" in c.languages and HUMANS in c.mesh and not c.retracted
        ),
    ),
]


@pytest.fixture(scope="module")
def held() -> list[Citation]:
    return random_citations(400)


@pytest.fixture(scope="module")
def index(held: list[Citation], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Manifest]:
    folder = tmp_path_factory.mktemp("filters") / "index"
    return folder, make_index(folder, held, shards=1)


def find(
    shards: list[ShardReader], manifest: Manifest, filters: Filters, over: str, limit: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the best `limit` PMIDs by vectors and by BM25, with their scores."""
    text = "aspirin bleeding trial"
    query = ShardQuery(
        bag_of_words([text])[0],
        bm25_query(text, shards, manifest, over),
        limit,
        limit,
        over,  # type: ignore[arg-type]
        filters=filters,
    )
    dense, postings = {}, {}
    for part in (shard.search(query) for shard in shards):
        for row, pmid in enumerate(part.pmids.tolist()):
            if part.found_dense[row]:
                dense[pmid] = float(part.dense[row])
            if part.found_bm25[row]:
                postings[pmid] = float(part.bm25[row])
    return best(dense, limit), best(postings, limit)


def best(scores: dict[int, float], limit: int) -> dict[int, float]:
    ordered = sorted(scores, key=lambda pmid: (-round(scores[pmid], 5), pmid))
    return {pmid: scores[pmid] for pmid in ordered[:limit]}


def similar(scores: dict[int, float]) -> list[object]:
    return [pytest.approx(score, rel=1e-4, abs=1e-5) for score in sorted(scores.values())]


@pytest.mark.parametrize("over", ["citations", "passages"])
def test_filtered_search_finds_passing_citations_with_unchanged_scores(
    index: tuple[Path, Manifest], held: list[Citation], over: str, subtests: pytest.Subtests
) -> None:
    shards = open_shards(*index)
    every = find(shards, index[1], NO_FILTERS, over, len(held))
    for filters, meaning in MEANINGS:
        found = find(shards, index[1], filters, over, len(held))
        few = find(shards, index[1], filters, over, 7)
        passing = {c.pmid for c in held if meaning(c)}
        with subtests.test(filters=filters):
            for all_scores, scores, best_scores in zip(every, found, few, strict=True):
                wanted = {pmid: score for pmid, score in all_scores.items() if pmid in passing}
                assert scores == pytest.approx(wanted, rel=1e-5)
                assert sorted(best_scores.values()) == similar(best(scores, 7))


@pytest.mark.parametrize("rows_per_hit", [0, 1 << 40], ids=["drops hits", "asks tantivy"])
@pytest.mark.parametrize("over", ["citations", "passages"])
def test_both_bm25_filter_strategies_agree(
    index: tuple[Path, Manifest], monkeypatch: pytest.MonkeyPatch, rows_per_hit: int, over: str
) -> None:
    usual = [find(open_shards(*index), index[1], f, over, 5)[1] for f, _ in MEANINGS]
    monkeypatch.setattr(bm25, "ROWS_PER_HIT", rows_per_hit)
    assert [find(open_shards(*index), index[1], f, over, 5)[1] for f, _ in MEANINGS] == usual


@pytest.mark.slow
def test_failing_hits_do_not_hide_passing_ones(tmp_path: Path) -> None:
    """The best matches fail the filter, although most citations pass it."""
    citations = [citation(pmid, "aspirin " * 3, languages=("fre",)) for pmid in range(1, 300)]
    citations += [citation(pmid, "heparin", languages=("eng",)) for pmid in range(300, 1500)]
    citations += [citation(1500, "aspirin and more words", languages=("eng",))]
    manifest = make_index(tmp_path, citations, shards=1)
    shards = open_shards(tmp_path, manifest)
    query = bm25_query("aspirin", shards, manifest, "citations")
    [segment] = shards[0].segments
    rows, _ = segment.search_bm25(query, 3, "citations", Filters(languages=("eng",)))
    assert segment.pmids[rows].tolist() == [1500]


@pytest.mark.parametrize("near", [True, False], ids=["near the query", "far from the query"])
def test_filtered_graph_search_has_high_recall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, near: bool
) -> None:
    chance = np.random.default_rng(5)
    raw = chance.standard_normal((1500, 16)).astype(np.float32)
    units = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    empty = vectors.empty_index("flat", 16, 16, 64)
    vectors.save(vectors.build(empty, [units], threads=1), tmp_path / "v.faiss")
    # Make the graph search cheaper than an exact search of the rows that pass, in all cases.
    monkeypatch.setattr(vectors, "SCORED_PER_STEP", 1e-3)
    index = vectors.VectorIndex(tmp_path / "v.faiss", ef_search=32, exact_below=0)
    shared = []
    for query in units[:20]:
        closeness = units @ query
        mask = closeness > 0.3 if near else closeness < -0.3
        rows, scores = index.search_among(query, 10, vectors.RowSelection(mask))
        assert mask[rows].all()
        assert scores.tolist() == pytest.approx(closeness[rows].tolist(), abs=1e-5)
        exact = np.flatnonzero(mask)[np.argsort(-closeness[mask])[:10]]
        shared.append(len(np.intersect1d(rows, exact)) / 10)
    assert np.mean(shared) >= 0.97


def test_dead_citations_are_filtered_out(
    index: tuple[Path, Manifest], held: list[Citation]
) -> None:
    [segment] = open_shards(*index)[0].segments
    english = [c.pmid for c in held if "eng" in c.languages]
    dead = english[::2]
    reader = SegmentReader(segment.opened, np.asarray(dead))
    rows, _ = reader.search_dense(bag_of_words(["aspirin"])[0], 400, Filters(languages=("eng",)))
    assert sorted(reader.pmids[rows].tolist()) == english[1::2]
    # The version without the newer records still finds them.
    rows, _ = segment.search_dense(bag_of_words(["aspirin"])[0], 400, Filters(languages=("eng",)))
    assert sorted(segment.pmids[rows].tolist()) == english


def test_filter_cache_eviction_keeps_results_correct(
    index: tuple[Path, Manifest], held: list[Citation]
) -> None:
    [segment] = open_shards(*index)[0].segments
    for year in [*range(1990, 1990 + CACHED_FILTERS + 5), *range(1990, 1995)]:
        filters = Filters(year_from=year, year_to=year)
        rows, _ = segment.search_dense(bag_of_words(["aspirin"])[0], 400, filters)
        expected = [c.pmid for c in held if c.year == year]
        assert sorted(segment.pmids[rows].tolist()) == expected


def test_missing_filter_columns_are_rejected(held: list[Citation], tmp_path: Path) -> None:
    manifest = make_index(tmp_path, held, shards=1)
    next(tmp_path.rglob(FILTERS)).unlink()
    with pytest.raises(IndexFormatError, match=r"filters\.arrow: missing.*build it again"):
        open_shards(tmp_path, manifest)


def test_segments_without_design_column_read_the_records(
    held: list[Citation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = write_filters.FILTER_SCHEMA
    older = pa.schema([field for field in schema if field.name != "design"])
    with monkeypatch.context() as patch:
        patch.setattr(write_filters, "FILTER_SCHEMA", older)
        patch.setattr(write_filters, "LISTS", [n for n in write_filters.LISTS if n != "design"])
        manifest = make_index(tmp_path, held, shards=1)
    shards = open_shards(tmp_path, manifest)
    for filters, meaning in MEANINGS:
        expected = {c.pmid for c in held if meaning(c)}
        for over in ("citations", "passages"):
            dense, by_words = find(shards, manifest, filters, over, len(held))
            assert dense.keys() == expected, filters
            assert by_words.keys() <= expected, filters


def test_invalid_filters_are_rejected(subtests: pytest.Subtests) -> None:
    for fields, message in [
        ({"year_from": 2021, "year_to": 2020}, r"year_from: 2021 is after .*year_to 2020; swap"),
        ({"year_from": 21}, "year_from: 21 is not a year; give a number from 1000"),
        ({"year_to": True}, "year_to: True is not a year"),
        ({"year_to": "2020"}, "year_to: '2020' is not a year"),
        ({"journals": "BMJ"}, "journals: 'BMJ' is not a list"),
        ({"languages": ("",)}, "languages: '' is not a value"),
        ({"languages": (3,)}, "languages: 3 is not a value"),
        ({"mesh": ("Humans",)}, r"mesh: 'humans' is not the UI .* give one such as D006801"),
        ({"mesh": ["D006801"] * 1001}, "mesh: 1,001 values; give at most 1,000"),
        ({"retracted": "no"}, "retracted: give true or false"),
        ({"humans": 1}, "humans: give true or false"),
        ({"authors": ["..."]}, r"authors: '\.\.\.' is not a name; give one such as Smith J"),
        ({"design": ["placebo"]}, "design: 'placebo' is not a study design; there are: guide"),
        ({"all_of": ["design"]}, "all_of: 'design' is not a list; there are: journals, "),
        ({"all_of": ["years"]}, "all_of: 'years' is not a list; there are: journals, "),
    ]:
        said = rf"filters\.{message}"
        with subtests.test(said=said), pytest.raises(InputError, match=said):
            Filters(**fields)  # type: ignore[arg-type]
