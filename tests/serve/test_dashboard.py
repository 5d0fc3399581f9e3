"""The Grafana dashboard, parsed with Grafana's library."""

from __future__ import annotations

import json

import promql_parser
import pytest
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from cluster.settings.read_config import CONFIGS

TEXT = (CONFIGS / "grafana" / "citeray.json").read_text(encoding="utf-8")
BOARD = Dashboard.from_json(json.loads(TEXT))
PANELS = [panel for panel in BOARD.panels or [] if isinstance(panel, Panel)]


def test_every_panel_has_valid_promql(
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


def test_dashboard_has_no_fixed_data_source() -> None:
    assert [entry["type"] for entry in json.loads(TEXT)["templating"]["list"]] == ["datasource"]
