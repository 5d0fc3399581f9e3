import pytest

from serve.references.page_ranges import (
    expand_pages,
    first_and_last,
    is_article_number,
    shorten_pages,
)

RANGES = [
    ("284-7", "284-287", ("284", "287")),
    ("2327-36", "2327-2336", ("2327", "2336")),
    ("S93-9", "S93-S99", ("S93", "S99")),
    ("1-10", "1-10", ("1", "10")),
    ("98-101", "98-101", ("98", "101")),
    ("e1001", "e1001", ("e1001", "")),
    ("iii-v", "iii-v", ("iii", "v")),
    ("17", "17", ("17", "")),
    ("", "", ("", "")),
]


def test_page_ranges_are_expanded_and_shortened(subtests: pytest.Subtests) -> None:
    for short, whole, ends in RANGES:
        with subtests.test(short=short, whole=whole):
            assert (expand_pages(short), expand_pages(whole)) == (whole, whole)
            assert (shorten_pages(short), shorten_pages(whole)) == (short, short)
            assert first_and_last(short) == ends
    pages = "1151-68; discussion 1149-50, 1168a"
    assert expand_pages(pages) == "1151-1168; discussion 1149-1150, 1168a"
    assert shorten_pages(expand_pages(pages)) == pages
    for pages, ends in [
        ("1151-68; discussion 1149-50, 1168a", ("1151", "1168")),
        ("1194-205 quiz 206-8", ("1194", "1205")),
        ("101, 105-9", ("101", "")),
        ("vii-ix, 1-9", ("vii", "ix")),
        ("2 p following 345", ("2 p following 345", "")),
    ]:
        with subtests.test(pages=pages):
            assert first_and_last(pages) == ends


def test_article_numbers_are_distinguished_from_pages() -> None:
    numbers = ("e1002195", "n71", "dkab123", "CD012345", "104023")
    assert all(map(is_article_number, numbers))
    assert not any(map(is_article_number, ("184", "12345", "S12", "R1234", "e12-5", "iii", "")))
