"""The RayJob that merges the segments of each shard."""

import pytest

from tests.k8s.chart import render, values_of

pytestmark = pytest.mark.process


def test_compaction_runs_on_the_nodes_of_an_update() -> None:
    values = {**values_of("pubmed"), "compact": {"enabled": True, "options": ["--json"]}}
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in render(values)}
    job, update = (objects["RayJob", f"citeray-{name}"]["spec"] for name in ("compact", "update"))
    assert job["entrypoint"] == "sh /etc/citeray/compact.sh"
    assert job["rayClusterSpec"] == update["rayClusterSpec"]
    script = objects["ConfigMap", "citeray-settings"]["data"]["compact.sh"]
    assert script.splitlines()[-1] == (
        "citeray index compact --prune --config /etc/citeray/settings.yaml --json"
    )
    assert ("RayJob", "citeray-compact") not in {
        (obj["kind"], obj["metadata"]["name"]) for obj in render(values_of("pubmed"))
    }
