"""Sets of PubMed records as an enemy would write them, and what became of reading them."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.errors import SourceError
from cluster.pubmed.parse_articles import Record, parse_stream
from cluster.records import Citation, Deletion, Rejected
from tests.cluster.pubmed_sets import DOCTYPE

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 4 * 1024**2
MAX_SENTENCE = 600


def set_of(*records: str, doctype: str = DOCTYPE) -> bytes:
    return f"{doctype}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>".encode()


def outcome(data: bytes) -> tuple[list[Record], str]:
    """The records of a set and the sentence it ended with, "" if it was read to its end.

    Both are sound whatever `data` is, or this fails.
    """
    records: list[Record] = []
    sentence = ""
    try:
        records.extend(parse_stream(io.BytesIO(data), "set.xml"))
    except SourceError as error:
        sentence = str(error)
        check_sentence(sentence, "set.xml: ")
    for position, record in enumerate(records):
        check_record(record)
        assert (record.source, record.position) == ("set.xml", position)
    return records, sentence


def check_sentence(sentence: str, place: str) -> None:
    assert sentence.startswith(place)
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
    """`block` `times` times between two texts, as gzip of few bytes, made in no time."""
    member = gzip.compress(block)
    with path.open("wb") as file:
        file.write(gzip.compress(before.encode()))
        for _ in range(times):
            file.write(member)
        file.write(gzip.compress(after.encode()))
    return path


@dataclass(frozen=True)
class Reading:
    """Of a fresh process: how many records, the sentence at the end, its peak in MiB."""

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
    """What libxml2 allocates is not Python's memory, so that a whole process is measured.

    By VmHWM, since ru_maxrss begins at what the process had that started this one.
    """
    done = subprocess.run(
        [sys.executable, "-c", _READ, *map(str, paths)],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    count, sentence, peak = json.loads(done.stdout)
    return Reading(count, sentence, peak)
