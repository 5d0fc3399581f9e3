"""Each kind of damage, at several positions in a file, affects only its own record."""

from __future__ import annotations

import gzip
import io
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import process_time
from typing import IO, NamedTuple, cast

import pytest

from cluster.errors import SourceError
from cluster.pubmed.count_records import count_file, count_records
from cluster.pubmed.parse_articles import Record, parse_stream, read_records
from cluster.pubmed.skipped_records import SKIP_REASONS
from cluster.records import Citation, Rejected
from tests.cluster.pubmed_sets import DOCTYPE

RECORDS = 299
BARE = '<?xml version="1.0" encoding="utf-8"?>\n'
ONE_CHUNK = 10**9


class Form(NamedTuple):
    """Form of a file: its first lines, whether it is gzipped, and the bytes of each read."""

    head: str
    is_packed: bool
    chunk_bytes: int


WITH_DOCTYPE = (Form(DOCTYPE, False, ONE_CHUNK), Form(DOCTYPE, True, 4_000))
WITHOUT_DOCTYPE = (Form(BARE, False, 4_000), Form(BARE, True, ONE_CHUNK))
PLACES = (1, 100, 298)


def record(pmid: int) -> bytes:
    """A record with PMIDs of other articles, markup in its title and a list of references."""
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="1">{pmid}</PMID>'
        f"<Article><ArticleTitle>Title <i>{pmid}</i> &amp; more</ArticleTitle><Abstract>"
        f'<AbstractText Label="AIM">Läuft &#x3b1; is about 5.</AbstractText></Abstract>'
        "<Language>eng</Language></Article><CommentsCorrectionsList><CommentsCorrections "
        'RefType="Cites"><PMID Version="1">7</PMID></CommentsCorrections>'
        "</CommentsCorrectionsList></MedlineCitation><PubmedData><ReferenceList><Reference>"
        '<ArticleIdList><ArticleId IdType="pubmed">8</ArticleId></ArticleIdList></Reference>'
        "</ReferenceList></PubmedData></PubmedArticle>\n"
    ).encode()


class Damage(NamedTuple):
    """Replaces `old` by `new` in a record.

    `aside` is the number of skipped records with and without a DOCTYPE that names a DTD;
    `is_named` is whether their PMID can be read.
    """

    old: bytes
    new: bytes
    aside: tuple[int, int] = (1, 1)
    is_named: bool = True


TITLE = b"Title <i>"
DAMAGES = {
    # An entity that the DTD could declare, which is not read, stays a reference in the text.
    "undeclared entity": Damage(TITLE, b"&micro; Title <i>", (0, 1)),
    "undeclared entity in an attribute": Damage(b'"AIM"', b'"&micro;"', (0, 1)),
    "bare ampersand": Damage(TITLE, b"A & B <i>"),
    "ampersand at the end of a text": Damage(b" more</ArticleTitle>", b" &</ArticleTitle>"),
    "entity without a semicolon": Damage(b"&amp;", b"&amp "),
    "number of no character": Damage(b"&#x3b1;", b"&#0;"),
    "number of a surrogate": Damage(b"&#x3b1;", b"&#xD800;"),
    "bare less-than sign": Damage(TITLE, b"p < 0.05 <i>"),
    "open CDATA section": Damage(TITLE, b"<![CDATA[ <i>"),
    "end of a CDATA section": Damage(TITLE, b"]]> <i>"),
    "open comment": Damage(TITLE, b"<!-- <i>"),
    "comment with two hyphens": Damage(TITLE, b"<!-- a -- b --> <i>"),
    "open processing instruction": Damage(TITLE, b"<?php <i>"),
    "XML declaration in the middle": Damage(TITLE, b'<?xml version="1.0"?> <i>'),
    "document type in the middle": Damage(TITLE, b"<!DOCTYPE x> <i>"),
    "unbound prefix of an element": Damage(TITLE, b"<mml:math/> <i>"),
    "unbound prefix of an attribute": Damage(b"<i>", b'<i xlink:href="x">'),
    "unbound prefix beside an entity": Damage(TITLE, b"<mml:math/> &x; <i>"),
    "missing end tag of an element": Damage(b"</ArticleTitle>", b""),
    "missing start tag of an element": Damage(b"<ArticleTitle>", b""),
    "missing end tag of a record": Damage(b"</PubmedArticle>", b""),
    "missing start tag of a record": Damage(b"<PubmedArticle>", b""),
    "misspelt end tag of a record": Damage(b"</PubmedArticle>", b"</PubmedArticel>"),
    "misspelt start tag of a record": Damage(b"<PubmedArticle>", b"<PubmedArticel>"),
    "end tag of the set": Damage(TITLE, b"</PubmedArticleSet> <i>"),
    "start tag of the set": Damage(TITLE, b"<PubmedArticleSet> <i>"),
    # Both parts of the record are named.
    "end tag of a record in the middle": Damage(TITLE, b"</PubmedArticle> <i>", (2, 2)),
    "start tag of a record in the middle": Damage(TITLE, b"<PubmedArticle> <i>", (2, 2)),
    "wrong nesting": Damage(b"</i> &amp; more</ArticleTitle>", b"</ArticleTitle></i>"),
    "attribute without quotes": Damage(b'"AIM"', b"AIM"),
    "attribute without a value": Damage(b'Label="AIM"', b"Label"),
    "attribute without an end": Damage(b'"AIM"', b'"AIM'),
    "attribute given twice": Damage(b'"AIM"', b'"AIM" Label="B"'),
    "less-than sign in an attribute": Damage(b'"AIM"', b'"a<b"'),
    "control character": Damage(TITLE, b"\x01 <i>"),
    "NUL byte": Damage(TITLE, b"\0 <i>"),
    "byte that is not UTF-8": Damage(TITLE, b"\xe9 <i>"),
    "half of a UTF-8 character": Damage("Läuft".encode(), b"L\xc3uft"),
    "surrogate in UTF-8": Damage(TITLE, b"\xed\xa0\x80 <i>"),
    "no character": Damage(TITLE, b"\xef\xbf\xbf <i>"),
    "element name with a digit first": Damage(b"<i>", b"<1>"),
    "open end tag": Damage(b"</i>", b"</i"),
    "damaged PMID": Damage(b'<PMID Version="1">', b'<PMUD Version="1">', is_named=False),
    "nesting without an end": Damage(TITLE, b"<b>" * 300 + b"<i>"),
    "missing PMID": Damage(b'<PMID Version="1">', b"", is_named=False),
}


