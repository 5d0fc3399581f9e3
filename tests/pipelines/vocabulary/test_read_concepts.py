"""Small releases of concepts in their real formats, intact and damaged.

MeSH: https://www.nlm.nih.gov/mesh/xml_data_elements.html. UMLS: its Reference Manual, chapter 3,
tables of MRCONSO.RRF and MRSTY.RRF, https://www.ncbi.nlm.nih.gov/books/NBK9685/.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from cluster.errors import InputError
from pipelines.vocabulary.give_names import NameFiles, given_names, with_lexicons
from pipelines.vocabulary.name_headings import GivenName
from pipelines.vocabulary.read_concepts import MAX_NAME_CHARS, read_concepts

DOCTYPE = (
    '<?xml version="1.0"?>\n<!DOCTYPE {0}RecordSet SYSTEM '
    '"https://www.nlm.nih.gov/databases/dtd/nlm{0}recordset_20260101.dtd">\n'
)


def term(string: str, permuted: str = "N") -> str:
    return (
        f'<Term ConceptPreferredTermYN="N" IsPermutedTermYN="{permuted}" LexicalTag="NON" '
        f'RecordPreferredTermYN="N"><TermUI>T0001</TermUI><String>{string}</String></Term>'
    )


def descriptor(ui: str, name: str, *terms: str) -> str:
    """Return a preferred concept, and a narrower concept for each term after the first."""
    concepts = "".join(
        f'<Concept PreferredConceptYN="{"N" if number else "Y"}"><ConceptUI>M000{number}'
        f"</ConceptUI><ConceptName><String>{name}</String></ConceptName>"
        f"<TermList>{one}</TermList></Concept>"
        for number, one in enumerate(terms)
    )
    return (
        f'<DescriptorRecord DescriptorClass="1"><DescriptorUI>{ui}</DescriptorUI>'
        f"<DescriptorName><String>{name}</String></DescriptorName><AllowableQualifiersList/>"
        f"<ConceptList>{concepts}</ConceptList></DescriptorRecord>"
    )


def descriptors(*records: str) -> str:
    return (
        DOCTYPE.format("Descriptor")
        + f'<DescriptorRecordSet LanguageCode="eng">{"".join(records)}</DescriptorRecordSet>'
    )


SUPPLEMENT = (
    DOCTYPE.format("Supplemental")
    + """<SupplementalRecordSet LanguageCode="eng">
<SupplementalRecord SCRClass="1">
  <SupplementalRecordUI>C000002</SupplementalRecordUI>
  <SupplementalRecordName><String>bevonium</String></SupplementalRecordName>
  <HeadingMappedToList><HeadingMappedTo><DescriptorReferredTo>
    <DescriptorUI>*D001561</DescriptorUI>
    <DescriptorName><String>Benzilates</String></DescriptorName>
  </DescriptorReferredTo></HeadingMappedTo></HeadingMappedToList>
  <ConceptList><Concept PreferredConceptYN="Y"><ConceptUI>M0030450</ConceptUI>
    <ConceptName><String>bevonium</String></ConceptName>
    <TermList>
      <Term ConceptPreferredTermYN="Y" IsPermutedTermYN="N" LexicalTag="NON"
        RecordPreferredTermYN="Y"><TermUI>T1</TermUI><String>bevonium</String></Term>
      <Term ConceptPreferredTermYN="N" IsPermutedTermYN="N" LexicalTag="NON"
        RecordPreferredTermYN="N"><TermUI>T2</TermUI><String>piribenzil</String></Term>
    </TermList></Concept></ConceptList>
