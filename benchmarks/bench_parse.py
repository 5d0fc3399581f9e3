"""Compare the speed of parsing PubMed XML with pubmed_parser and bare XML parsers.

    python -m benchmarks.bench_parse [FILE or FOLDER ...] [--records 2000] [--rounds 5]

Parses `--records` generated records that have every field, then each FILE or FOLDER of `.xml.gz`.
All contenders read the same files on one core in the same run, in an order that is reversed after
each round. Prints citations per second of CPU time (medians) and their ratios; rates depend on the
machine, ratios carry over.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from xml.parsers import expat

import pubmed_parser
from lxml import etree

from benchmarks.smallest import parse_arguments
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation

SMALLEST = "--records 20 --rounds 1"
ROUNDS = 5


def measure(path: Path, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median citations/s of each contender on a file or folder, and their ratios.

    A folder must contain `.xml.gz` files. Uses the CPU time of this process, so that other load on
    the machine has little effect.
    """
    files = sorted(path.glob("*.xml.gz")) if path.is_dir() else [path]
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    count = 0
    for turn in range(rounds):
        for name in list(CONTENDERS)[:: -1 if turn % 2 else 1]:
            begin = time.process_time()
            found = sum(CONTENDERS[name](file) for file in files)
            count = max(count, found)
            seconds[name].append(time.process_time() - begin)
    rates = {name: count / median(taken) for name, taken in seconds.items()}
    return {
        "citations": count,
        **{f"{name}_per_s": rate for name, rate in rates.items()},
        "citeray_over_pubmed_parser": rates["citeray"] / rates["pubmed_parser"],
        "citeray_over_bare_lxml": rates["citeray"] / rates["lxml"],
        "citeray_over_bare_expat": rates["citeray"] / rates["expat"],
    }


def parse_citeray(path: Path) -> int:
    return sum(isinstance(record, Citation) for record in read_records(path))


def parse_pubmed_parser(path: Path) -> int:
    return sum(1 for _ in pubmed_parser.parse_medline_xml(str(path)))


def parse_bare_lxml(path: Path) -> int:
    """Build and drop the XML trees without reading them. Return the number of articles."""
    count = 0
    with gzip.open(path) as file:
        for _, element in etree.iterparse(file, events=("end",), tag="PubmedArticle"):
            count += 1
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
    return count


def parse_bare_expat(path: Path) -> int:
    """Parse the XML without handlers. Returns 0, because no element is reported or counted."""
    with gzip.open(path) as file:
        expat.ParserCreate().ParseFile(file)
    return 0


CONTENDERS: Mapping[str, Callable[[Path], int]] = {
    "citeray": parse_citeray,
    "pubmed_parser": parse_pubmed_parser,
    "lxml": parse_bare_lxml,
    "expat": parse_bare_expat,
}


def write_full_records(path: Path, count: int) -> None:
    """Write generated citations of about 10 KB each, with every field of an indexed record.

    They have authors with affiliations, MeSH headings, chemicals, keywords, a labelled abstract and
    references.
    """
    head = "<PubmedArticleSet>\n"
    with gzip.open(path, "wt", compresslevel=3, encoding="utf-8") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n' + head)
        file.writelines(_full_record(pmid) for pmid in range(1, count + 1))
        file.write("</PubmedArticleSet>\n")


