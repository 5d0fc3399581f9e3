"""Alert rules, the dashboard and the monitor: valid, and about metrics that CiteRay reports."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from grafana_foundation_sdk.models.dashboard import Dashboard, Panel

from tests.k8s.chart import (
    CASES,
    all_pods,
    all_values,
    matches,
    of_kind,
    values_for_key,
)
from tests.k8s.helm import K8S

pytestmark = pytest.mark.process

# Metrics of kube-state-metrics, of the kubelet and of KubeRay's operator, with their labels.
OF_KUBERNETES = {
    "kube_cronjob_status_last_successful_time": {"cronjob"},
    "kube_cronjob_created": {"cronjob"},
    "kube_job_failed": {"job_name", "condition"},
    "kube_pod_status_reason": {"reason"},
    "kube_statefulset_status_replicas_ready": {"statefulset"},
    "kubelet_volume_stats_available_bytes": set(),
    "kubelet_volume_stats_capacity_bytes": set(),
    "kuberay_job_deployment_status": {"name", "deployment_status"},
}
# Gauges of the installed libraries: prefix in Prometheus, package, source file, and pattern.
GAUGES = [
    ("ray_", "ray", "dashboard/modules/reporter/reporter_agent.py", r'"(node_\w+)": Gauge\('),
    ("ray_", "ray", "serve/_private/router.py", r'metrics\.Gauge\(\s*"(serve_\w+)"'),
    ("ray_vllm_", "vllm", "v1/metrics/loggers.py", r'_gauge_cls\(\s*name="vllm:(\w+)"'),
]
# On the dashboard, tests/end_to_end/test_service.py looks for the other metrics.
CHECKED = ("ray_citeray_", "ray_node_", "ray_vllm_")
ALERTS = [
    "CiteRayCoverageLost", "CiteRayErrorBudget", "CiteRayErrorBudget", "CiteRayQueueFull",
    "CiteRayServiceAbsent", "CiteRayLanguageModelQueue", "CiteRayDiskFull", "CiteRayRedisLost",
    "CiteRayBuildFailed", "CiteRayUpdateLate",
]  # fmt: skip
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


def library_gauges() -> dict[str, set[str]]:
    """Return the gauges in `GAUGES` by their names in Prometheus, with the labels used here."""
    found = {}
    for prefix, package, file, pattern in GAUGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        source = (Path(spec.origin).parent / file).read_text(encoding="utf-8")
        found |= {prefix + name: {"application"} for name in re.findall(pattern, source)}
    return found


def selectors(node: Any) -> list[Any]:
    """Return the vector selectors in a parsed PromQL expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return [node]
    parts = [getattr(node, name, None) for name in ("expr", "lhs", "rhs", "vector_selector")]
    parts += list(getattr(node, "args", None) or [])
    return [found for part in parts if part is not None for found in selectors(part)]


def test_alert_rules_parse_and_select_reported_metrics() -> None:
    assert len(reported_metrics()) >= 7
    metrics = {**reported_metrics(), **library_gauges(), **OF_KUBERNETES}
    (rules,) = values_for_key(of_kind("pubmed/build", "PrometheusRule"), "rules")
    assert [rule["alert"] for rule in rules] == ALERTS
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
                if selector.name not in metrics or not labels <= metrics[selector.name]:
                    problems.append(f"{case}: {rule['alert']}: {selector.name}{given} is unknown")
    assert not problems, "\n".join(problems)


def test_dashboard_is_valid_and_queries_known_metrics() -> None:
    shipped = json.loads((K8S.parent / "configs/grafana/citeray.json").read_text("utf-8"))
    assert [entry["type"] for entry in shipped["templating"]["list"]] == ["datasource"]
    metrics, problems = {**reported_metrics(), **library_gauges()}, []
    panels = [p for p in Dashboard.from_json(shipped).panels or [] if isinstance(p, Panel)]
    assert len(panels) >= 20
    for panel in panels:
        targets = [target.to_json() for target in panel.targets or []]
        if not targets or len({target["refId"] for target in targets}) < len(targets):
            problems.append(f"{panel.title}: no queries, or two with one id")
        for target in targets:
            assert target["datasource"]["uid"] == "${datasource}"
            query = target["expr"].replace("$__rate_interval", "5m")
            for selector in selectors(promql_parser.parse(query)):
                base = re.sub("_(sum|count)$", "_bucket", selector.name)
                if base.startswith(CHECKED) and base not in metrics:
                    problems.append(f"{panel.title}: {selector.name} is unknown")
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
