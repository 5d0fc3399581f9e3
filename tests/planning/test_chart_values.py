"""Output of `citeray plan --emit-values`, compared with the chart's schema and files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cluster.settings.settings import Settings, load_settings
from planning.chart_values import GIB, chart_values, values_yaml
from planning.measure.coefficients import SHIPPED, read_coefficients
from planning.place_workers import Ask
from planning.plan import Plan, make_plan
from tests.k8s.chart import merge
from tests.planning.some_coefficients import coefficients

K8S = Path(__file__).resolve().parents[2] / "k8s"
SCHEMA = K8S / "values.schema.json"
# Purpose of values-NAME.yaml: `citeray plan --config CONFIG --citations N ... --emit-values FILE`.
ASKED = {
    "pubmed": (
        "cluster.yaml",
        Ask(38_000_000, 1.0, 2.0, nodes=8, gpu_nodes=8, gpu_memory=24_000_000_000, shards=64),
    ),
    "small": ("gpu-node.yaml", Ask(60_000, 1.0, 2.0, nodes=1, node_cpus=8, gpu_nodes=1)),
}


def planned(name: str) -> tuple[Settings, Plan, dict[str, Any]]:
    config, ask = ASKED[name]
    settings = load_settings(config)
    plan = make_plan(read_coefficients(SHIPPED), settings, ask, shipped=True)
    return settings, plan, chart_values(settings, plan, config)


def gib(quantity: str) -> int:
    return int(quantity.removesuffix("Gi"))


@pytest.mark.parametrize("name", ASKED)
def test_emitted_values_match_the_chart_schema(name: str) -> None:
    schema = json.loads(SCHEMA.read_text())
    settings, plan, _ = planned(name)
    # This includes the memory of a GPU for graphs.
    assert plan.problems == ()
    emitted = yaml.safe_load(values_yaml(settings, plan, ASKED[name][0]))
    for over in ([], ["values-gke.yaml"], ["values-eks.yaml"]):
        values: dict[str, Any] = {}
        for file in ("values.yaml", f"values-{name}.yaml", *over):
            values = merge(values, yaml.safe_load((K8S / file).read_text()))
        jsonschema.validate(merge(values, emitted), schema)


@pytest.mark.parametrize("name", ASKED)
def test_shipped_chart_sizes_equal_the_plan(name: str) -> None:
    own, (_, _, emitted) = yaml.safe_load((K8S / f"values-{name}.yaml").read_text()), planned(name)
    wanted = {key: emitted[key] for key in ("corpus", "load", "nodes", "sizes")}
    found = {key: own[key] for key in wanted if key != "sizes"}
    found["sizes"] = {kind: own["sizes"].get(kind) for kind in emitted["sizes"]}
    assert found == wanted, f"k8s/values-{name}.yaml should have:\n{yaml.safe_dump(wanted)}"


@pytest.mark.parametrize("name", ASKED)
def test_pods_that_hold_shards_have_disk_for_two_versions(name: str) -> None:
    own, (_, plan, _) = yaml.safe_load((K8S / f"values-{name}.yaml").read_text()), planned(name)
    stage = plan.serving.stage("shard")
    assert stage
    pod = own["sizes"].get("retrieval", own["sizes"]["models"])
    copies = math.ceil(stage.parts * stage.replicas / pod["replicas"])
    version = next(f.value for f in plan.disk if f.name == "index, one version")
    assert gib(pod["disk"]) * GIB >= 2 * version * copies / plan.size.shards


def test_language_models_get_nodes_and_the_judge_its_own() -> None:
    role = "{kind: vllm, model: hf:a/b, model_id: b, tensor_parallel: 2}"
    roles = (f"rewriters=[{role}, {role}]", f"ranker={role}", f"judge={role}")
    settings = load_settings("cluster.yaml", [f"models.{role}" for role in roles])
    plan = make_plan(coefficients(), settings, replace(ASKED["pubmed"][1], nodes=8))
    groups = {g.name: g for g in plan.groups}
    # The writer takes 4 GPUs, rewriters and ranker 2 each.
    assert (groups["llm"].nodes, groups["llm"].gpus) == (3, 4)
    assert "1 llm-rewriter-1" in groups["llm"].holds
    assert (groups["judge"].nodes, groups["judge"].gpus) == (1, 2)
    alone = make_plan(coefficients(), load_settings("cluster.yaml"), ASKED["pubmed"][1])
    assert chart_values(settings, plan)["sizes"]["llm"]["replicas"] == 3
    assert chart_values(settings, alone)["sizes"]["llm"]["replicas"] == 1


def test_values_contain_only_changed_settings() -> None:
    settings, plan, values = planned("pubmed")
    assert values["settings"]["over"] == "cluster.yaml"
    assert "path" not in values["settings"].get("index", {})
    mine = settings.model_copy(
        update={"index": settings.index.model_copy(update={"ef_search": 99, "path": "/elsewhere"})}
    )
    assert chart_values(mine, plan, "cluster.yaml")["settings"]["index"] == {"ef_search": 99}