class Slow(io.RawIOBase):
    """A stream that returns `size` bytes for each read."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream, self._size = stream, size

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(self._size)


def read_all(data: bytes, chunk_bytes: int, *, is_packed: bool = False) -> list[Record]:
    stream: IO[bytes] = io.BytesIO(data)
    if is_packed:
        packed = io.BytesIO(gzip.compress(data, 1))
        stream = cast(IO[bytes], gzip.GzipFile(fileobj=packed))
    slow = cast(IO[bytes], Slow(stream, chunk_bytes))
    return list(parse_stream(slow, "set.xml", strict=False))


def set_of(records: Sequence[bytes], head: str = DOCTYPE) -> bytes:
    return f"{head}<PubmedArticleSet>\n".encode() + b"".join(records) + b"</PubmedArticleSet>\n"


SOUND = [record(n + 1) for n in range(RECORDS)]
CITATIONS = [r for r in read_all(set_of(SOUND), ONE_CHUNK) if isinstance(r, Citation)]


def fault_of(damage: Damage, at: int, form: Form) -> str:
    """Damage record `at` of a set, read the set, and return the fault, or "" if there is none."""
    records = list(SOUND)
    position = set_of(records[: at - 1], form.head).index(b"</PubmedArticleSet>")
    position += records[at - 1].index(damage.old)
    records[at - 1] = records[at - 1].replace(damage.old, damage.new, 1)
    data = set_of(records, form.head)
    try:
        found = read_all(data, form.chunk_bytes, is_packed=form.is_packed)
    except SourceError as error:
        return str(error)
    size = form.chunk_bytes
    aside = [r for r in found if isinstance(r, Rejected)]
    expected = damage.aside[form.head == BARE]
    if len(aside) != expected:
        return f"{len(aside)} set aside, {expected} expected: {[r.detail for r in aside]}"
    others = [r for r in found if isinstance(r, Citation) and r.pmid != at]
    if expected > 1:
        others = [replace(r, position=r.pmid - 1) for r in others]
    if others != [*CITATIONS[: at - 1], *CITATIONS[at:]]:
        return f"{len(others)} others are kept, or some have changed"
    if aside and (aside[0].position != at - 1 or aside[0].reason not in SKIP_REASONS):
        return f"set aside: {aside[0]}"
    if aside and damage.is_named and not any(f"PMID {at}," in r.detail for r in aside):
        return f"not named: {aside[0].detail}"
    extents = [re.findall(r"bytes (\d+) to (\d+)", r.detail)[0] for r in aside]
    if aside and not any(int(begin) <= position < int(end) for begin, end in extents):
        return f"byte {position} is not in {extents}"
    counted = count_records(data[n : n + size] for n in range(0, len(data), size))
    if counted != len(found):
        return f"{counted} counted by tags, {len(found)} read"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("all_files", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_damage_affects_only_its_own_record(all_files: bool) -> None:
    dice = random.Random(1)
    faults = []
    for name, damage in DAMAGES.items():
        # Expected results differ between files with and without a DOCTYPE.
        files = [(dice.choice(PLACES), dice.choice(f)) for f in (WITH_DOCTYPE, WITHOUT_DOCTYPE)]
        if all_files:
            files = [*product(PLACES, WITH_DOCTYPE + WITHOUT_DOCTYPE)]
        for at, form in files:
            if fault := fault_of(damage, at, form):
                faults.append(f"{name}, record {at}, {form}: {fault}")
    assert faults == []


def test_damage_between_records_is_reported() -> None:
    for bad in (b"& ", b"\xff", b"<x>", b"</x>", b"<![CDATA[", b"<!--", b"<?x "):
        data = set_of([*SOUND[:5], bad, *SOUND[5:9]])
        found = read_all(data, ONE_CHUNK)
        assert [r.pmid for r in found if isinstance(r, Citation)] == list(range(1, 10)), bad
        (aside,) = (r for r in found if isinstance(r, Rejected))
        assert (aside.reason, aside.position) == ("damaged-between-records", 5)
        assert aside.detail.startswith("between two records, bytes ")
        assert count_records([data]) == 9


def test_count_by_tags_includes_books_and_each_deleted_pmid() -> None:
    book = b"<PubmedBookArticle><BookDocument><PMID>31</PMID></BookDocument></PubmedBookArticle>"
    gone = b"<DeleteCitation><PMID>8</PMID>\n<PMID Version='2'>9</PMID></DeleteCitation>"
    data = set_of([*SOUND[:3], book, gone, b"<DeleteCitation/>", b"<PubmedArticle/>", SOUND[3]])
    for size in (1, 7, ONE_CHUNK):
        counted = count_records(data[n : n + size] for n in range(0, len(data), size))
        assert counted == len(read_all(data, size)) == 8


@pytest.mark.parametrize("between", [b"", b"\n \n", b"<!-- end -->\n", b"\n\xef\xbb\xbf"])
def test_concatenated_files_are_all_read(tmp_path: Path, between: bytes) -> None:
    path = tmp_path / "both.xml"
    empty = f"{BARE}<PubmedArticleSet/>".encode()
    files = [set_of(SOUND[:3]), empty, set_of(SOUND[3:7], BARE), set_of(SOUND[7:9], "")]
    # Declarations may only be the first thing in a document.
    if between.startswith(b"<!"):
        files = [set_of(part, "") for part in (SOUND[:3], SOUND[3:7], SOUND[7:9])]
    path.write_bytes(between.join(files))
    found = list(read_records(path))
    assert [r.pmid for r in found if isinstance(r, Citation)] == list(range(1, 10))
    assert [r.position for r in found] == list(range(9))
    assert count_file(path) == 9


def test_concatenated_file_with_truncated_first_part_is_rejected() -> None:
    whole = set_of(SOUND[:5])
    for cut in (len(whole) - 20, len(whole) - 30, len(whole) - 200, len(whole) // 2):
        with pytest.raises(SourceError, match="several files in one"):
            read_all(whole[:cut] + set_of(SOUND[5:9]), 4_000)


def test_truncated_file_is_rejected_after_its_whole_records() -> None:
    whole = set_of(SOUND[:9])
    for cut in range(whole.index(b"<PubmedArticle>"), len(whole) - 2, 41):
        found: list[Record] = []
        with pytest.raises(SourceError, match="not well-formed XML"):
            found.extend(parse_stream(io.BytesIO(whole[:cut]), "set.xml", strict=False))
        assert len(found) == whole[:cut].count(b"</PubmedArticle>")


def test_truncated_gzip_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml.gz"
    packed = gzip.compress(set_of(SOUND[:9]))
    for cut in (len(packed) - 1, len(packed) - 9, len(packed) // 2):
        path.write_bytes(packed[:cut])
        with pytest.raises(SourceError, match="truncated"):
            list(read_records(path, strict=False))
        with pytest.raises(SourceError, match="truncated"):
            count_file(path)


def test_utf16_file_loses_only_its_damaged_record() -> None:
    text = set_of(SOUND, BARE.replace("utf-8", "utf-16")).decode()
    data = text.replace("Title <i>100<", "Title & <i>100<").encode("utf-16")
    found = read_all(data, 4_001)
    (aside,) = (r for r in found if isinstance(r, Rejected))
    assert aside.detail.startswith("PMID 100, ")
    assert len(found) == RECORDS


def test_many_end_tags_take_linear_time() -> None:
    data = set_of([SOUND[0], SOUND[1] + b"</PubmedArticle>\n" * 500_000, SOUND[2]])
    begun = process_time()
    with pytest.raises(SourceError, match="not well-formed XML after 102 records"):
        read_all(data, 32_768)
    assert process_time() - begun < 5


@pytest.mark.parametrize(
    ("opens", "closes", "aside"),
    [
        # A lone end mark of a comment or instruction is valid text; that of CDATA is not.
        (b"<!-- ", b" -->", [100]),
        (b"<?x ", b" ?>", [100]),
        (b"<![CDATA[", b"]]>", [100, 104]),
        (b"<Wrapper>", b"</Wrapper>", [100, 104]),
    ],
)
def test_markup_across_records_hides_no_record(
    opens: bytes, closes: bytes, aside: list[int]
) -> None:
    """Parsed as one document, such a file would be almost well-formed but lack records."""
    records = list(SOUND)
    records[99] = records[99].replace(TITLE, opens + TITLE)
    records[103] = records[103].replace(b"</ArticleTitle>", closes + b"</ArticleTitle>")
    found = read_all(set_of(records), 4_000)
    assert [r.position + 1 for r in found if isinstance(r, Rejected)] == aside
    assert len(found) == RECORDS
