from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import IndexFormatError
from cluster.text.vocabulary import Concept, Vocabulary, normalise
from tests.vocabulary_file import write_each


def concept(ident: str, *names: str, uses: int = 1) -> Concept:
    return Concept(ident, "keyword", names[0], names, (uses,) * len(names), uses)


def written(tmp_path: Path, *concepts: Concept) -> Vocabulary:
    write_each(concepts, tmp_path / "vocabulary.arrow")
    return Vocabulary.open(tmp_path / "vocabulary.arrow")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Type 2 Diabetes", "type-2  diabetes", True),
        ("non\u2010small\u2011cell", "non small cell", True),
        ("Parkinson Disease", "Parkinson\u2019s disease", True),
        ("Huntington 's disease", "Huntington's Diseases", True),
        ("Neoplasms", "neoplasm", True),
        ("Arteries", "artery", True),
        ("TNF-\u03b1", "tnf-alpha", True),
        ("SNPs", "SNP", True),
        ("Leg", "legs", True),
        ("\ufb01brosis", "fibrosis", True),
        ("BRCA1", "brca1", True),
        ("AS", "as", False),
        ("CAT", "cat", False),
        ("CHARMS", "charms", False),
        ("pH", "ph", False),
        ("hepatitis B", "hepatitis C", False),
        ("virus", "viru", False),
        ("mass", "mas", False),
        ("SS", "S", False),
        ("ARTERIES", "ARTERY", False),
    ],
)
def test_normalise_joins_spellings_of_a_name_only(one: str, other: str, is_same: bool) -> None:
    assert (normalise(one) == normalise(other)) is is_same


def test_lookup_finds_concepts_by_every_name(tmp_path: Path) -> None:
    cancer = concept("kw:b", "breast cancer", "BC", "mammary carcinoma")
    scan = concept("abbr:x", "computed axial tomography", "CAT")
    vocabulary = written(tmp_path, concept("kw:a", "asthma"), cancer, scan)
    for name in ("Breast Cancers", "BC", "mammary carcinoma"):
        assert vocabulary.lookup(name) == [cancer]
    # Lookup falls back to lower case, but an everyday word does not match a short form.
    assert [c.id for c in vocabulary.lookup("ASTHMA")] == ["kw:a"]
    for name in ("breast", "breast cancer x", "zzz", "", "cat"):
        assert vocabulary.lookup(name) == []
    assert written(tmp_path).lookup("asthma") == []


def test_most_used_concept_comes_first(tmp_path: Path) -> None:
    rare = concept("abbr:atopic dermatitis", "atopic dermatitis", "AD", uses=3)
    usual = concept("abbr:alzheimer disease", "Alzheimer disease", "AD", uses=9)
    found = written(tmp_path, rare, usual).lookup("AD")
    assert [c.id for c in found] == ["abbr:alzheimer disease", "abbr:atopic dermatitis"]


@pytest.mark.slow
@given(st.sets(st.text(min_size=1, max_size=5).map(normalise).filter(bool), max_size=40))
def test_lookup_finds_any_name(tmp_path_factory: pytest.TempPathFactory, names: set[str]) -> None:
    names = {name for name in names if normalise(name) == name}
    directory = tmp_path_factory.mktemp("vocabulary")
    vocabulary = written(directory, *(concept(f"kw:{name}", name) for name in sorted(names)))
    for name in names:
        assert [c.id for c in vocabulary.lookup(name)] == [f"kw:{name}"]


def test_invalid_vocabulary_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(IndexFormatError, match=r"none\.arrow.*citeray index build"):
        Vocabulary.open(tmp_path / "none.arrow")
    path = tmp_path / "vocabulary.arrow"
    write_each([concept("kw:a", "asthma")], path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(IndexFormatError, match=r"vocabulary\.arrow"):
        Vocabulary.open(path)
    table = pa.table({"key": ["a"]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(IndexFormatError, match=r"format None, this code reads b'1'"):
        Vocabulary.open(path)
