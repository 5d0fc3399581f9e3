"""Truncated, damaged and wrongly declared files give valid records, then a one-line error."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from cluster.records import Citation
from tests.cluster.pubmed_sets import article
from tests.hostile.fuzz_xml import run
from tests.hostile.hostile_sets import SOUND, outcome, set_of

pytestmark = pytest.mark.slow

RECORDS = outcome(SOUND)[0]


def test_truncated_file_gives_its_first_records_unchanged() -> None:
    assert len(RECORDS) == 41
    dice = random.Random(0)
    packed = gzip.compress(SOUND, mtime=0)
    for _ in range(160):
        whole = dice.choice([SOUND, packed])
        records, sentence = outcome(whole[: dice.randrange(len(whole))])
        assert records == RECORDS[: len(records)]
        assert sentence


def test_flipped_bits_in_gzip_are_detected() -> None:
    dice = random.Random(0)
    packed = gzip.compress(SOUND, mtime=0)
    for _ in range(240):
        data = bytearray(packed)
        data[dice.randrange(10, len(data))] ^= 1 << dice.randrange(8)
        records, sentence = outcome(bytes(data))
        assert sentence or records == RECORDS


def test_damaged_gzip_is_refused_in_one_line() -> None:
    for packed in (
        gzip.compress(SOUND, mtime=0)[:10],
        b"\x1f\x8b\x07" + bytes(40),
        gzip.compress(SOUND, mtime=0) + b"trailing bytes that are no gzip",
        gzip.compress(b"", mtime=0),
        zlib.compress(SOUND),
    ):
        assert outcome(packed)[1]


DECLARED = '<?xml version="1.0" encoding="{}"?>'
PLAIN = set_of(article(inside="<ArticleTitle>plain</ArticleTitle>"), doctype="").decode()


@pytest.mark.parametrize("name", ["utf-16", "utf-16-le", "utf-16-be", "iso-8859-1"])
def test_declared_encoding_is_read(name: str) -> None:
    declared = name[:6] if name.startswith("utf") else name
    (record,), sentence = outcome((DECLARED.format(declared) + PLAIN).encode(name))
    assert sentence == ""
    assert isinstance(record, Citation)
    assert record.title == "plain"


ENCODINGS = [
    ("utf-16", "utf-8"), ("utf-8", "utf-16"), ("utf-7", "utf-8"), ("utf-7", "utf-7"),
    ("cp037", "cp037"), ("IBM037", "utf-8"), ("utf-32", "utf-32"), ("utf-8", "utf-32-be"),
    ("x-none-such", "utf-8"), ("rot13", "utf-8"), ("HTML", "utf-8"), ("us-ascii", "utf-8"),
    ("", "utf-8"), ("e" * 40_000, "utf-8"), ("\n\n", "utf-8"),
]  # fmt: skip


@pytest.mark.parametrize("title", ["plain", "+ADw-script+AD4-", "Läuft"])
def test_wrong_or_rare_encoding_is_read_or_refused(title: str, subtests: pytest.Subtests) -> None:
    for declared, written in ENCODINGS:
        with subtests.test(declared=declared[:20], written=written):
            text = DECLARED.format(declared) + PLAIN.replace("plain", title)
            records, sentence = outcome(text.encode(written, "xmlcharrefreplace"))
            assert sentence or [getattr(r, "title", None) for r in records] == [title]


def test_invalid_bytes_are_reported_with_their_line() -> None:
    for bad in (b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x82", b"\0", b"\x1b[2J"):
        data = SOUND.replace(b"zinc</ArticleTitle>", b"zinc" + bad + b"</ArticleTitle>", 1)
        records, sentence = outcome(data)
        assert records == []
        assert "at line 3" in sentence


def test_random_damage_causes_no_hang_no_growth_and_no_wrong_record() -> None:
    """A sample of the files that `python -m tests.hostile.fuzz_xml` reads."""
    faults, ended = run(range(300))
    assert faults == []
    assert set(ended) == {"refused", "set aside", "whole"}