def _full_record(pmid: int) -> str:
    date = "<Year>2019</Year><Month>08</Month><Day>09</Day>"
    authors = "".join(
        f'<Author ValidYN="Y"><LastName>Name{n}</LastName><ForeName>Given {n}</ForeName><Initials>G'
        f"</Initials><AffiliationInfo><Affiliation>Department {n}, University of {pmid}, Town, "
        "Country. mail@example.org.</Affiliation></AffiliationInfo></Author>"
        for n in range(7)
    )
    sentence = f"The mean of group {pmid} was 3.5 mg (p&lt;0.05) in H<sub>2</sub>O, as we saw. "
    abstract = "".join(
        f'<AbstractText Label="{label}" NlmCategory="{label}">{sentence * 4}</AbstractText>'
        for label in ("BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS")
    )
    mesh = "".join(
        f'<MeshHeading><DescriptorName UI="D{(pmid * 7 + n) % 9000:06}" MajorTopicYN="N">Heading '
        f'{(pmid * 7 + n) % 9000}</DescriptorName><QualifierName UI="Q000{n}" MajorTopicYN="Y">'
        "drug effects</QualifierName></MeshHeading>"
        for n in range(11)
    )
    chemicals = "".join(
        f'<Chemical><RegistryNumber>0</RegistryNumber><NameOfSubstance UI="D{n:06}">Substance {n}'
        "</NameOfSubstance></Chemical>"
        for n in range(3)
    )
    keywords = "".join(f'<Keyword MajorTopicYN="N">keyword {n}</Keyword>' for n in range(5))
    history = "".join(
        f'<PubMedPubDate PubStatus="{status}">{date}<Hour>6</Hour><Minute>0</Minute>'
        "</PubMedPubDate>"
        for status in ("received", "accepted", "entrez", "pubmed", "medline")
    )
    references = "".join(
        f"<Reference><Citation>Name A. Title of reference {n}. J Made Up. 2010;{n}:1-9.</Citation>"
        f'<ArticleIdList><ArticleId IdType="pubmed">{n + 1}</ArticleId>'
        f'<ArticleId IdType="doi">10.1000/{n}</ArticleId></ArticleIdList></Reference>'
        for n in range(15)
    )
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{pmid}'
        f"</PMID><DateCompleted>{date}</DateCompleted><DateRevised>{date}</DateRevised><Article "
        'PubModel="Print"><Journal><ISSN IssnType="Print">0000-0000</ISSN><JournalIssue '
        f'CitedMedium="Print"><Volume>5</Volume><Issue>6</Issue><PubDate>{date}</PubDate></JournalIssue><Title>'
        "Journal of made-up records</Title><ISOAbbreviation>J Made Up</ISOAbbreviation></Journal>"
        f"<ArticleTitle>A title of record {pmid}.</ArticleTitle><Pagination><MedlinePgn>1-9"
        f'</MedlinePgn></Pagination><ELocationID EIdType="doi" ValidYN="Y">10.1000/{pmid}'
        f"</ELocationID><Abstract>{abstract}</Abstract><AuthorList CompleteYN="
        f'"Y">{authors}</AuthorList><Language>eng</Language><PublicationTypeList><PublicationType '
        'UI="D016428">Journal Article</PublicationType></PublicationTypeList></Article>'
        "<MedlineJournalInfo><Country>England</Country><MedlineTA>J Made Up</MedlineTA>"
        f"<NlmUniqueID>0</NlmUniqueID></MedlineJournalInfo><ChemicalList>{chemicals}</ChemicalList>"
        f"<CitationSubset>IM</CitationSubset><MeshHeadingList>{mesh}</MeshHeadingList>"
        f'<KeywordList Owner="NOTNLM">{keywords}</KeywordList></MedlineCitation><PubmedData>'
        f"<History>{history}</History><PublicationStatus>ppublish</PublicationStatus><ArticleIdList>"
        f'<ArticleId IdType="pubmed">{pmid}</ArticleId><ArticleId IdType="doi">10.1000/{pmid}'
        f"</ArticleId></ArticleIdList><ReferenceList>{references}</ReferenceList></PubmedData>"
        "</PubmedArticle>\n"
    )


def report(name: str, figures: Mapping[str, float]) -> str:
    rows = (f"  {key.replace('_', ' '):28}{value:10,.2f}" for key, value in figures.items())
    return "\n".join([name, *rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE or FOLDER")
    parser.add_argument(
        "--records", type=int, default=2_000, help="generated records (default 2000)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parse_arguments(parser, SMALLEST)
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full-records.xml.gz"
        write_full_records(full, given.records)
        for path in [full, *given.paths]:
            print(report(path.name, measure(path, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
