from __future__ import annotations

from serve.question.field_tags.identifiers import Identifiers, read_identifiers

SICI = "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2"
ESCAPED = (
    "10.1002/(SICI)1097-0258%2819980815%2F30%2917%3A15%2F16%3C1661%3A%3AAID-SIM968%3E3.0.CO%3B2-2"
)
HASH = "10.1002/(SICI)1521-3773(19980803)37:13/14<1834::AID-ANIE1834>3.0.CO;2-#"
BRACKETS = "10.1653/0015-4040(2006)89[1:ABC]2.0.CO;2"
FINAL = "10.1061/(ASCE)0733-9372(2003)129:3(228)"


def failures(expected: dict[str, Identifiers]) -> dict[str, Identifiers]:
    read = {text: read_identifiers(text) for text in expected}
    return {text: found for text, found in read.items() if found != expected[text]}


def test_pmids_are_read_in_every_form() -> None:
    expected = {
        "PMID: 123": (123,),
        "PMID 1, PMID:2 3": (1, 2, 3),
        "1[pmid] OR 2[UID]": (1, 2),
        "1,2;3 and 4.": (1, 2, 3, 4),
        "PubMed ID: 12": (12,),
        "pubmed:12": (12,),
        "https://pubmed.ncbi.nlm.nih.gov/31393839/": (31393839,),
        "pubmed.ncbi.nlm.nih.gov/31393839/?format=abstract#top": (31393839,),
        "https://pubmed.ncbi.nlm.nih.gov/?term=31393839%5Buid%5D&sort=date": (31393839,),
        "www.ncbi.nlm.nih.gov/pubmed/31393839?dopt=Abstract": (31393839,),
        "https://europepmc.org/article/MED/31393839": (31393839,),
    }
    assert failures({text: Identifiers(pmids) for text, pmids in expected.items()}) == {}


def test_pmcids_are_read_in_every_form() -> None:
    expected = {
        "PMC123": ("PMC123",),
        "PMC123.2": ("PMC123",),
        "PMC 123": ("PMC123",),
        "PMCID: PMC123, PMC456": ("PMC123", "PMC456"),
        "PMCIDs: 123, 456": ("PMC123", "PMC456"),
        "PMC123 [pmc]": ("PMC123",),
        "123[pmcid]": ("PMC123",),
        "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123/": ("PMC123",),
        "pmc.ncbi.nlm.nih.gov/articles/PMC123/?report=reader#sec1": ("PMC123",),
        "https://europepmc.org/article/PMC/PMC123": ("PMC123",),
    }
    assert failures({t: Identifiers(pmcids=found) for t, found in expected.items()}) == {}


def test_dois_are_read_whole() -> None:
    expected: dict[str, tuple[str, ...]]
    expected = {doi: (doi.lower(),) for doi in (SICI, HASH, BRACKETS, FINAL, "10.1000/a,b;c")}
    expected |= {f"({doi}).": (doi.lower(),) for doi in (SICI, HASH, BRACKETS, FINAL)}
    expected |= {
        f"{SICI}, {BRACKETS}; {FINAL}": (SICI.lower(), BRACKETS.lower(), FINAL.lower()),
        f"{BRACKETS}[doi]": (BRACKETS.lower(),),
        f'"{FINAL}" [Location ID]': (FINAL.lower(),),
        SICI.replace("<", "&lt;").replace(">", "&gt;"): (SICI.lower(),),
        ESCAPED: (SICI.lower(),),
        f"https://doi.org/{ESCAPED}": (SICI.lower(),),
        f"https://doi.org/{SICI}": (SICI.lower(),),
        f"https://doi.org/{HASH}": (HASH.lower(),),
        "10.1000.10/123": ("10.1000.10/123",),
        "10.1000/a,10.1000/b;doi:10.1000/c": ("10.1000/a", "10.1000/b", "10.1000/c"),
    }
    assert failures({text: Identifiers(dois=dois) for text, dois in expected.items()}) == {}


def test_doi_is_read_without_surrounding_punctuation() -> None:
    texts = [
        "doi:10.1000/Xyz.",
        "(doi: 10.1000/xyz)",
        "[10.1000/xyz]",
        "<https://doi.org/10.1000/xyz>",
        '"10.1000/xyz",',
        "10.1000%2Fxyz",
        "dx.doi.org/10.1000/xyz#abstract",
        "https://doi.org/10.1000/xyz?utm_source=mail&x=1",
        "info:doi/10.1000/xyz",
    ]
    assert failures(dict.fromkeys(texts, Identifiers(dois=("10.1000/xyz",)))) == {}


def test_identifiers_of_several_kinds_are_read_together() -> None:
    found = Identifiers((123,), ("10.1000/x",), ("PMC1",))
    texts = ["PMID:123;PMCID:PMC1;doi:10.1000/x", "doi:10.1000/x, 123 and PMC1"]
    assert failures(dict.fromkeys(texts, found)) == {}


def test_text_with_other_words_has_no_identifiers() -> None:
    texts = [
        "metformin 123",
        "What is 2?",
        "1234567890",
        "10.1016/S0140-6736(98)11131-9; 10.1/x",
        "https://example.org/10.1000/xyz",
        "https://pubmed.ncbi.nlm.nih.gov/trending",
        "doi 123",
        "PMID",
        "PubMed 2020",
        "1" + " " * 1900 + "x",
    ]
    assert failures(dict.fromkeys(texts, Identifiers())) == {}
