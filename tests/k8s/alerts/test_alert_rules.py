"""The chart's alerts, evaluated by Prometheus over the series of failing and of sound services."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.k8s.chart import of_kind, render, values_of

NAMESPACE = 'namespace="citeray"'
HOURS_36 = 36 * 60


def requests(status: str, a_minute: float, more: str = "") -> dict[str, str]:
    return series("ray_citeray_requests_total", f'status="{status}"', f"0+{a_minute}x2300{more}")


def series(name: str, labels: str, values: str, namespace: str = NAMESPACE) -> dict[str, str]:
    """A sample a minute: `0+2x30` grows by 2 for 30 minutes, `5x30` stays at 5."""
    given = ", ".join(part for part in (namespace, labels) if part)
    return {"series": f"{name}{{{given}}}", "values": values}


def losses(stage: str, values: str, namespace: str = NAMESPACE) -> dict[str, str]:
    labels = f'stage="{stage}", system="hybrid"'
    return series("ray_citeray_losses_total", labels, values, namespace)


def updated(values: str) -> dict[str, str]:
    return series("kube_cronjob_status_last_successful_time", 'cronjob="citeray-update"', values)


CREATED = series("kube_cronjob_created", 'cronjob="citeray-update"', "0x2300")
RUNNING = series("ray_citeray_running", 'pod="one"', "1x2300")
STALE = series("ray_citeray_running", 'pod="one"', "1x10")
# Of a service without a fault: answers, a single loss long ago, yesterday's update.
SOUND = [
    RUNNING, CREATED, requests("200", 100), requests("404", 1), losses("retrieve", "3x2300"),
    losses("rerank", "0+1x2300"), losses("retrieve", "0+9x2300", 'namespace="other"'),
    updated(f"0x{HOURS_36 - 60} 129600x2300"),
]  # fmt: skip
LOST = losses("retrieve", "0+1x2300")
FAST, SLOW, WELL = ([requests("200", 100 - p), requests("500", p)] for p in (10, 5, 2))
BURST = [requests("200", 100), series("ray_citeray_requests_total", 'status="500"', "0+30x60")]
# What is told, at which minute, and the severities of the alerts of that name that fire then.
CASES: dict[str, tuple[str, list[dict[str, str]], int, list[str]]] = {
    "a shard is lost": ("CoverageLost", [LOST], 20, ["warning"]),
    "a shard was late for a moment": ("CoverageLost", [LOST], 8, []),
    "another stage is late": ("CoverageLost", [losses("rerank", "0+1x2300")], 60, []),
    "a tenth of requests fails": ("ErrorBudget", FAST, 400, ["critical", "warning"]),
    "a twentieth fails": ("ErrorBudget", SLOW, 400, ["warning"]),
    "one in fifty fails": ("ErrorBudget", WELL, 400, []),
    "failures are over": ("ErrorBudget", BURST, 95, []),
    "nobody asks": ("ErrorBudget", [RUNNING], 400, []),
    "questions are refused": ("QueueFull", [requests("429", 1)], 20, ["warning"]),
    "no place is free": ("QueueFull", [requests("503", 1)], 20, ["warning"]),
    "one was refused once": ("QueueFull", [requests("429", 0)], 60, []),
    "no gateway is scraped": ("ServiceAbsent", [STALE], 40, ["critical"]),
    "none was from the start": ("ServiceAbsent", [], 20, ["critical"]),
    "a gateway restarts": ("ServiceAbsent", [STALE], 20, []),
    "updates fail": ("UpdateLate", [CREATED, updated("0x2300")], HOURS_36 + 40, ["warning"]),
    "no update has ever succeeded": ("UpdateLate", [CREATED], HOURS_36 + 40, ["warning"]),
    "an update is a day late": ("UpdateLate", [CREATED, updated("0x2300")], HOURS_36 - 1, []),
    "the chart was just installed": ("UpdateLate", [CREATED], 60, []),
}  # fmt: skip
ALERTS = ("CoverageLost", "ErrorBudget", "QueueFull", "ServiceAbsent", "UpdateLate")


def spec() -> dict[str, Any]:
    (found,) = of_kind("pubmed", "PrometheusRule")
    return found["spec"]


def rules() -> list[dict[str, Any]]:
    return [rule for group in spec()["groups"] for rule in group["rules"]]


def expected(alert: str, severities: list[str]) -> list[dict[str, Any]]:
    by_severity = {r["labels"]["severity"]: r for r in rules() if r["alert"] == f"CiteRay{alert}"}
    # `absent` names the labels that it asked for.
    more = {"namespace": "citeray"} if alert == "ServiceAbsent" else {}
    return [
        {
            "exp_labels": {**by_severity[severity]["labels"], **more},
            "exp_annotations": by_severity[severity]["annotations"],
        }
        for severity in severities
    ]


def rule_test(
    name: str, told: list[dict[str, str]], minute: int, fire: dict[str, list[str]]
) -> dict[str, Any]:
    return {
        "name": name,
        "interval": "1m",
        "input_series": told,
        "alert_rule_test": [
            {
                "eval_time": f"{minute}m",
                "alertname": f"CiteRay{alert}",
                "exp_alerts": expected(alert, severities),
            }
            for alert, severities in fire.items()
        ],
    }


def evaluate(folder: Path, tests: list[dict[str, Any]], groups: Any) -> str:
    """What Prometheus says of the tests that fail; "" where all hold."""
    if not (promtool := shutil.which("promtool")):
        pytest.skip("needs promtool, of Prometheus")
    (folder / "rules.yaml").write_text(yaml.safe_dump(groups))
    text = {"rule_files": ["rules.yaml"], "evaluation_interval": "5m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(text))
    command = [promtool, "test", "rules", "tests.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_each_alert_fires_when_its_fault_is_told_and_only_then(tmp_path: Path) -> None:
    tests = [
        rule_test(name, told, minute, {alert: severities})
        for name, (alert, told, minute, severities) in CASES.items()
    ]
    assert evaluate(tmp_path, tests, spec()) == ""


@pytest.mark.parametrize("minute", [20, 2300])
def test_all_are_silent_while_the_service_is_sound(tmp_path: Path, minute: int) -> None:
    silent = rule_test("sound", SOUND, minute, dict.fromkeys(ALERTS, ()))
    assert evaluate(tmp_path, [silent], spec()) == ""


def test_a_rule_that_never_fired_would_be_found(tmp_path: Path) -> None:
    """The evaluation itself: with no rule every test of a fault fails."""
    tests = [
        rule_test(name, told, minute, {alert: severities})
        for name, (alert, told, minute, severities) in CASES.items()
        if severities
    ]
    said = evaluate(tmp_path, tests, {"groups": []})
    assert said.count("got:[]") == len(tests)


def test_every_alert_is_among_the_cases() -> None:
    fired = {alert for alert, _, _, severities in CASES.values() if severities}
    silent = {alert for alert, _, _, severities in CASES.values() if not severities}
    named = {rule["alert"].removeprefix("CiteRay") for rule in rules()}
    assert fired == silent == named == set(ALERTS)


def test_the_budget_and_the_hours_are_those_of_the_values() -> None:
    objects = render(values_of("pubmed", monitoring={"availability": 0.9, "updateLateHours": 50}))
    (found,) = [obj for obj in objects if obj["kind"] == "PrometheusRule"]
    text = " ".join(rule["expr"] for rule in found["spec"]["groups"][0]["rules"])
    assert re.findall(r"1 - ([0-9.]+)", text) == ["0.9"] * 4
    assert "> 50 * 3600" in text