</SupplementalRecord></SupplementalRecordSet>"""
)
T2D = descriptor(
    "D003924",
    "Diabetes Mellitus, Type 2",
    term("Diabetes Mellitus, Type 2") + term("Type 2 Diabetes Mellitus", "Y") + term("NIDDM"),
    term("Maturity-Onset Diabetes"),
)


def atom(
    cui: str,
    name: str,
    source: str = "SNOMEDCT_US",
    term_type: str = "SY",
    code: str = "44054006",
    language: str = "ENG",
    suppress: str = "N",
    usual: str = "S|L1|VO|S1|Y",
) -> str:
    """Return a row of MRCONSO.RRF; `usual` has the columns TS, LUI, STT, SUI and ISPREF."""
    before = f"{cui}|{language}|{usual}|A1|||{code}"
    return f"{before}|{source}|{term_type}|{code}|{name}|9|{suppress}|256|\n"


PREFERRED = "P|L1|PF|S1|Y"


def names(path: Path, *types: str) -> list[tuple[str, str, bool]]:
    return [tuple(name) for name in read_concepts(path, types)]


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_descriptor_has_its_name_and_all_entry_terms(tmp_path: Path) -> None:
    assert names(written(tmp_path, "desc2026.xml", descriptors(T2D))) == [
        ("mesh:D003924", "Diabetes Mellitus, Type 2", True),
        ("mesh:D003924", "NIDDM", False),
        ("mesh:D003924", "Maturity-Onset Diabetes", False),
    ]


def test_folder_yields_the_concepts_of_all_its_files_also_gzipped_ones(tmp_path: Path) -> None:
    written(tmp_path, "desc2026.xml", descriptors(T2D))
    # Compression is detected by the content.
    for name in ("supp2026.gz", "supp2027.xml"):
        (tmp_path / name).write_bytes(gzip.compress(SUPPLEMENT.encode()))
    written(tmp_path, "README.txt", "of NLM")
    supplement = [("mesh:C000002", "bevonium", True), ("mesh:C000002", "piribenzil", False)]
    assert names(tmp_path)[3:] == supplement * 2


def test_cui_in_mesh_becomes_the_heading_with_names_of_all_sources(tmp_path: Path) -> None:
    rows = [
        atom("C0011860", "Type II diabetes", usual=PREFERRED),
        atom("C0011860", "Diabetes Mellitus, Type 2", "MSH", "MH", "D003924"),
        atom("C0011860", "DIABETES MELL TYPE 02", "MSH", "DEV", "D003924"),
        atom("C0011860", "diab\u00e8te de type 2", "MSHFRE", "MH", "D003924", language="FRE"),
        atom("C0011860", "Diabetes mellitus type II NOS", suppress="O"),
    ]
    assert names(written(tmp_path, "MRCONSO.RRF", "".join(rows))) == [
        ("mesh:D003924", "Diabetes Mellitus, Type 2", True),
        ("mesh:D003924", "Type II diabetes", False),
    ]


def test_narrower_cui_adds_names_but_no_preferred_name(tmp_path: Path) -> None:
    rows = [
        atom("C0342276", "MODY", "MSH", "ET", "D003924"),
        atom("C0342276", "Maturity-Onset Diabetes", "MSH", "PEP", "D003924"),
    ]
    assert sorted(names(written(tmp_path, "MRCONSO.RRF", "".join(rows)))) == [
        ("mesh:D003924", "MODY", False),
        ("mesh:D003924", "Maturity-Onset Diabetes", False),
    ]


def test_cui_outside_mesh_is_a_concept_with_its_preferred_name_first(tmp_path: Path) -> None:
    rows = [
        atom("C0000001", "ear, red"),
        atom("C0000001", "Red ear syndrome", usual=PREFERRED),
        atom("C0000001", "x" * (MAX_NAME_CHARS + 1)),
    ]
    assert names(written(tmp_path, "MRCONSO.RRF", "".join(rows))) == [
        ("umls:C0000001", "Red ear syndrome", True),
        ("umls:C0000001", "ear, red", False),
    ]


def meta(folder: Path) -> Path:
    """Return a META folder: a disease, an idea, an idea in MeSH, and an untyped concept."""
    mesh_idea = atom("C0000003", "Time", "MSH", "MH", "D013995")
    rows = [atom("C0000001", "Red ear syndrome"), atom("C0000002", "Whenever"), mesh_idea]
    packed = gzip.compress("".join([*rows, atom("C0000004", "untyped")]).encode())
    (folder / "MRCONSO.RRF.gz").write_bytes(packed)
    types = ["C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|\n"]
    types += ["C0000001|T033|A2.2|Finding|AT2|256|\n"]
    types += [f"C000000{n}|T079|A2.1.1|Temporal Concept|AT3|256|\n" for n in (2, 3)]
    written(folder, "MRSTY.RRF", "".join(types))
    return folder


def test_umls_types_filter_concepts_but_not_headings(tmp_path: Path) -> None:
    found = [concept for concept, _, _ in names(meta(tmp_path), "T047")]
    assert found == ["umls:C0000001", "mesh:D013995"]
    assert len(names(tmp_path)) == 4
    # Without MRSTY.RRF, types are not filtered.
    (tmp_path / "MRSTY.RRF").unlink()
    assert len(names(tmp_path, "T047")) == 4


def refusal(path: Path, *types: str) -> str:
    with pytest.raises(InputError) as refused:
        names(path, *types)
    return str(refused.value).replace(f"{path.parent}/", "")


HEADINGS = "id,scheme,subject\nhttps://x/D001249,MeSH,Asthma\n"
WRONG = [
    ("x.xml", "<?xml version='1.0'?>\n<PubmedArticleSet><Pubm", "XML, but no DescriptorRecordSet"),
    *(
        ("desc.xml", descriptors(T2D, descriptor(ui, name)), "expected a DescriptorUI such as")
        for ui, name in (("Q000008", "x"), ("", "x"), ("D003924", " "))
    ),
    ("mesh.csv", "ui,name\nD1,x\n", "no column id or subject"),
    *(
        ("mesh.csv", f"{HEADINGS}{row}\n", "expected an")
        for row in ("nonsense,MeSH,Asthma", "https://x/D003924,MeSH,", "D003924")
    ),
    *(
        ("MRCONSO.RRF", atom("C0000001", "x") + row, "expected 18 columns parted by |")
        for row in ("C0000002|ENG|P\n", "D000002" + atom("C0000002", "x")[8:], "\n")
    ),
    (
        "MRCONSO.RRF",
        "".join(atom(f"C000000{n}", "x") for n in (1, 2, 1)),
        "the rows of C0000001 come after those of C0000002",
    ),
]
PLACES = {"desc.xml": ", record 2", "MRCONSO.RRF": ", line 2", "mesh.csv": ", line 3"}


@pytest.mark.parametrize(("file", "text", "said"), WRONG)
def test_invalid_release_raises_an_error_with_its_line(
    tmp_path: Path, file: str, text: str, said: str
) -> None:
    place = PLACES[file] if said.startswith("expected") else ""
    assert refusal(written(tmp_path, file, text)).startswith(f"{file}{place}: {said}")


def test_truncated_xml_raises_after_the_complete_records(tmp_path: Path) -> None:
    path = written(tmp_path, "desc.xml", descriptors(T2D, T2D)[:-200])
    found = read_concepts(path)
    assert next(found) == GivenName("mesh:D003924", "Diabetes Mellitus, Type 2", True)
    assert "not well-formed XML" in refusal(path)


def test_truncated_gzip_or_binary_content_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(descriptors(T2D).encode())[:-20]
    binary = atom("C0000001", "x").encode() + b"C0000002|\xff\n"
    for name, data in (("desc.gz", packed), ("MRCONSO.RRF", binary)):
        (tmp_path / name).write_bytes(data)
        said = refusal(tmp_path / name)
        assert said.startswith(f"{name}: damaged, truncated or not text")


def test_custom_xml_entities_are_refused(tmp_path: Path) -> None:
    text = descriptors(T2D).replace(".dtd", '.dtd" [<!ENTITY a SYSTEM "/etc/passwd">]>', 1)
    text = text.replace(']>">', "]>").replace("NIDDM", "&a;")
    assert "declares entities" in refusal(written(tmp_path, "desc.xml", text))


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
