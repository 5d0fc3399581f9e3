from pathlib import Path

import pytest

from cluster.errors import InputError
from pipelines.build.find_sources import find_sources


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("<PubmedArticleSet/>")
    return folder


def found(*patterns: object) -> list[str]:
    return [p.name for p in find_sources([str(p) for p in patterns])]


def test_a_folder_gives_its_xml_files_and_nothing_else(tmp_path: Path) -> None:
    make(tmp_path, "a.xml", "b.xml.gz", "b.xml.gz.md5", "questions.json", "notes.txt")
    make(tmp_path / "deeper", "c.xml")
    assert found(tmp_path) == ["a.xml", "b.xml.gz"]


def test_files_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    make(tmp_path, "pubmed26n10.xml", "pubmed26n9.xml", "extra25n100.xml", "pubmed26n0011.xml")
    assert found(tmp_path) == [
        "extra25n100.xml",
        "pubmed26n9.xml",
        "pubmed26n10.xml",
        "pubmed26n0011.xml",
    ]


def test_the_order_is_that_of_names_not_of_arguments_or_folders(tmp_path: Path) -> None:
    baseline = make(tmp_path / "z-baseline", "n1.xml")
    updates = make(tmp_path / "a-updates", "n2.xml")
    assert found(updates, baseline) == ["n1.xml", "n2.xml"]


def test_a_file_named_twice_is_read_once_and_by_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a.xml")
    monkeypatch.chdir(tmp_path)
    assert find_sources([".", "a.xml", str(tmp_path / "*.xml")]) == [tmp_path / "a.xml"]


def test_a_glob_reaches_into_folders(tmp_path: Path) -> None:
    make(tmp_path / "x", "n1.xml")
    make(tmp_path / "y/z", "n2.xml")
    assert found(tmp_path / "**/*.xml") == ["n1.xml", "n2.xml"]


def test_a_file_named_outright_may_have_any_suffix(tmp_path: Path) -> None:
    make(tmp_path, "efetch.txt")
    assert found(tmp_path / "efetch.txt") == ["efetch.txt"]


@pytest.mark.parametrize("missing", ["nowhere", "nothing-*.xml"])
def test_a_pattern_without_a_match_is_named(tmp_path: Path, missing: str) -> None:
    make(tmp_path, "a.xml")
    with pytest.raises(InputError, match="no such file, folder or match") as caught:
        found(tmp_path / "a.xml", tmp_path / missing)
    assert str(tmp_path / missing) in str(caught.value)


def test_a_folder_without_xml_says_what_it_lacks(tmp_path: Path) -> None:
    make(tmp_path, "notes.txt")
    with pytest.raises(InputError, match=r"no \.xml or \.xml\.gz file in this folder"):
        found(tmp_path)


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "a", "n1.xml")
    make(tmp_path / "b", "n1.xml")
    with pytest.raises(InputError, match=r"two sources are named n1\.xml: .*a/n1.* and .*b/n1"):
        found(tmp_path / "a", tmp_path / "b")


def test_files_of_two_years_baselines_are_refused(tmp_path: Path) -> None:
    make(tmp_path, "pubmed25n1340.xml.gz", "pubmed26n0001.xml.gz", "own25n0001.xml")
    match = r"pubmed26n0001\.xml\.gz and pubmed25n1340\.xml\.gz are of two years' baselines"
    with pytest.raises(InputError, match=match):
        found(tmp_path)


def test_no_source_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no source given"):
        find_sources([])
