"""What Prometheus scrapes, and rules that ask for figures that are really told."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from tests.k8s.chart import K8S, SERVING, all_pods, all_values, of_kind
from tests.k8s.test_network import matches

MONITORED = tuple(name for name in SERVING if name != "kind")
# Told by kube-state-metrics, which kube-prometheus-stack brings along.
OF_KUBERNETES = {"kube_cronjob_status_last_successful_time", "kube_cronjob_created"}
SUFFIXES = {"Counter": "_total", "Gauge": "", "Histogram": "_bucket"}


def told_by_citeray() -> dict[str, set[str]]:
    """CiteRay's figures as Ray tells them, and their labels."""
    source = (K8S.parent / "serve/graph/ray_meters.py").read_text(encoding="utf-8")
    found = {}
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if (kind := node.func.attr) in SUFFIXES:
            tags = [a for a in node.args[2:] if isinstance(a, ast.Tuple)]
            labels = set(ast.literal_eval(tags[0])) if tags else set()
            found[f"ray_{ast.literal_eval(node.args[0])}{SUFFIXES[kind]}"] = labels
    return found


def rules(name: str) -> list[dict[str, Any]]:
    (found,) = of_kind(name, "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("name", MONITORED)
def test_rules_ask_for_figures_and_labels_that_are_told(name: str) -> None:
    told = told_by_citeray()
    assert len(told) >= 7
    for rule in rules(name):
        asked = re.findall(r"\b((?:ray|kube)_\w+)\{([^}]*)\}", rule["expr"])
        assert asked, rule["alert"]
        for metric, selector in asked:
            assert 'namespace="citeray"' in selector
            labels = set(re.findall(r"(\w+)(?==)", selector)) - {"namespace"}
            if metric not in OF_KUBERNETES:
                assert metric in told, rule["alert"]
                assert labels <= told[metric], rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_stage_that_tells_of_lost_coverage_is_the_one_that_loses_it() -> None:
    source = (K8S.parent / "serve/search/search_shards.py").read_text(encoding="utf-8")
    (rule,) = [rule for rule in rules("pubmed") if rule["alert"] == "CiteRayCoverageLost"]
    (stage,) = re.findall(r'stage="(\w+)"', rule["expr"])
    assert f'run("{stage}", shard.find(' in source


def test_there_is_a_rule_for_each_thing_that_goes_wrong_in_silence() -> None:
    alerts = {rule["alert"] for rule in rules("pubmed")}
    wanted = {"CoverageLost", "UpdateLate", "ErrorBudget", "QueueFull", "ServiceAbsent"}
    assert {f"CiteRay{each}" for each in wanted} <= alerts
    (late,) = [rule for rule in rules("pubmed") if rule["alert"] == "CiteRayUpdateLate"]
    (cron,) = of_kind("pubmed", "CronJob")
    assert f'cronjob="{cron["metadata"]["name"]}"' in late["expr"]


@pytest.mark.parametrize("name", MONITORED)
def test_the_usual_prometheus_selects_the_monitor_and_the_rules(name: str) -> None:
    for obj in of_kind(name, "PodMonitor", "PrometheusRule"):
        assert obj["metadata"]["labels"]["release"] == "kube-prometheus-stack"


@pytest.mark.parametrize("name", MONITORED)
def test_every_ray_pod_is_scraped_those_of_builds_and_updates_too(name: str) -> None:
    (monitor,) = of_kind(name, "PodMonitor")
    endpoints = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
    seen = set()
    for place, template in all_pods(name).items():
        chosen = matches(monitor["spec"]["selector"], template["metadata"]["labels"])
        ray = place.startswith(("RayService", "RayJob")) and "submitter" not in place
        assert chosen == ray, place
        if ray:
            ports = {p["name"] for p in template["spec"]["containers"][0]["ports"]}
            assert "metrics" in ports
            seen |= ports & endpoints
    autoscales = all_values(name)["sizes"]["models"]["maxReplicas"] > 1
    assert seen == endpoints if autoscales else seen == endpoints - {"as-metrics"}
    assert any(place.startswith("RayJob") for place in all_pods(name))
