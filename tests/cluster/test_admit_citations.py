"""`Filters.admits` agrees with filters in an index, and also compares days."""

from __future__ import annotations

from datetime import date

import pytest

from cluster.errors import InputError
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.records import Citation
from cluster.settings.settings import load_settings
from tests.cluster.test_filters import MEANINGS, random_citations


def test_admits_agrees_with_the_index() -> None:
    held = random_citations(400)
    for filters, meaning in MEANINGS:
        assert [filters.admits(c) for c in held] == [meaning(c) for c in held]
    assert all(map(NO_FILTERS.admits, held))


def test_until_excludes_possibly_later_citations(subtests: pytest.Subtests) -> None:
    for until, year, month, passes in [
        ("2024-05-30", 2023, None, True),
        ("2024-05-30", 2023, 12, True),
        ("2024-05-30", 2024, 4, True),
        ("2024-05-30", 2024, 5, False),
        ("2024-05-30", 2024, None, False),
        ("2024-05-30", 2025, 1, False),
        ("2024-05-30", None, None, False),
        ("2024-02-29", 2024, 2, True),
        ("2024-02-28", 2024, 2, False),
        ("2024-12-31", 2024, None, True),
    ]:
        with subtests.test(until=until, year=year, month=month):
            filters = Filters(until=until)
            assert filters.admits(Citation(1, year=year, month=month)) is passes


def test_years_and_until_are_combined() -> None:
    filters = Filters(year_from=2001, year_to=2010, until="2009-06-30")
    assert (filters.first_day, filters.last_day) == (date(2001, 1, 1), date(2009, 6, 30))
    assert filters.no_later_than("2012-01-01") == filters
    assert filters.no_later_than("2005-01-01").last_day == date(2005, 1, 1)
    assert filters.no_later_than("") == filters
    assert (NO_FILTERS.first_day, NO_FILTERS.last_day) == (None, None)


def test_invalid_days_are_rejected(subtests: pytest.Subtests) -> None:
    for day in ["2024-13-01", "2024", "tomorrow", "", "2024-02-30", "20240531", "2024-W22-5"]:
        with (
            subtests.test(day=day),
            pytest.raises(InputError, match=r"filters\.until: .* is not a day; give one such as"),
        ):
            Filters(until=day)


def test_serve_until_accepts_only_days() -> None:
    for text in ("2024-05-31", '"2024-05-31"'):
        assert load_settings(None, [f"serve.until={text}"]).serve.until == "2024-05-31"
    for text in ("20240531", "2024-05-31T10:00:00"):
        with pytest.raises(InputError, match=r"serve\.until: .* is not a day; give one such as"):
            load_settings(None, [f"serve.until={text}"])
