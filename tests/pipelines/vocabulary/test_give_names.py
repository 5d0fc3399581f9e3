from __future__ import annotations

from pathlib import Path

from pipelines.vocabulary.give_names import NameFiles, given_names, with_lexicons
from pipelines.vocabulary.name_headings import GivenName

RELEASE = [
    GivenName("mesh:D006073", "Gout", True),
    GivenName("mesh:D003924", "Diabetes Mellitus, Type 2", True),
    GivenName("mesh:D003924", "NIDDM", False),
    GivenName("mesh:D001249", "Asthma", True),
]


def added(*groups: list[str]) -> list[tuple[str, str]]:
    names = list(with_lexicons(RELEASE, groups))
    assert names[: len(RELEASE)] == RELEASE
    return [(name.concept, name.name) for name in names[len(RELEASE) :]]


def test_lexicon_group_extends_the_concept_whose_name_it_contains() -> None:
    assert added(["gout", "gt", "podagra"]) == [("mesh:D006073", n) for n in ("gout", "podagra")]
    # Headings match in natural word order and in any case.
    found = added(["type 2 diabetes mellitus", "adult-onset diabetes"])
    assert ("mesh:D003924", "adult-onset diabetes") in found


def test_lexicon_group_joins_only_one_concept_by_its_preferred_name() -> None:
    assert added(["niddm", "slow diabetes"]) == []
    assert added(["gout", "asthma", "wheezing joints"]) == []
    assert added(["unheard of", "never heard of"]) == []


def test_given_names_reads_release_and_lexicon_files(tmp_path: Path) -> None:
    release, lexicon = tmp_path / "mesh.csv", tmp_path / "names.tsv"
    release.write_text("id,subject\nhttp://id.nlm.nih.gov/mesh/D006073,Gout\n", encoding="utf-8")
    lexicon.write_text("gout\tpodagra\n", encoding="utf-8")
    names = given_names(NameFiles(release, (lexicon,)))
    assert [name.name for name in names] == ["Gout", "gout", "podagra"]
    assert list(given_names(NameFiles(None, (lexicon,)))) == []
