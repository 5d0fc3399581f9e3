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
    all_values,
    by_object,
    by_pod,
    matches,
    of_kind,
    render,
    values_of,
)
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

# Metrics of kube-state-metrics, which kube-prometheus-stack installs.
OF_KUBERNETES = {"kube_cronjob_status_last_successful_time", "kube_cronjob_created"}
SUFFIXES = {"Counter": "_total", "Gauge": "", "Histogram": "_bucket"}
UPDATE = 'namespace="citeray",cronjob="citeray-update"'
REQUESTS = 'ray_citeray_requests_total{namespace="citeray"'
# Severity, duration and expression of each alert. Two rules warn of the error budget.
ALERTS = [
    ("CiteRayCoverageLost", "warning", "10m",
     'sum(rate(ray_citeray_losses_total{namespace="citeray",stage="retrieve"}[5m]))>0'),
    *(("CiteRayErrorBudget", severity, "",
       "and".join(f'sum(rate({REQUESTS},status=~"5.."}}[{window}]))/sum(rate({REQUESTS}}}'
                  f"[{window}]))>({factor}*(1-0.995))" for window in windows))
      for severity, factor, windows in (("critical", "14.4", ("1h", "5m")),
                                        ("warning", "6", ("6h", "30m")))),
    ("CiteRayQueueFull", "warning", "10m", f'sum(rate({REQUESTS},status=~"429|503"}}[5m]))>0'),
    ("CiteRayServiceAbsent", "critical", "15m",
     'absent(ray_citeray_running{namespace="citeray"})'),
    ("CiteRayUpdateLate", "warning", "30m",
     f"time()-max(kube_cronjob_status_last_successful_time{{{UPDATE}}}"
     f"orkube_cronjob_created{{{UPDATE}}})>36*3600"),
]  # fmt: skip


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


def alert_rules(objects: Any) -> list[dict[str, Any]]:
    (found,) = [obj for obj in objects if obj["kind"] == "PrometheusRule"]
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


def test_alert_rules_parse_and_select_reported_metrics() -> None:
    metrics = reported_metrics()
    assert len(metrics) >= 7
    problems = []
    for case in CASES:
        for rule in [r for obj in of_kind(case, "PrometheusRule") for r in alert_rules([obj])]:
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


def test_alert_rules_have_their_thresholds() -> None:
    rules = alert_rules(of_kind("pubmed", "PrometheusRule"))
    found = [
        (r["alert"], r["labels"]["severity"], r.get("for", ""), re.sub(r"\s", "", r["expr"]))
        for r in rules
    ]
    assert found == ALERTS
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules)
    # The stage that the first alert selects is the one that reports lost shards.
    source = (K8S.parent / "serve/search/search_shards.py").read_text(encoding="utf-8")
    assert 'run("retrieve", shard.find(' in source
    objects = render(values_of("pubmed", monitoring={"availability": 0.9, "updateLateHours": 50}))
    text = " ".join(rule["expr"] for rule in alert_rules(objects))
    assert re.findall(r"1 - ([0-9.]+)", text) == ["0.9"] * 4
    assert "> 50 * 3600" in text
    without = render(values_of("pubmed", update={"enabled": False}))
    assert "CiteRayUpdateLate" not in [rule["alert"] for rule in alert_rules(without)]


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
    labels = by_object(
        lambda _, obj: obj["metadata"]["labels"]["release"], "PodMonitor", "PrometheusRule"
    )
    assert set(labels.values()) == {"kube-prometheus-stack"}

    def given(case: str, _place: str, template: dict[str, Any]) -> dict[str, int]:
        labels, found = template["metadata"]["labels"], {}
        for monitor in (obj["spec"] for obj in of_kind(case, "PodMonitor")):
            if matches(monitor["selector"], labels):
                ports = template["spec"]["containers"][0].get("ports", [])
                numbers = {port["name"]: port["containerPort"] for port in ports}
                names = [end["port"] for end in monitor["podMetricsEndpoints"]]
                found = {name: numbers[name] for name in names if name in numbers}
        return found

    def wanted(case: str, place: str, template: dict[str, Any]) -> dict[str, int]:
        ray = place.startswith(("RayService", "RayJob")) and not place.endswith("submitter")
        if not ray or not all_values(case)["monitoring"]["enabled"]:
            return {}
        scales = "citeray/asks-api-server" in template["metadata"]["labels"]
        head = {"dash-metrics": 44227} if place.endswith("head") else {}
        return {"metrics": 8080, **head, **({"as-metrics": 44217} if scales else {})}

    assert by_pod(given) == by_pod(wanted)
