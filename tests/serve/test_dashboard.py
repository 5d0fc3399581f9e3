"""The Grafana dashboard, read as Grafana's own library reads it."""

from __future__ import annotations

import json
from itertools import combinations

import promql_parser
import pytest
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel, RowPanel

from cluster.settings.read_config import CONFIGS

TEXT = (CONFIGS / "grafana" / "citeray.json").read_text(encoding="utf-8")
BOARD = Dashboard.from_json(json.loads(TEXT))
PANELS = [panel for panel in BOARD.panels or [] if isinstance(panel, Panel)]
ROWS = [panel for panel in BOARD.panels or [] if isinstance(panel, RowPanel)]
GRID_WIDTH = 24


def test_every_panel_asks_the_chosen_prometheus_in_its_own_language(
    subtests: pytest.Subtests,
) -> None:
    for panel in PANELS:
        with subtests.test(panel=panel):
            targets = [target.to_json() for target in panel.targets or []]
            assert targets
            assert len({target["refId"] for target in targets}) == len(targets)
            for target in targets:
                assert target["datasource"]["uid"] == "${datasource}"
                promql_parser.parse(target["expr"].replace("$__rate_interval", "5m"))


def test_no_panel_lies_on_another() -> None:
    places = [panel.grid_pos for panel in [*PANELS, *ROWS]]
    assert all(place is not None and place.x + place.w <= GRID_WIDTH for place in places)
    for one, other in combinations(places, 2):
        assert one is not None
        assert other is not None
        beside = one.x + one.w <= other.x or other.x + other.w <= one.x
        above = one.y + one.h <= other.y or other.y + other.h <= one.y
        assert beside or above


def test_the_dashboard_names_no_data_source_of_one_machine() -> None:
    assert [entry["type"] for entry in json.loads(TEXT)["templating"]["list"]] == ["datasource"]
