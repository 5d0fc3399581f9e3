"""Hostile sets of PubMed records, and the result of reading them."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from cluster.errors import SourceError
from cluster.pubmed.parse_articles import Record, parse_stream
from cluster.records import Citation, Deletion, Rejected
from tests.cluster.pubmed_sets import DOCTYPE, article

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 4 * 1024**2
MAX_SENTENCE = 600


def set_of(*records: str, doctype: str = DOCTYPE) -> bytes:
    return f"{doctype}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()


def rich(pmid: int) -> str:
    """Return a record with a value in every field."""
    return article(
        f'<PMID Version="1">{pmid}</PMID>',
        "<Journal><JournalIssue><PubDate><Year>2001</Year><Month>Mar</Month></PubDate>"
        "</JournalIssue><Title>Gut</Title></Journal><ArticleTitle>On <i>iron</i> &amp; zinc"
        '</ArticleTitle><ELocationID EIdType="doi">10.1/x</ELocationID><Abstract>'
        '<AbstractText Label="AIM">Läuft &#x3b1; &lt; 5.</AbstractText></Abstract>'
        "<Language>eng</Language><PublicationTypeList><PublicationType>Review</PublicationType>"
        "</PublicationTypeList>",
        "<ChemicalList><Chemical><NameOfSubstance UI='D1'>Iron</NameOfSubstance></Chemical>"
        "</ChemicalList><CommentsCorrectionsList><CommentsCorrections RefType='ErratumIn'>"
        "<RefSource>Gut</RefSource><PMID>7</PMID></CommentsCorrections></CommentsCorrectionsList>"
        "<MeshHeadingList><MeshHeading><DescriptorName UI='D2' MajorTopicYN='Y'>Zinc"
        "</DescriptorName></MeshHeading></MeshHeadingList><OtherAbstract Language='ger'>"
        "<AbstractText>Über Eisen.</AbstractText></OtherAbstract><KeywordList><Keyword>zinc"
        "</Keyword></KeywordList>",
        '<ArticleIdList><ArticleId IdType="pmc">PMC1</ArticleId></ArticleIdList>',
    )


SOUND = set_of(*(rich(n + 1) for n in range(40)), "<DeleteCitation><PMID>9</PMID></DeleteCitation>")


def outcome(data: bytes, *, strict: bool = True) -> tuple[list[Record], str]:
    """Return the records of a set, plain or gzip, and its error, "" if it was read to its end.

    Fails if a record or the error is malformed.
    """
    plain = io.BytesIO(data)
    stream = gzip.GzipFile(fileobj=plain) if data.startswith(b"\x1f\x8b") else plain
    records: list[Record] = []
    sentence = ""
    try:
        read = parse_stream(cast(IO[bytes], stream), "set.xml", strict=strict)
        records.extend(read)
    except SourceError as error:
        sentence = str(error)
        check_sentence(sentence, "set.xml: ")
    for position, record in enumerate(records):
        check_record(record)
        assert (record.source, record.position) == ("set.xml", position)
    return records, sentence


def check_sentence(sentence: str, where: str) -> None:
    assert sentence.startswith(where)
    assert "\n" not in sentence
    assert len(sentence) <= MAX_SENTENCE, sentence[:MAX_SENTENCE]


def check_record(record: Record) -> None:
    if isinstance(record, Rejected):
        check_sentence(record.detail, "")
    elif isinstance(record, Deletion):
        assert 0 < record.pmid < 10**9
    else:
        assert isinstance(record, Citation)
        assert 0 < record.pmid < 10**9
        assert 0 < record.version < 10**9
        assert record.year is None or 1500 <= record.year < 2100
        assert record.month is None or 1 <= record.month <= 12
        assert record.title is not None


def write_gzip(path: Path, before: str, block: bytes, times: int, after: str) -> Path:
    """Write a gzip file of `block` repeated `times` times between two texts."""
    member = gzip.compress(block)
    with path.open("wb") as file:
        file.write(gzip.compress(before.encode()))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(after.encode()))
    return path


@dataclass(frozen=True)
class Reading:
    """Number of records, error and peak memory (MiB) of reading files in a fresh process."""

    records: int
    sentence: str
    peak_mib: int


_READ = """
import json, re, sys
from pathlib import Path
from cluster.errors import SourceError
from cluster.pubmed.parse_articles import read_records
count, sentence = 0, ""
try:
    for path in sys.argv[1:]:
        for _ in read_records(Path(path)):
            count += 1
except SourceError as error:
    sentence = str(error)
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([count, sentence, int(peak[1]) // 1024]))
"""


def read_in_fresh_process(paths: Sequence[Path]) -> Reading:
    """Read the files in a process of their own, to measure also the memory of libxml2.

    VmHWM is used because ru_maxrss starts with the memory of the parent process.
    """
    done = subprocess.run(
        [sys.executable, "-c", _READ, *map(str, paths)],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    count, sentence, peak = json.loads(done.stdout)
    return Reading(count, sentence, peak)
