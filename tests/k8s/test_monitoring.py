"""Alert rules, the dashboard and the monitor: valid, and about metrics that CiteRay reports."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import promql_parser
import pytest

from tests.k8s.chart import (
    CASES,
    all_pods,
    all_values,
    matches,
    of_kind,
)
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

# Metrics of kube-state-metrics, which kube-prometheus-stack installs.
OF_KUBERNETES = {"kube_cronjob_status_last_successful_time", "kube_cronjob_created"}
SUFFIXES = {"Counter": "_total", "Gauge": "", "Histogram": "_bucket"}


def reported_metrics() -> dict[str, set[str]]:
    """Return CiteRay's metrics by their names in Prometheus, with their labels."""
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


def selectors(node: Any) -> list[Any]:
    """Return the vector selectors in a parsed PromQL expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return [node]
    parts = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    parts += list(getattr(node, "args", None) or [])
    return [found for part in parts if part is not None for found in selectors(part)]


def test_alert_rules_parse_and_select_reported_metrics() -> None:
    metrics = reported_metrics()
    assert len(metrics) >= 7
    problems = []
    for case in CASES:
        groups = [g for obj in of_kind(case, "PrometheusRule") for g in obj["spec"]["groups"]]
        for rule in [rule for group in groups for rule in group["rules"]]:
            try:
                found = selectors(promql_parser.parse(rule["expr"]))
            except ValueError as error:
                problems.append(f"{case}: {rule['alert']}: {error}")
                continue
            problems += [f"{case}: {rule['alert']}: no metric"] if not found else []
            for selector in found:
                given = {m.name: m.value for m in selector.matchers.matchers}
                labels = set(given) - {"namespace"}
                known = metrics.get(selector.name, {"cronjob"})
                if selector.name not in {*metrics, *OF_KUBERNETES} or not labels <= known:
                    problems.append(f"{case}: {rule['alert']}: {selector.name}{given} is unknown")
    assert not problems, "\n".join(problems)


def test_dashboard_is_valid_json_with_valid_queries() -> None:
    shipped = json.loads((K8S.parent / "configs/grafana/citeray.json").read_text("utf-8"))
    metrics, problems = reported_metrics(), []
    for panel in shipped["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "5m")
            for selector in selectors(promql_parser.parse(query)):
                base = re.sub("_(sum|count)$", "_bucket", selector.name)
                if base.startswith("ray_citeray_") and base not in metrics:
                    problems.append(f"{panel['title']}: {selector.name} is unknown")
    for case in CASES:
        maps = [o for o in of_kind(case, "ConfigMap") if "citeray.json" in o["data"]]
        if bool(maps) != all_values(case)["monitoring"]["enabled"]:
            problems.append(f"{case}: {len(maps)} dashboards")
        for obj in maps:
            sidecar = obj["metadata"]["labels"].get("grafana_dashboard")
            if json.loads(obj["data"]["citeray.json"]) != shipped or sidecar != "1":
                problems.append(f"{case}: the dashboard is not the one in configs/")
    assert not problems, "\n".join(problems)


def test_prometheus_scrapes_every_ray_pod() -> None:
    endpoints = {"head": {"metrics", "dash-metrics"}, "worker": {"metrics"}}
    monitors = [obj["spec"] for obj in of_kind("pubmed", "PodMonitor")]
    for place, template in all_pods("pubmed").items():
        labels, found = template["metadata"]["labels"], set[str]()
        for monitor in monitors:
            if matches(monitor["selector"], labels):
                ports = template["spec"]["containers"][0].get("ports", [])
                ends = {end["port"] for end in monitor["podMetricsEndpoints"]}
                found |= ends & {port["name"] for port in ports}
        wanted = endpoints.get(labels.get("ray.io/node-type", ""), set())
        assert found - {"as-metrics"} == wanted, place
