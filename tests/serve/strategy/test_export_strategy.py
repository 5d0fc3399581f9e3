from __future__ import annotations

from dataclasses import replace

import pytest

from serve.question.field_tags.parse_boolean import parse_boolean
from serve.strategy.export_strategy import export_strategy, write_ovid
from serve.strategy.strategy_records import Strategy, StrategyBlock, StrategyTerm

pytestmark = pytest.mark.unit

PUBMED = (
    '("Diabetes Mellitus, Type 2"[mh:noexp] OR "type 2 diabetes"[tiab] OR niddm[tiab]) AND '
    "metformin*[tiab] AND 2015:2024[dp] AND eng[la]"
)
BLOCK = StrategyBlock(
    name="type 2 diabetes",
    terms=(
        StrategyTerm("mh", "Diabetes Mellitus, Type 2", 900, True, 20),
        StrategyTerm("tiab", "type 2 diabetes", 1200, False, 31, loses=12),
    ),
    hits=1500,
    exact=False,
    found=32,
    excludes=3,
    without_hits=2000,
    without_mh=1,
    without_tiab=12,
)
MADE = Strategy(
    question="Does metformin help in type 2 diabetes?",
    pubmed=PUBMED,
    hits=412,
    reference=tuple(range(1, 41)),
    found=30,
    recall=0.75,
    precision=30 / 412,
    blocks=(BLOCK,),
    left_out=(StrategyBlock("help", (), 5000, True, 2, 28),),
    limits=("2015:2024[dp]", "eng[la]"),
    notes=("hits of very frequent terms are estimates",),
    max_hits=500,
    citations=38_000_000,
    index_version="v000012",
    last_source="pubmed26n1340.xml.gz",
    index_date="2026-11-21",
    coverage="16/16",
)


def test_ovid_has_unexploded_headings_adjacent_words_and_joined_lines() -> None:
    assert export_strategy(MADE, "ovid").splitlines() == [
        "1. Diabetes Mellitus, Type 2/",
        '2. (type adj "2" adj diabetes or niddm).ti,ab.',
        "3. 1 or 2",
        "4. (metformin*).ti,ab.",
        "5. english.lg.",
        "6. 3 and 4 and 5",
        '7. limit 6 to yr="2015 -2024"',
    ]


def test_ovid_negates_and_quotes_operators() -> None:
    text = write_ovid(parse_boolean('"search and rescue"[tiab] NOT review[pt] AND 2020:[dp]'))
    assert text.splitlines() == [
        '1. (search adj "and" adj rescue).ti,ab.',
        "2. (Review).pt.",
        "3. 1 not 2",
        '4. limit 3 to yr="2020 -Current"',
    ]


def test_ovid_range_without_a_beginning_starts_with_the_oldest_articles() -> None:
    text = write_ovid(parse_boolean("gout[tiab] AND 1000:2018/06/30[dp]"))
    assert text.splitlines()[-1] == '2. limit 1 to yr="1781 -2018"'


def test_ovid_quotes_operators_in_names_and_truncates_initials() -> None:
    query = '"Wounds and Injuries"[majr] AND "Heart & lung"[ta] AND Smith J[au]'
    assert write_ovid(parse_boolean(query)).splitlines() == [
        '1. *"Wounds and Injuries"/',
        "2. (Heart & lung).jn,ja.",
        "3. (Smith J*).au.",
        "4. 1 and 2 and 3",
    ]


def test_pubmed_query_is_read_back() -> None:
    assert export_strategy(MADE, "pubmed") == f"{PUBMED}\n"
    assert parse_boolean(MADE.pubmed)


def test_prisma_paragraph_names_date_version_database_limits_and_hits() -> None:
    text = export_strategy(MADE, "prisma-s")
    for part in (
        "pubmed26n1340.xml.gz", "v000012", "as of 2026-11-21", "38,000,000 PubMed citations",
        "2015:2024[dp]; eng[la]", "412 records", "40 citations", "retrieved 30 (75%)", PUBMED,
    ):  # fmt: skip
        assert part in text


def test_prisma_paragraph_of_words_alone_mentions_no_headings() -> None:
    words = replace(BLOCK, terms=BLOCK.terms[1:])
    text = export_strategy(replace(MADE, blocks=(words,), hits=1), "prisma-s")
    assert "MeSH" in export_strategy(MADE, "prisma-s")
    assert "MeSH" not in text.replace(PUBMED, "")
    assert "retrieved 1 record in total" in text


def test_report_says_what_each_part_loses() -> None:
    text = export_strategy(MADE, "text")
    for part in (
        "412 hits. Finds 30 of the 40 best citations of the semantic search (recall 0.75,",
        "Block 1: type 2 diabetes (about 1,500 hits, finds 32 of 40)",
        '"type 2 diabetes"[tiab]: about 1,200 hits, finds 31 of 40, alone in finding 12',
        "dropping the [tiab] words loses 12 of 30",
        "dropping the MeSH heading loses 1 of 30",
        "without this block: 2,000 hits, 3 more found",
        "help: would exclude 28 of the 30 found (5,000 hits, finds 2 of 40)",
    ):
        assert part in text
