import os
from pathlib import Path

import pytest

from cluster.errors import CiteRayError
from cluster.settings.settings import load_settings
from cluster.storage.locations import Location
from pipelines.indexing.staging import plan_build
from pipelines.indexing.staging.plan_build import (
    ExpectedCitations,
    segment_id,
    segment_plan,
    staged_account,
)
from pipelines.indexing.staging.stage_citations import (
    ParsedSource,
    part_files,
    read_account,
    staging_directory,
    write_account,
)
from tests.pipelines.staging import account, stage
from tests.small_index import citation

CITATIONS = [citation(pmid, f"Abstract of {pmid}.") for pmid in range(1, 11)]


def staged(tmp_path: Path) -> tuple[Path, Path]:
    """Return a source file and its complete staging."""
    source = tmp_path / "n1.xml"
    source.write_text("<PubmedArticleSet/>")
    directory = stage(staging_directory(tmp_path / "staging", source), CITATIONS)
    told(directory, source)
    return source, directory


def told(directory: Path, source: Path, **fields: object) -> None:
    found = source.stat()
    as_read = {"bytes": found.st_size, "modified_ns": found.st_mtime_ns, **fields}
    write_account(directory, account("n1.xml", len(CITATIONS), **as_read), [])


@pytest.mark.parametrize("lost", ["part", "account"])
def test_incompletely_staged_source_is_reported(tmp_path: Path, lost: str) -> None:
    source, directory = staged(tmp_path)
    assert staged_account(source, directory).kept == 10
    (part_files(directory)[0] if lost == "part" else directory / "parsed.json").unlink()
    with pytest.raises(CiteRayError, match=r"n1\.xml: not staged to its end; run the same"):
        staged_account(source, directory)


def test_source_changed_during_the_run_is_reported(tmp_path: Path) -> None:
    source, directory = staged(tmp_path)
    os.utime(source, ns=(1, 1))
    told(directory, source)
    with pytest.raises(CiteRayError, match=r"n1\.xml: changed while it was read; run the same"):
        staged_account(source, directory)


def test_expected_citations_are_counted_or_estimated_by_size(tmp_path: Path) -> None:
    source, directory = staged(tmp_path)
    unread = tmp_path / "n2.xml"
    unread.write_bytes(bytes(7_500))
    expected = ExpectedCitations([(source, directory), (unread, tmp_path / "none")])
    assert expected.after("n2.xml", 1) == 7
    assert expected.after("n1.xml", 3) == 17


def test_progress_reads_each_account_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, directory = staged(tmp_path)
    reads: list[Location] = []

    def read(place: Location) -> ParsedSource | None:
        reads.append(place)
        return read_account(place)

    monkeypatch.setattr(plan_build, "read_account", read)
    pending = []
    for number in range(1500):
        link = tmp_path / f"{number}.xml"
        link.symlink_to(source)
        pending.append((link, directory))
    expected = ExpectedCitations(pending)
    for number in range(20_000):
        expected.after(f"{number % 1500}.xml", 1)
    assert len(reads) == 1500


def test_segment_id_does_not_depend_on_build_hardware(tmp_path: Path) -> None:
    on_cpu = load_settings().index
    on_gpu = on_cpu.model_copy(update={"build_gpus": 0.5})
    sources = [account("n1.xml", 10)]
    assert segment_id("build", on_cpu, sources) == segment_id("build", on_gpu, sources)
    plans = [segment_plan("s", tmp_path / "quantiser", 8, chosen) for chosen in (on_cpu, on_gpu)]
    assert [plan.gpus for plan in plans] == [0, 0.5]
