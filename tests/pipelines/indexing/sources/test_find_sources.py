from pathlib import Path

import pytest

from cluster.errors import InputError
from pipelines.indexing.sources.find_sources import find_sources


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("<PubmedArticleSet/>")
    return folder


def found(*patterns: object) -> list[str]:
    return [p.name for p in find_sources([str(p) for p in patterns])]


def test_folder_yields_its_xml_files(tmp_path: Path) -> None:
    make(tmp_path, "a.xml", "b.xml.gz", "b.xml.gz.md5", "questions.json", "notes.txt")
    make(tmp_path / "deeper", "c.xml")
    assert found(tmp_path) == ["a.xml", "b.xml.gz"]
    assert found(tmp_path / "notes.txt") == ["notes.txt"]


def test_dangling_link_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a.xml")
    (tmp_path / "b.xml").symlink_to(tmp_path / "gone.xml")
    for given in (tmp_path, tmp_path / "*.xml", tmp_path / "b.xml"):
        with pytest.raises(InputError, match=r"b.xml: a symbolic link to \S+gone.xml, which does"):
            found(given)


def test_numbered_files_are_sorted_by_number(tmp_path: Path) -> None:
    names = ["extra25n100.xml", "pubmed26n9.xml", "pubmed26n10.xml", "pubmed26n0011.xml"]
    last = make(tmp_path / "a/deeper", names[3])
    first = make(tmp_path / "z", names[2], names[1], names[0])
    assert found(tmp_path / "**/*.xml") == names
    # Files are sorted across folders; names of another series keep the order of the arguments.
    assert found(last, first) == [*names[1:], names[0]]


def test_file_given_twice_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.xml")
    monkeypatch.chdir(tmp_path)
    assert find_sources([".", "a.xml", str(tmp_path / "*.xml")]) == [tmp_path / "a.xml"]


def test_pattern_without_a_match_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a.xml")
    for missing in ("nowhere", "nothing-*.xml"):
        with pytest.raises(InputError, match="no such file, folder or match") as caught:
            found(tmp_path / "a.xml", tmp_path / missing)
        assert str(tmp_path / missing) in str(caught.value)
    with pytest.raises(InputError, match=r"no \.xml or \.xml\.gz file in this folder"):
        found(make(tmp_path / "texts", "notes.txt"))
    with pytest.raises(InputError, match="no source given"):
        find_sources([])


def test_two_files_with_the_same_name_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "a", "n1.xml")
    make(tmp_path / "b", "n1.xml")
    with pytest.raises(InputError, match=r"two sources are named n1\.xml: .*a/n1.* and .*b/n1"):
        found(tmp_path / "a", tmp_path / "b")


def test_baselines_of_two_years_are_refused(tmp_path: Path) -> None:
    make(tmp_path, "pubmed25n1340.xml.gz", "pubmed26n0001.xml.gz", "own25n0001.xml")
    match = r"pubmed26n0001\.xml\.gz and pubmed25n1340\.xml\.gz are of two years' baselines"
    with pytest.raises(InputError, match=match):
        found(tmp_path)
