"""A filter on a record in hand: the same as in an index, and days, which the index has as years."""

from __future__ import annotations

from datetime import date

import pytest

from cluster.errors import InputError
from cluster.index.filters.filters import NO_FILTERS, Filters
from cluster.records import Citation
from cluster.settings.settings import load_settings
from tests.cluster.test_filters import MEANINGS, random_citations


def test_a_record_passes_where_the_index_would_let_it_pass() -> None:
    held = random_citations(400)
    for filters, meaning in MEANINGS:
        assert [filters.admits(c) for c in held] == [meaning(c) for c in held]
    assert all(map(NO_FILTERS.admits, held))


def test_what_may_be_later_than_the_day_is_left_out(subtests: pytest.Subtests) -> None:
    for year, month, passes in [
        (2023, None, True),
        (2023, 12, True),
        (2024, 4, True),
        (2024, 5, False),
        (2024, None, False),
        (2025, 1, False),
        (None, None, False),
    ]:
        with subtests.test(year=year, month=month):
            filters = Filters(until="2024-05-30")
            assert filters.admits(Citation(1, year=year, month=month)) is passes


def test_the_last_day_of_a_month_or_a_year_lets_all_of_it_pass() -> None:
    assert Filters(until="2024-02-29").admits(Citation(1, year=2024, month=2))
    assert not Filters(until="2024-02-28").admits(Citation(1, year=2024, month=2))
    assert Filters(until="2024-12-31").admits(Citation(1, year=2024))


def test_years_and_the_day_bound_each_other() -> None:
    filters = Filters(year_from=2001, year_to=2010, until="2009-06-30")
    assert (filters.first_day, filters.last_day) == (date(2001, 1, 1), date(2009, 6, 30))
    assert filters.no_later_than("2012-01-01") == filters
    assert filters.no_later_than("2005-01-01").last_day == date(2005, 1, 1)
    assert filters.no_later_than("") == filters
    assert (NO_FILTERS.first_day, NO_FILTERS.last_day) == (None, None)


def test_what_is_no_day_is_refused(subtests: pytest.Subtests) -> None:
    for day in ["2024-13-01", "2024", "tomorrow", "", "2024-02-30", "20240531", "2024-W22-5"]:
        with (
            subtests.test(day=day),
            pytest.raises(InputError, match=r"filters\.until: .* is not a day; give one such as"),
        ):
            Filters(until=day)


@pytest.mark.parametrize("text", ["2024-05-31", '"2024-05-31"'])
def test_the_settings_take_a_day_with_and_without_quotation_marks(text: str) -> None:
    assert load_settings(None, [f"serve.until={text}"]).serve.until == "2024-05-31"


@pytest.mark.parametrize("text", ["20240531", "soon", "2024-05-31T10:00:00"])
def test_the_settings_refuse_what_is_no_day(text: str) -> None:
    with pytest.raises(InputError, match=r"serve\.until: .* is not a day; give one such as"):
        load_settings(None, [f"serve.until={text}"])
