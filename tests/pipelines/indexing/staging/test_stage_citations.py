"""Staged citations, and whether the staging of a source is complete."""

import os
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from cluster.errors import CiteRayError, InputError
from cluster.index.write_segment import EMBEDDED_SCHEMA
from cluster.settings.settings import load_settings
from pipelines.indexing.staging import plan_build
from pipelines.indexing.staging.embed_passages import embed_citations, split_citations
from pipelines.indexing.staging.plan_build import (
    ExpectedCitations,
    segment_id,
    segment_plan,
    staged_account,
)
from pipelines.indexing.staging.stage_citations import (
    PARSED,
    ParsedSource,
    complete_account,
    part_files,
    read_account,
    read_part,
    staged_dimensions,
    staged_positions,
    staging_directory,
    write_account,
    write_part,
)
from tests.pipelines.staging import SPLITTER, account, stage
from tests.small_index import DIMENSIONS, citation, embed_words

CITATIONS = [citation(pmid, f"Abstract of {pmid}.", f"Title {pmid}") for pmid in range(1, 21)]


def account_of(source: Path) -> ParsedSource:
    found = source.stat()
    as_read = {"bytes": found.st_size, "modified_ns": found.st_mtime_ns}
    return account("n1.xml", len(CITATIONS), **as_read)


def staged_source(tmp_path: Path) -> tuple[Path, Path]:
    """Return a source file and its complete staging."""
    source = tmp_path / "n1.xml"
    source.write_text("<PubmedArticleSet/>")
    directory = stage(staging_directory(tmp_path / "staging", source), CITATIONS)
    write_account(directory, account_of(source), [])
    return source, directory


def test_local_rows_are_memory_mapped(tmp_path: Path) -> None:
    (part,) = part_files(stage(tmp_path, CITATIONS, shards=1))
    before = pa.total_allocated_bytes()
    for columns in (None, ("pmid", "vectors")):
        batch = read_part(part, 0, columns)
        assert batch.schema.names == list(columns or EMBEDDED_SCHEMA.names)
        assert pa.total_allocated_bytes() == before


def test_rows_in_two_parts_are_counted_once(tmp_path: Path) -> None:
    assert staged_positions(tmp_path / "none").tolist() == []
    directory = stage(tmp_path / "n1", CITATIONS, copies=3)
    assert len(part_files(directory)) == 3
    assert staged_positions(directory).tolist() == list(range(20))
    # A part that is written again replaces the first.
    assert len(part_files(stage(tmp_path / "n1", CITATIONS))) == 3


def test_many_runs_are_split_into_parts_with_valid_names(tmp_path: Path) -> None:
    sparse = [replace(c, source="n1", position=3 * n) for n, c in enumerate(CITATIONS)]
    write_part(embed_citations(split_citations(sparse, SPLITTER), embed_words, None), tmp_path, 1)
    assert all(len(part.name) < 200 for part in part_files(tmp_path))
    assert staged_positions(tmp_path).tolist() == list(range(0, 60, 3))
    parts = [read_part(part, 0).column("pmid").to_pylist() for part in part_files(tmp_path)]
    assert sorted(pmid for part in parts for pmid in part) == list(range(1, 21))


def test_unfinished_part_is_ignored(tmp_path: Path) -> None:
    table = embed_citations(split_citations(CITATIONS, SPLITTER), embed_words, None)
    with pytest.raises(pa.ArrowInvalid):
        write_part(table.drop_columns("codes"), tmp_path, shards=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["", '{"name": "n1.xml"', '{"name": "n1.xml", "shoe": 1}'])
def test_damaged_account_is_ignored(tmp_path: Path, damage: str) -> None:
    assert read_account(tmp_path) is None
    (tmp_path / PARSED).write_text(damage)
    assert read_account(tmp_path) is None


@pytest.mark.parametrize("change", ["nothing", "bytes", "time", "part", "error"])
def test_incompletely_staged_source_is_read_again(tmp_path: Path, change: str) -> None:
    source, directory = staged_source(tmp_path)
    before = source.stat()
    if change == "bytes":
        source.write_text("<PubmedArticleSet></PubmedArticleSet>")
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "time":
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    elif change == "part":
        part_files(directory)[0].unlink()
    whole = read_account(directory)
    assert whole is not None
    if change == "error":
        write_account(directory, whole.model_copy(update={"error": "truncated"}), [])
    assert complete_account(directory, source) == (whole if change == "nothing" else None)


def test_dimensions_are_read_from_the_first_vectors(tmp_path: Path) -> None:
    textless = stage(tmp_path / "a", [citation(1, "")])
    assert staged_dimensions([textless, stage(tmp_path / "b", CITATIONS)]) == DIMENSIONS
    with pytest.raises(InputError, match="no citation with a title or an abstract"):
        staged_dimensions([textless])


@pytest.mark.parametrize("lost", ["part", "account", "source"])
def test_incompletely_staged_or_changed_source_is_reported(tmp_path: Path, lost: str) -> None:
    source, directory = staged_source(tmp_path)
    assert staged_account(source, directory).kept == 20
    said = "not staged to its end"
    if lost == "source":
        os.utime(source, ns=(1, 1))
        write_account(directory, account_of(source), [])
        said = "changed while it was read"
    else:
        (part_files(directory)[0] if lost == "part" else directory / PARSED).unlink()
    with pytest.raises(CiteRayError, match=rf"n1\.xml: {said}; run the same"):
        staged_account(source, directory)


def test_expected_citations_are_counted_or_estimated_by_size(tmp_path: Path) -> None:
    source, directory = staged_source(tmp_path)
    unread = tmp_path / "n2.xml"
    unread.write_bytes(bytes(7_500))
    expected = ExpectedCitations([(source, directory), (unread, tmp_path / "none")])
    assert expected.after("n2.xml", 1) == 7
    assert expected.after("n1.xml", 3) == 27


def test_progress_reads_each_account_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, directory = staged_source(tmp_path)
    read = Mock(wraps=read_account)
    monkeypatch.setattr(plan_build, "read_account", read)
    links = [tmp_path / f"{number}.xml" for number in range(1500)]
    for link in links:
        link.symlink_to(source)
    expected = ExpectedCitations([(link, directory) for link in links])
    for number in range(20_000):
        expected.after(f"{number % 1500}.xml", 1)
    assert read.call_count == 1500


def test_segment_id_does_not_depend_on_build_hardware(tmp_path: Path) -> None:
    on_cpu = load_settings().index
    on_gpu = on_cpu.model_copy(update={"build_gpus": 0.5})
    sources = [account("n1.xml", 10)]
    assert segment_id("build", on_cpu, sources) == segment_id("build", on_gpu, sources)
    plans = [segment_plan("s", tmp_path / "quantiser", 8, chosen) for chosen in (on_cpu, on_gpu)]
    assert [plan.gpus for plan in plans] == [0, 0.5]
